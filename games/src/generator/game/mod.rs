//! [`GeneratorGame`]: the state of play with a clan, a problem, and the path so far.
//!
//! | module | content |
//! |---|---|
//! | `making` | the moves, and which of them are offered |
//! | `start` | starts and positions in JSON |
//! | `contract` | the [`Game`](crate::Game): rules, rows, policy, problems |

mod contract;
mod making;
mod start;

use std::sync::Arc;

use super::{
    canonical::ProblemColors,
    clan::Clan,
    grid::Grid,
    legal::Visited,
    moves::{self, Move},
    problem::{Examples, ExamplesError, Problem},
    rules::{Cycles, Rules},
};
use crate::game::Action;

/// End of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpisodeEnd {
    /// The problem was solved. The value is 1.
    Solved,
    /// A move failed. The value is 0, and the state is the one position "Oops".
    Oops,
    /// The move limit was reached. The value is 0.
    MoveLimit,
    /// Without a problem, a grid or a pair was proposed. The value is 0.
    Proposed,
}

/// Parts of the state that do not change within an episode.
#[derive(Debug, PartialEq)]
struct Episode {
    rules: Rules,
    problem: Problem,
    examples: Examples,
    colors: ProblemColors,
}

/// State of the generator game.
///
/// Every move that fails leads to one distinguished position, "Oops": whatever came before, the states are equal, have one
/// [`GeneratorGame::key`], one row, one text and an empty render.
///
/// ```
/// use games::{
///     Game, Outcome,
///     generator::{GeneratorGame, Move},
/// };
///
/// // Draw a black grid of 8×7. The clan at the start draws 8×8; imp 2 is its height.
/// let target = vec![vec![0; 8]; 7];
/// let start = serde_json::json!({ "target": target }).to_string();
/// let mut state = GeneratorGame::start(&Default::default(), Some(&start))?;
/// let decrement = (0..38).map(Move).find(|action| action.name() == "DEC").ok_or("no such move")?;
/// state.play(GeneratorGame::action(2, decrement))?;
/// state.play(GeneratorGame::action(0, Move::MARK_COMPLETE))?;
/// assert_eq!(state.outcome(), Some(Outcome::Scored(1.0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GeneratorGame {
    clan: Clan,
    /// Hash of the clan. [`OOPS_HASH`] after an Oops.
    hash: u64,
    episode: Arc<Episode>,
    step_marked: bool,
    /// Number of moves so far.
    plies: u32,
    end: Option<EpisodeEnd>,
    /// Positions of the episode so far. Empty if cycles are allowed.
    visited: Visited,
}

impl PartialEq for GeneratorGame {
    /// True if the positions are equal, with their histories. All Oops positions are equal.
    fn eq(&self, other: &Self) -> bool {
        if self.is_oops() || other.is_oops() {
            return self.is_oops() && other.is_oops();
        }
        self.clan == other.clan
            && self.step_marked == other.step_marked
            && self.plies == other.plies
            && self.end == other.end
            && self.visited == other.visited
            && self.episode == other.episode
    }
}

impl Clone for GeneratorGame {
    fn clone(&self) -> Self {
        Self {
            episode: Arc::clone(&self.episode),
            visited: self.visited.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        // States of one search have the same problem, so this is seldom needed.
        if !Arc::ptr_eq(&self.episode, &source.episode) {
            self.episode = Arc::clone(&source.episode);
        }
        self.visited.clone_from(&source.visited);
        self.clan = source.clan;
        self.hash = source.hash;
        self.step_marked = source.step_marked;
        self.plies = source.plies;
        self.end = source.end;
    }
}

/// Number added to the hash of a clan after the step was marked, so that one clan before and after it is two positions.
const MARKED_SALT: u64 = 0x51ab_7d3e_9c04_f265;
/// Takes the place of the hash of the clan in the position "Oops". No clan is known to have this hash.
const OOPS_HASH: u64 = 0xd6e8_feb8_6659_fd93;

impl GeneratorGame {
    /// Returns the state at the start of an episode, with the usual start clan.
    pub fn posed(rules: &Rules, problem: Problem) -> Self {
        Self::from_clan(rules, problem, Clan::start())
    }

    /// Returns the state at the start of an episode, with any clan.
    pub fn from_clan(rules: &Rules, problem: Problem, clan: Clan) -> Self {
        let mut state = Self {
            hash: clan.hash(),
            clan,
            episode: Arc::new(Episode {
                rules: rules.clone(),
                colors: ProblemColors::of(&problem, &Examples::NONE),
                problem,
                examples: Examples::NONE,
            }),
            step_marked: false,
            plies: 0,
            end: None,
            visited: Visited::default(),
        };
        state.record_visit();
        state
    }

    /// Returns the state with these examples of the task of its problem, in place of others. They judge nothing.
    ///
    /// # Errors
    /// [`ExamplesError::NoPair`] if there are some and the problem is not a pair.
    pub fn with_examples(self, examples: Examples) -> Result<Self, ExamplesError> {
        if !examples.is_empty() && self.problem().second_target().is_none() {
            return Err(ExamplesError::NoPair);
        }
        Ok(self.showing(examples))
    }

    /// Returns the state without examples.
    pub fn without_examples(self) -> Self {
        self.showing(Examples::NONE)
    }

    fn showing(mut self, examples: Examples) -> Self {
        let Episode { rules, problem, .. } = &*self.episode;
        self.episode = Arc::new(Episode {
            rules: rules.clone(),
            problem: problem.clone(),
            colors: ProblemColors::of(problem, &examples),
            examples,
        });
        self
    }

    /// Returns the action of a move of an imp.
    pub const fn action(imp: usize, action: Move) -> Action {
        moves::action(imp, action)
    }

    /// Returns the imp and move of an action below [`Game::actions`].
    pub const fn imp_and_move(action: Action) -> (usize, Move) {
        moves::imp_and_move(action)
    }

    /// Returns the present clan. After an Oops, the start clan.
    pub const fn clan(&self) -> &Clan {
        &self.clan
    }

    /// Returns the grid that the present clan draws. After an Oops all cells are absent.
    pub fn render(&self) -> Grid {
        if self.is_oops() {
            Grid::ABSENT
        } else {
            self.clan.render()
        }
    }

    /// Returns the problem of the episode. After an Oops it is no longer part of the position, so rows and comparisons
    /// leave it out. It stays available to show people which grid was to be drawn.
    pub fn problem(&self) -> &Problem {
        &self.episode.problem
    }

    /// Returns the examples of the task of the problem. After an Oops they are no longer part of the position either.
    pub fn examples(&self) -> &Examples {
        &self.episode.examples
    }

    /// Returns the rules of the episode.
    pub fn rules(&self) -> &Rules {
        &self.episode.rules
    }

    /// True if the first grid of a pair, or of a proposal, was marked as a step.
    pub const fn step_marked(&self) -> bool {
        self.step_marked
    }

    /// Returns the number of moves so far. 0 after an Oops.
    pub const fn plies(&self) -> u32 {
        self.plies
    }

    /// Returns the end of the episode. `None` while it runs.
    pub const fn end(&self) -> Option<EpisodeEnd> {
        self.end
    }

    /// Returns the number added to the hash of a clan to get its key in `visited`.
    fn salt(&self) -> u64 {
        if self.step_marked { MARKED_SALT } else { 0 }
    }

    /// True if the last move failed.
    fn is_oops(&self) -> bool {
        self.end == Some(EpisodeEnd::Oops)
    }

    /// Makes this the position "Oops", which holds nothing of what came before.
    fn become_oops(&mut self) {
        self.clan = Clan::start();
        self.hash = OOPS_HASH;
        self.step_marked = false;
        self.plies = 0;
        self.visited.clear();
        self.end = Some(EpisodeEnd::Oops);
    }

    /// Returns the hash of the clan and the mark, by which positions of one episode are told apart. All Oops positions
    /// have one key, which no other position has.
    pub fn key(&self) -> u64 {
        self.hash.wrapping_add(self.salt())
    }

    /// Adds the present position to those visited, if cycles are forbidden.
    fn record_visit(&mut self) {
        if self.episode.rules.cycles == Cycles::Forbid {
            self.visited.insert(self.key(), self.clan.len());
        }
    }
}
