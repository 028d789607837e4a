//! All courses of one turn, by breadth-first search over distinct states.

use std::collections::{HashSet, VecDeque};

use games::{
    Game,
    paco_sako::{PacoSako, Victory},
};

use super::data::{legal, play, square_name};

/// State in which the turn is over.
pub struct End {
    /// Key of the state (see [`key`]).
    pub key: String,
    /// True if the turn united a piece with the king.
    pub is_paco: bool,
    /// Least number of actions to the state.
    pub distance: usize,
}

/// Results of the turn of the player to act.
pub struct Turn {
    /// States in which the turn is over.
    pub ends: Vec<End>,
    /// Number of distinct states within the turn, without its start.
    pub intermediate: usize,
    /// Number of states in which the player has no legal action.
    pub dead_ends: usize,
}

impl Turn {
    /// Finds all courses of the turn. `None` if there are more than `limit` states.
    pub fn explore(start: &PacoSako, limit: usize) -> Option<Self> {
        let mover = start.to_move();
        let mut turn = Self {
            ends: Vec::new(),
            intermediate: 0,
            dead_ends: 0,
        };
        let mut seen = HashSet::from([key(start)]);
        let mut open = VecDeque::from([(start.clone(), 0)]);
        while let Some((state, distance)) = open.pop_front() {
            let actions = legal(&state);
            turn.dead_ends += usize::from(actions.is_empty());
            for action in actions {
                let mut next = state.clone();
                play(&mut next, action);
                let key = key(&next);
                if !seen.insert(key.clone()) {
                    continue;
                }
                if seen.len() > limit {
                    return None;
                }
                let distance = distance + 1;
                if next.to_move() == mover && next.victory_state() == Victory::Running {
                    turn.intermediate += 1;
                    open.push_back((next, distance));
                } else {
                    let is_paco = matches!(
                        next.victory_state(),
                        Victory::PacoVictoryWhite | Victory::PacoVictoryBlack
                    );
                    turn.ends.push(End {
                        key,
                        is_paco,
                        distance,
                    });
                }
            }
        }
        Some(turn)
    }
}

/// Returns the key of a state: `<board and hand> <side> <castling> <en passant> <required action> <promotion square>
/// <victory state>`.
pub fn key(state: &PacoSako) -> String {
    let fen = state.position();
    let fields: Vec<&str> = fen.split(' ').collect();
    let promotion = state.promotion().map_or_else(|| "-".into(), square_name);
    format!(
        "{} {} {} {} {:?} {promotion} {:?}",
        fields[0],
        fields[1],
        fields[3],
        fields[4],
        state.required_action(),
        state.victory_state()
    )
}
