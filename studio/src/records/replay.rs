//! A stored game, played again: its positions, and what the search thought in each.

use games::{
    Action, MoverValue, Player, Symmetry,
    erased::{AnyGame, AnyState},
    registry,
    scene::Scene,
};
use proto::{ids::parse_game_id, v1::Game};

use crate::failure::Failure;

/// Reads an id of 32 hexadecimal digits.
///
/// # Errors
/// [`Failure::BadRequest`].
pub fn parse_id(text: &str) -> Result<Vec<u8>, Failure> {
    let wrong =
        || Failure::BadRequest("This is not the id of a game, which has 32 hexadecimal digits.".into());
    parse_game_id(text).map(Vec::from).ok_or_else(wrong)
}

/// States of a stored game.
pub struct States {
    own: &'static AnyGame,
    /// States before each action, and after the last. There are fewer if the rules of this build refuse an action, and none if they
    /// refuse the start.
    pub all: Vec<Box<dyn AnyState>>,
}

impl States {
    /// Plays a game again.
    ///
    /// # Errors
    /// [`Failure`] if this build does not know the game.
    pub fn of(game: &Game) -> Result<Self, Failure> {
        let own = registry::find(&game.game).map_err(|error| Failure::Missing(error.to_string()))?;
        let start = (!game.start.is_empty()).then_some(game.start.as_str());
        let begin = serde_json::from_str(&game.rules_json).ok().and_then(|rules| {
            let variant = own.variant(&rules, Some(game.options)).ok()?;
            variant.start(start).ok()
        });
        let mut all = Vec::from_iter(begin);
        for &action in &game.actions {
            let Some(mut next) = all.last().map(|state| state.copy()) else {
                break;
            };
            if next.play(action).is_err() {
                break;
            }
            all.push(next);
        }
        Ok(Self { own, all })
    }

    /// Drawing of position `at`, in which the turn that led to it is marked; `None` if there is no such position.
    pub fn scene(&self, game: &Game, at: usize) -> Option<Scene> {
        Some(self.all.get(at)?.scene(self.last_turn(game, at)))
    }

    /// Actions of the turn that led to position `at`.
    fn last_turn<'a>(&self, game: &'a Game, at: usize) -> &'a [Action] {
        let Some(last) = at.checked_sub(1) else {
            return &[];
        };
        let mover = game.movers.get(last);
        let mut from = last;
        while self.own.players > 1 && from > 0 && game.movers.get(from - 1) == mover {
            from -= 1;
        }
        game.actions.get(from..at).unwrap_or_default()
    }
}

/// An action of a game, with what the search thought.
#[derive(Clone, Debug)]
pub struct Ply {
    /// Player who acted.
    pub mover: Player,
    /// Action as people write it.
    pub text: String,
    /// Value of the root after the search, from the first player's point of view, -1 to 1.
    pub value: f32,
    /// Version of the network.
    pub model: Option<String>,
    /// Visited actions, most visited first.
    pub candidates: Vec<Candidate>,
    /// Visits of all actions.
    pub visits: u32,
}

/// A visited action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Action as people write it.
    pub text: String,
    /// Visits.
    pub visits: u32,
    /// True if the action was played.
    pub is_played: bool,
}

/// A game as its page shows it, with the drawing of one position.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Names of the players.
    pub players: [&'static str; 2],
    /// Result in a sentence.
    pub result: String,
    /// Actions.
    pub plies: Vec<Ply>,
    /// Number of the drawn position: actions played before it.
    pub at: usize,
    /// Drawn position.
    pub scene: Option<Scene>,
}

impl Replay {
    /// Plays a game again, and draws position `at`, or the last if there are fewer.
    ///
    /// # Errors
    /// [`Failure`] if this build does not know the game.
    pub fn of(game: &Game, at: usize) -> Result<Self, Failure> {
        let states = States::of(game)?;
        let at = at.min(states.all.len().saturating_sub(1));
        let result = states.all.last().and_then(|state| state.result_text());
        Ok(Self {
            players: states.own.player_names,
            result: result.unwrap_or_else(|| "The game has no result by the rules of this build.".into()),
            plies: plies(game, &states.all),
            at,
            scene: states.scene(game, at),
        })
    }

    /// True if the rules of this build played the whole game.
    pub fn is_whole(&self, game: &Game) -> bool {
        self.plies.len() == game.actions.len()
    }
}

/// Drawings of a game's positions, from the start to at most `most` actions on.
///
/// # Errors
/// [`Failure`] if this build does not know the game.
pub fn scenes(game: &Game, most: usize) -> Result<Vec<Scene>, Failure> {
    let states = States::of(game)?;
    let last = states.all.len().min(most + 1);
    Ok((0..last).filter_map(|at| states.scene(game, at)).collect())
}

fn plies(game: &Game, states: &[Box<dyn AnyState>]) -> Vec<Ply> {
    let mut policies = game.policy_columns().ok().into_iter().flatten();
    let mut plies = Vec::with_capacity(game.actions.len());
    let mut legal = Vec::new();
    // A state that follows shows that the action was legal.
    for (ply, state) in states.iter().take(states.len().saturating_sub(1)).enumerate() {
        let action = game.actions.get(ply).copied().unwrap_or_default();
        let mover = state.to_move();
        let (indices, visits) = policies.next().unwrap_or_default();
        state.legal_actions(&mut legal);
        let named = |index: u32| {
            let is_it = |&&action: &&Action| state.policy_index(Symmetry::IDENTITY, action) == index;
            legal.iter().find(is_it).copied()
        };
        let mut candidates: Vec<Candidate> = indices
            .iter()
            .zip(visits)
            .filter_map(|(&index, &visits)| {
                let found = named(index)?;
                Some(Candidate {
                    text: state.write_turn(&[found]),
                    visits,
                    is_played: found == action,
                })
            })
            .collect();
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.visits));
        let value = MoverValue::new(game.root_values.get(ply).copied().unwrap_or_default());
        let model = game
            .model_of_position
            .get(ply)
            .and_then(|&model| game.model_versions.get(model as usize));
        plies.push(Ply {
            mover,
            text: state.write_turn(&[action]),
            value: value.of_first(mover).get(),
            model: model.cloned(),
            candidates,
            visits: visits.iter().sum(),
        });
    }
    plies
}
