//! Openings of games: drawn at random from a seed, or read from a file. Every opening is played with both colours.

use std::collections::HashSet;

use anyhow::{Context as _, bail, ensure};
use games::{
    Action,
    erased::{AnyState, Variant},
};
use search::{Draws, GameKey, Purpose};
use serde::{Deserialize, Serialize};

use super::problems::{self, ProblemClass};

/// Tries at an opening that no earlier pair has.
pub(super) const TRIES: u32 = 64;
/// The key's first part, so that openings and players never share a draw.
const OPENINGS: u64 = 0x6f70_656e_696e_6773;

/// The beginning of a pair of games.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// A position; `None`: the game's usual start.
    pub start: Option<String>,
    /// Actions played from the start before the players choose.
    pub actions: Vec<Action>,
    /// Kind and level of the start, if it is a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemClass>,
}

/// `count` openings as a match of the game usually has them: held-out problems in games of one player, else `plies` random actions.
///
/// # Errors
/// The rules give no such opening.
pub fn usual(variant: &dyn Variant, seed: u64, plies: u32, count: u64) -> anyhow::Result<Vec<Opening>> {
    match variant.game().players {
        1 => problems::openings(variant, seed, count),
        _ => random(variant, seed, plies, count),
    }
}

/// `count` openings of `plies` random actions each: games that are over do not count, and an opening that leads to a position
/// an earlier one leads to only where no other was found in some tries. The same seed gives the same openings, and more of
/// them begin with the same.
///
/// # Errors
/// The rules give no such opening.
pub fn random(variant: &dyn Variant, seed: u64, plies: u32, count: u64) -> anyhow::Result<Vec<Opening>> {
    let start = variant.start(None)?;
    let mut distinct = Distinct::new(seed, Purpose::Choice);
    let openings = (0..count).map(|number| {
        let drawn = distinct.draw(number, |draws| {
            let (actions, state) = one(&*start, draws, plies)?;
            Some((state.position(), actions))
        });
        let (_, actions) = drawn.with_context(|| {
            let game = variant.game().name;
            format!("{plies} random actions end a game of {game}; take fewer")
        })?;
        Ok(Opening {
            actions,
            ..Opening::default()
        })
    });
    openings.collect()
}

/// Draws openings that differ from each other.
pub(super) struct Distinct {
    seed: u64,
    purpose: Purpose,
    /// Positions of earlier openings.
    known: HashSet<String>,
}

impl Distinct {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        Self {
            seed,
            purpose,
            known: HashSet::new(),
        }
    }

    /// Draws the opening with this number: its position, and what else `draw` returns. After some tries it may have the position of
    /// an earlier one. `None` if no try gives an opening.
    pub(super) fn draw<T>(
        &mut self,
        number: u64,
        draw: impl Fn(&mut Draws) -> Option<(String, T)>,
    ) -> Option<(String, T)> {
        let key = GameKey {
            run_seed: self.seed ^ OPENINGS,
            game: number,
        };
        let mut drawn = None;
        for attempt in 0..TRIES {
            let Some((position, rest)) = draw(&mut Draws::new(key, attempt, self.purpose)) else {
                continue;
            };
            let is_new = self.known.insert(position.clone());
            drawn = Some((position, rest));
            if is_new {
                break;
            }
        }
        drawn
    }
}

fn one(start: &dyn AnyState, draws: &mut Draws, plies: u32) -> Option<(Vec<Action>, Box<dyn AnyState>)> {
    let (mut state, mut legal, mut actions) = (start.copy(), Vec::new(), Vec::new());
    for _ in 0..plies {
        state.legal_actions(&mut legal);
        let action = *legal.get(draws.below(legal.len()))?;
        state.play_legal(action);
        actions.push(action);
    }
    state.legal_actions(&mut legal);
    (state.outcome().is_none() && !legal.is_empty()).then_some((actions, state))
}

/// Openings from a text: a position a line, as the game writes them (chess: FEN, or EPD as far as its four fields). Empty lines
/// and lines that begin with `#` say nothing. A byte-order mark may be in front.
///
/// # Errors
/// A line that cannot be used; the error names it.
pub fn read(variant: &dyn Variant, text: &str) -> anyhow::Result<Vec<Opening>> {
    let mut openings = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    for (line, position) in (1..).zip(text.lines().map(str::trim)) {
        if position.is_empty() || position.starts_with('#') {
            continue;
        }
        let (text, state) = match variant.start(Some(position)) {
            Ok(state) => (position.to_owned(), state),
            Err(error) => {
                // An EPD's operations follow its four fields.
                let fields: Vec<&str> = position.split_whitespace().take(4).collect();
                let text = fields.join(" ");
                let Ok(state) = variant.start(Some(&text)) else {
                    bail!("opening {line}: {}", error.reason);
                };
                (text, state)
            }
        };
        ensure!(
            state.outcome().is_none(),
            "opening {line}: the game is over there"
        );
        openings.push(Opening {
            start: Some(text),
            ..Opening::default()
        });
    }
    ensure!(!openings.is_empty(), "there is no opening in it");
    Ok(openings)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use games::registry;

    use super::*;

    fn variant(game: &str) -> Arc<dyn Variant> {
        let game = registry::find(game).unwrap();
        game.variant(&game.rules(), None).unwrap()
    }

    #[test]
    fn random_openings_are_seeded_distinct_and_playable() {
        let four = &*variant("connect-four");
        let first = random(four, 1, 4, 100).unwrap();
        assert_eq!(random(four, 1, 4, 30).unwrap(), first[..30]);
        assert_ne!(random(four, 2, 4, 100).unwrap(), first);
        let positions: HashSet<String> = first
            .iter()
            .map(|opening| {
                let mut state = four.start(None).unwrap();
                assert_eq!(opening.actions.len(), 4);
                for &action in &opening.actions {
                    state.play(action).unwrap();
                }
                state.position()
            })
            .collect();
        assert_eq!(positions.len(), 100);
        // There are only seven of one ply: the eighth is one of them again.
        assert_eq!(random(four, 1, 1, 8).unwrap().len(), 8);
        let error = random(four, 1, 42, 1).unwrap_err();
        assert!(error.to_string().contains("take fewer"), "{error}");
    }

    #[test]
    fn a_file_gives_its_positions_and_names_wrong_lines() {
        let chess = &*variant("chess");
        let text = "\u{feff}# two\nrnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - hmvc 0; fmvn 1;\n\n\
                    4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\n";
        let openings = read(chess, text).unwrap();
        assert_eq!(openings.len(), 2);
        assert_eq!(
            openings[0].start.as_deref(),
            Some("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -")
        );
        let says = |text: &str, words: &str| {
            let said = read(chess, text).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        says("\n# nothing", "no opening");
        says("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\nnonsense", "opening 2: ");
        says("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "over there");
    }
}
