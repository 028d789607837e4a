//! Lines of actions as turns: their text, and the cells to click.

use games::{Action, Notation};

/// Cells that are clicked to play actions one after the other.
pub(super) fn clicked<G: Notation>(state: &G, actions: &[Action]) -> Vec<usize> {
    let mut state = state.clone();
    let mut cells = Vec::new();
    for &action in actions {
        let clicks = state.clicks(action);
        cells.extend(clicks.cells.iter().filter_map(|click| click.first().copied()));
        state.play_legal(action);
    }
    cells
}

/// Actions of a line that belong to its first turn.
pub(super) fn first_turn<G: Notation>(state: &G, line: &[Action]) -> Vec<Action> {
    turns_of(state, line).into_iter().next().unwrap_or_default()
}

/// Turns of a line.
fn turns_of<G: Notation>(state: &G, line: &[Action]) -> Vec<Vec<Action>> {
    let mut state = state.clone();
    let mut turns: Vec<Vec<Action>> = Vec::new();
    for &action in line {
        match turns.last_mut().filter(|_| state.is_mid_turn()) {
            Some(turn) => turn.push(action),
            None => turns.push(vec![action]),
        }
        state.play_legal(action);
    }
    turns
}

/// A line as people write it, turn by turn.
pub(super) fn line_text<G: Notation>(state: &G, line: &[Action]) -> String {
    let mut state = state.clone();
    let turns = turns_of(&state, line);
    let mut texts = Vec::new();
    for turn in turns {
        texts.push(state.write_turn(&turn));
        for action in turn {
            state.play_legal(action);
        }
    }
    texts.join(" · ")
}
