//! [`Probe`]: a position on which networks of different ages are compared.

use crate::{Action, Notation};

/// Number of probes of a game without known ones.
const DRAWN: usize = 8;
/// Random actions by which each drawn probe is longer than the one before.
const ACTIONS_PER_PROBE: usize = 2;
/// Attempts to draw a problem of one level.
const ATTEMPTS: usize = 64;

/// A known position, by the turns that lead to it. See [`Notation::PROBES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeLine {
    /// Name of the position, e.g. `Sicilian Defence`.
    pub name: &'static str,
    /// Position that the turns begin in; `None`: the usual start.
    pub start: Option<&'static str>,
    /// Turns as people write them.
    pub turns: &'static [&'static str],
}

/// A position on which networks of different ages are compared.
#[derive(Clone, Debug)]
pub struct Probe<G> {
    /// Name for people.
    pub name: String,
    /// The position. The game is not over.
    pub state: G,
    /// Actions of the last turn before the position; empty at a start.
    pub last_turn: Vec<Action>,
}

impl ProbeLine {
    /// Returns a position after turns from the usual start.
    pub const fn new(name: &'static str, turns: &'static [&'static str]) -> Self {
        Self {
            name,
            start: None,
            turns,
        }
    }
}

impl<G: Notation> Probe<G> {
    /// Returns all probes of a game: its known positions ([`Notation::PROBES`]), or else problems of all levels, or else positions
    /// after random actions. `draw(n)` gives a random number below `n`; the same numbers give the same probes. Positions that the
    /// rules do not allow are left out.
    pub fn all(rules: &G::Rules, draw: &mut dyn FnMut(usize) -> usize) -> Vec<Self> {
        if !G::PROBES.is_empty() {
            let known = G::PROBES.iter();
            return known.filter_map(|line| Self::after(rules, line)).collect();
        }
        (0..DRAWN)
            .filter_map(|number| match G::LEVELS {
                0 => Self::random(rules, number * ACTIONS_PER_PROBE, draw),
                levels => Self::problem(rules, 1 + number as u32 * levels / DRAWN as u32, draw),
            })
            .collect()
    }

    fn after(rules: &G::Rules, line: &ProbeLine) -> Option<Self> {
        let mut state = G::start(rules, line.start).ok()?;
        let mut last_turn = Vec::new();
        for turn in line.turns {
            last_turn = state.read_turn(turn).ok()?;
            for &action in &last_turn {
                state.play(action).ok()?;
            }
        }
        state.outcome().is_none().then(|| Self {
            name: line.name.into(),
            state,
            last_turn,
        })
    }

    /// Returns the position after some random actions, or after fewer if the game would be over.
    fn random(rules: &G::Rules, actions: usize, draw: &mut dyn FnMut(usize) -> usize) -> Option<Self> {
        let mut state = G::start(rules, None).ok()?;
        let mut last_turn = Vec::new();
        let mut legal = Vec::new();
        let mut played = 0;
        while played < actions {
            state.legal_actions(&mut legal);
            let &action = legal.get(draw(legal.len()))?;
            let mut next = state.clone();
            next.play_legal(action);
            if next.outcome().is_some() {
                break;
            }
            if !state.is_mid_turn() {
                last_turn.clear();
            }
            last_turn.push(action);
            state = next;
            played += 1;
        }
        Some(Self {
            name: match played {
                0 => "Start".into(),
                _ => format!("After {played} random actions"),
            },
            state,
            last_turn,
        })
    }

    fn problem(rules: &G::Rules, level: u32, draw: &mut dyn FnMut(usize) -> usize) -> Option<Self> {
        let drawn = (0..ATTEMPTS).find_map(|_| G::draw_start(rules, level, draw))?;
        Some(Self {
            name: format!("Level {level}"),
            state: drawn.start,
            last_turn: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        Game as _,
        registry::{self, Visitor},
    };

    /// Returns the numbers of a linear congruential generator (Knuth, MMIX).
    fn draws() -> impl FnMut(usize) -> usize {
        let mut state = 1u64;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as usize) % below.max(1)
        }
    }

    /// Returns names and positions of a game's probes.
    fn probes(name: &str) -> Vec<(String, String)> {
        let game = registry::find(name).unwrap();
        let variant = game.variant(&game.rules(), None).unwrap();
        let probes = variant.probes(&mut draws()).into_iter();
        let named = probes.inspect(|probe| assert!(probe.state.outcome().is_none()));
        named.map(|probe| (probe.name, probe.state.position())).collect()
    }

    #[test]
    fn every_known_position_is_legal() {
        struct Lines;

        impl Visitor for Lines {
            type Output = usize;

            fn visit<G: Notation>(self) -> usize {
                G::PROBES.len()
            }
        }

        for name in registry::NAMES {
            let lines = registry::visit(name, Lines).unwrap();
            assert!(
                lines == 0 || probes(name).len() == lines,
                "a line of {name} is not legal"
            );
        }
    }

    #[test]
    fn every_game_has_eight_to_sixteen_different_probes_that_are_the_same_at_each_call() {
        for name in registry::NAMES {
            let found = probes(name);
            assert!((8..=16).contains(&found.len()), "{name}: {found:?}");
            let positions: BTreeSet<&String> = found.iter().map(|(_, position)| position).collect();
            assert_eq!(positions.len(), found.len(), "{name}: {found:?}");
            assert_eq!(probes(name), found);
        }
    }

    #[test]
    fn a_game_without_known_positions_has_drawn_ones() {
        let rules = Default::default();
        let probe = Probe::<crate::chess::Chess>::random(&rules, 6, &mut draws()).unwrap();
        assert_eq!(probe.name, "After 6 random actions");
        assert_eq!(probe.last_turn.len(), 1);
        assert!(
            probe.state.position().contains(" w "),
            "{}",
            probe.state.position()
        );
        // A game of Connect Four lasts at most 42 actions.
        let probe = Probe::<crate::connect_four::ConnectFour>::random(&Default::default(), 100, &mut draws());
        assert!(probe.unwrap().state.outcome().is_none());
    }
}
