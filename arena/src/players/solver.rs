//! Solves problems of the generator game by many searches at once, whose leaves are evaluated in one batch.

use games::{
    Action, Game, IllegalAction,
    generator::{End, GeneratorGame},
};
use network::batched::{BatchedEvaluator, EvaluationSource};
use search::{ApplyError, FirstPlay, GameKey, Reuse, Search, Settings};

use network::{ModelName, NetworkError, name::NoModelName};

use crate::{
    PlayerError,
    players::{NetworkOptions, Networks},
};

/// Error: problems cannot be solved with a network.
#[derive(Debug, thiserror::Error)]
pub enum SolveError {
    /// The name is not the name of a network.
    #[error(transparent)]
    Name(#[from] NoModelName),
    /// The network cannot be opened.
    #[error(transparent)]
    Open(#[from] PlayerError),
    /// The network evaluates positions of another game.
    #[error("{model} is a network for {game}, not for {}", GeneratorGame::NAME)]
    Game {
        /// Name of the network.
        model: String,
        /// Game of the network.
        game: String,
    },
    /// The network did not answer.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An evaluation does not fit its leaf.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The search chose an action that the rules refuse.
    #[error(transparent)]
    Action(#[from] IllegalAction),
    /// A search without any visited action has no choice.
    #[error("the search has visited no action to choose from")]
    NoChoice,
}

/// Opens the network called `model`. `uniform` is a search without a network.
///
/// # Errors
/// [`SolveError`] if there is no such network, or if it is of another game.
pub fn open(model: &str) -> Result<EvaluationSource, SolveError> {
    if model == "uniform" {
        return Ok(EvaluationSource::Uniform);
    }
    let name: ModelName = model.parse()?;
    let network = Networks::new(NetworkOptions::default()).open(&name)?;
    let layout = &network.description().layout;
    if *layout != GeneratorGame::layout(()) {
        return Err(SolveError::Game {
            model: model.to_owned(),
            game: layout.game.clone(),
        });
    }
    Ok(network.source(0))
}

/// Result of one problem.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Final state.
    pub state: GeneratorGame,
    /// All actions played, marks included.
    pub actions: Vec<Action>,
    /// Visits summed over all decisions.
    pub visits: u64,
}

impl Attempt {
    /// True if the problem is solved.
    pub fn is_solved(&self) -> bool {
        self.state.end() == Some(End::Solved)
    }
}

/// Search settings for `visits` visits per action: those of training, without noise.
pub fn settings(visits: u32) -> Settings {
    Settings {
        visits,
        exploration: 1.25,
        first_play: FirstPlay::Reduction,
        first_play_reduction: 0.1,
        leaves: 4,
        noise_fraction: 0.0,
        random_symmetry: false,
        reuse: Reuse::Keep,
        discount: 0.97,
        max_share: 0.25,
        stop_when_solved: true,
        tree_bytes: 64 << 20,
        ..Settings::default()
    }
}

/// Plays every problem to its end with one search for each action; `at_once` problems run side by side.
///
/// # Errors
/// [`SolveError`] if the network does not answer.
pub fn solve(
    source: &EvaluationSource,
    starts: &[GeneratorGame],
    settings: &Settings,
    seed: u64,
    at_once: usize,
) -> Result<Vec<Attempt>, SolveError> {
    let mut evaluator = BatchedEvaluator::<GeneratorGame>::new(source.clone(), ());
    let mut attempts = Vec::with_capacity(starts.len());
    for (group, starts) in starts.chunks(at_once.max(1)).enumerate() {
        let mut running: Vec<Running> = starts
            .iter()
            .zip(0..)
            .map(|(start, number)| Running::new(start, settings, seed, (group * at_once) as u64 + number))
            .collect();
        while running.iter().any(|one| !one.is_over()) {
            for (slot, one) in running.iter_mut().enumerate() {
                one.play_decided()?;
                one.search.gather(|leaf| evaluator.add(slot, &leaf));
            }
            evaluator.take_known(|slot, leaf, evaluation| running[slot].search.apply(leaf, evaluation))?;
            evaluator.flush(|slot, leaf, evaluation| {
                let applied = running[slot].search.apply(leaf, evaluation);
                applied.map_err(SolveError::from)
            })?;
        }
        attempts.extend(running.into_iter().map(Running::finish));
    }
    Ok(attempts)
}

struct Running {
    search: Search<GeneratorGame>,
    actions: Vec<Action>,
}

impl Running {
    fn new(start: &GeneratorGame, settings: &Settings, seed: u64, number: u64) -> Self {
        let key = GameKey {
            run_seed: seed,
            game: number,
        };
        Self {
            search: Search::new(start.clone(), settings.clone(), key),
            actions: Vec::new(),
        }
    }

    fn is_over(&self) -> bool {
        self.search.state().outcome().is_some()
    }

    /// Plays actions while the search has decided on one.
    fn play_decided(&mut self) -> Result<(), SolveError> {
        while !self.is_over() && self.search.is_decided() {
            let action = self.search.choose(0.0).ok_or(SolveError::NoChoice)?;
            self.search.advance(action)?;
            self.actions.push(action);
        }
        Ok(())
    }

    fn finish(self) -> Attempt {
        Attempt {
            visits: self.search.counters().visits,
            state: self.search.state().clone(),
            actions: self.actions,
        }
    }
}

#[cfg(test)]
mod tests {
    use games::generator::{Clan, Move, Problem, Rules};

    use super::*;

    #[test]
    fn easy_problems_are_solved_without_a_network_one_or_three_at_once() {
        let narrow = Clan::start().after(1, Move(20)).unwrap();
        let red = narrow.after(3, Move(27)).unwrap();
        let starts: Vec<GeneratorGame> = [Clan::start(), narrow, red]
            .iter()
            .map(|clan| GeneratorGame::posed(&Rules::default(), Problem::Draw(clan.render())))
            .collect();
        for at_once in [1, 3] {
            let attempts = solve(&EvaluationSource::Uniform, &starts, &settings(20_000), 1, at_once).unwrap();
            let lengths: Vec<usize> = attempts.iter().map(|attempt| attempt.actions.len()).collect();
            assert!(attempts.iter().all(Attempt::is_solved));
            assert_eq!(lengths, [1, 2, 3]);
        }
    }
}
