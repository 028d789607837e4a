//! Solves problems of the generator game by many searches at once, whose leaves are evaluated in one batch.

use anyhow::{Context as _, bail};
use games::{
    Action, Game,
    generator::{Encoding, EpisodeEnd, GeneratorGame, Grid, Problem},
};
use network::batched::{BatchedEvaluator, EvaluationSource};
use search::{FirstPlay, GameKey, Reuse, Search, Settings};

use network::{ModelFile, ModelName};

use crate::players::{NetworkOptions, Networks};

/// A network that is to solve problems, or none.
#[derive(Clone, Debug)]
pub struct Solver {
    source: EvaluationSource,
    encoding: Encoding,
}

impl Solver {
    /// A search without a network. Its evaluations ignore the examples of a problem, like the rest of it.
    pub const UNIFORM: Self = Self {
        source: EvaluationSource::Uniform,
        encoding: Encoding::Examples,
    };

    /// True if problems may have examples.
    pub fn takes_examples(&self) -> bool {
        self.encoding == Encoding::Examples
    }

    /// Returns the problem as it can be posed: without its examples, if the network takes none.
    pub fn posed(&self, start: &GeneratorGame) -> GeneratorGame {
        let start = start.clone();
        match self.encoding {
            Encoding::Examples => start,
            Encoding::Plain => start.without_examples(),
        }
    }
}

/// Opens the network called `model`. `uniform` is a search without a network.
///
/// # Errors
/// There is no such network, or it is of another game.
pub fn open(model: &str) -> anyhow::Result<Solver> {
    if model == "uniform" {
        return Ok(Solver::UNIFORM);
    }
    let name: ModelName = model.parse()?;
    let network = Networks::new(NetworkOptions::default()).open(&name)?;
    let layout = &network.description().layout;
    let mut encodings = [Encoding::Plain, Encoding::Examples].into_iter();
    let encoding = encodings.find(|&encoding| GeneratorGame::layout(encoding) == *layout);
    let encoding = encoding.with_context(|| {
        let (game, own) = (&layout.game, GeneratorGame::NAME);
        format!("{model} is a network for {game}, not for {own}")
    })?;
    Ok(Solver {
        source: network.source(0)?,
        encoding,
    })
}

/// Knowledge about a network's training on pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// The network was trained on pairs, or none is asked.
    Seen,
    /// The network's file does not say: it is from another program, or behind an inference server.
    Unknown,
}

/// Looks whether the network called `model` was trained on pairs, as its file says.
///
/// # Errors
/// The network was not trained on pairs, or its file cannot be read.
pub fn check_pairs(model: &str) -> anyhow::Result<Pairs> {
    if model == "uniform" {
        return Ok(Pairs::Seen);
    }
    let name: ModelName = model.parse()?;
    if matches!(name, ModelName::Server { .. }) {
        return Ok(Pairs::Unknown);
    }
    match ModelFile::find(&name)?.pairs_seen()? {
        Some(0) => bail!(
            "{model} was not trained on a single pair of grids: train it with game.rules.pairs above 0, or use --model uniform"
        ),
        Some(_) => Ok(Pairs::Seen),
        None => Ok(Pairs::Unknown),
    }
}

/// Result of one problem.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Final state.
    pub state: GeneratorGame,
    /// State on the way with the drawing nearest to the goal: with the step marked, if it was, and then with the fewest wrong
    /// cells. The earliest of equal ones. For a solved problem it is the final state.
    pub nearest: GeneratorGame,
    /// All actions played, marks included.
    pub actions: Vec<Action>,
    /// Visits summed over all decisions.
    pub visits: u64,
}

impl Attempt {
    /// True if the problem is solved.
    pub fn is_solved(&self) -> bool {
        self.state.end() == Some(EpisodeEnd::Solved)
    }
}

/// Number of cells, 0 to 64, in which the drawing of a state differs from the grid that is to be drawn next. 64 without a
/// problem.
pub fn wrong_cells(state: &GeneratorGame) -> usize {
    let target = match state.problem() {
        Problem::Pair(_, second) if state.step_marked() => second,
        Problem::Pair(first, _) | Problem::Draw(first) => first,
        Problem::Free => return Grid::ABSENT.cells().len(),
    };
    let render = state.render();
    let cells = render.cells().iter().zip(target.cells());
    cells.filter(|(drawn, wanted)| drawn != wanted).count()
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
/// The network does not answer, or takes no examples and a problem has some ([`Solver::posed`]).
pub fn solve(
    solver: &Solver,
    starts: &[GeneratorGame],
    settings: &Settings,
    seed: u64,
    at_once: usize,
) -> anyhow::Result<Vec<Attempt>> {
    solve_watched(solver, starts, settings, seed, at_once, &mut |_| {})
}

/// Solves as [`solve`] does, and calls `watch` with the search of each unfinished problem after each batch of evaluations.
///
/// # Errors
/// As [`solve`].
pub fn solve_watched(
    solver: &Solver,
    starts: &[GeneratorGame],
    settings: &Settings,
    seed: u64,
    at_once: usize,
    watch: &mut dyn FnMut(&Search<GeneratorGame>),
) -> anyhow::Result<Vec<Attempt>> {
    let mut evaluator = BatchedEvaluator::<GeneratorGame>::new(solver.source.clone(), solver.encoding);
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
            evaluator
                .flush(|slot, leaf, evaluation| anyhow::Ok(running[slot].search.apply(leaf, evaluation)?))?;
            for one in running.iter().filter(|one| !one.is_over()) {
                watch(&one.search);
            }
        }
        attempts.extend(running.into_iter().map(Running::finish));
    }
    Ok(attempts)
}

struct Running {
    search: Search<GeneratorGame>,
    actions: Vec<Action>,
    nearest: GeneratorGame,
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
            nearest: start.clone(),
        }
    }

    fn is_over(&self) -> bool {
        self.search.state().outcome().is_some()
    }

    /// Plays actions while the search has decided on one.
    fn play_decided(&mut self) -> anyhow::Result<()> {
        while !self.is_over() && self.search.is_decided() {
            let action = self.search.choose(0.0).context("the search chose no action")?;
            self.search.advance(action)?;
            self.actions.push(action);
            let state = self.search.state();
            let distance = |state: &GeneratorGame| (!state.step_marked(), wrong_cells(state));
            let is_nearer =
                state.end() != Some(EpisodeEnd::Oops) && distance(state) < distance(&self.nearest);
            if is_nearer || state.end() == Some(EpisodeEnd::Solved) {
                self.nearest = state.clone();
            }
        }
        Ok(())
    }

    fn finish(self) -> Attempt {
        Attempt {
            visits: self.search.counters().visits,
            state: self.search.state().clone(),
            nearest: self.nearest,
            actions: self.actions,
        }
    }
}

#[cfg(test)]
mod tests {
    use games::generator::{Clan, Example, Examples, Move, Rules};

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
            let attempts = solve(&Solver::UNIFORM, &starts, &settings(20_000), 1, at_once).unwrap();
            let lengths: Vec<usize> = attempts.iter().map(|attempt| attempt.actions.len()).collect();
            assert!(attempts.iter().all(Attempt::is_solved));
            assert_eq!(lengths, [1, 2, 3]);
            assert!(attempts.iter().all(|attempt| attempt.nearest == attempt.state));
        }
    }

    /// Two moves are too few for a grid of one cell, so the nearest drawing is the one with one row or column less.
    #[test]
    fn an_unsolved_problem_keeps_the_nearest_drawing() {
        let rules = Rules {
            move_limit: 2,
            ..Rules::default()
        };
        let cell = Grid::from_rows(&[vec![0]]).unwrap();
        let start = GeneratorGame::posed(&rules, Problem::Draw(cell));
        assert_eq!(wrong_cells(&start), 63);
        let attempts = solve(&Solver::UNIFORM, &[start], &settings(64), 1, 1).unwrap();
        let [attempt] = &attempts[..] else {
            panic!("{attempts:?}")
        };
        assert!(!attempt.is_solved());
        assert_ne!(attempt.nearest.end(), Some(EpisodeEnd::Oops));
        assert!(wrong_cells(&attempt.nearest) <= 63);
    }

    /// A network of a run without examples is not shown them, and one of a run with examples is.
    #[test]
    fn examples_are_left_out_for_networks_that_take_none() {
        let folder = tempfile::tempdir().unwrap();
        let grid = |color: u8| Grid::from_rows(&[vec![color; 2]]).unwrap();
        let example = Example {
            input: grid(3),
            output: grid(4),
        };
        let rules = Rules {
            move_limit: 2,
            ..Rules::default()
        };
        let start = GeneratorGame::posed(&rules, Problem::Pair(grid(1), grid(2)));
        let start = start
            .with_examples(Examples::new(vec![example]).unwrap())
            .unwrap();
        for encoding in [Encoding::Plain, Encoding::Examples] {
            let metadata = onnx::Metadata {
                layout: GeneratorGame::layout(encoding),
                step: 1,
            };
            let path = folder.path().join("network.onnx");
            std::fs::write(&path, onnx::random::model(&metadata, 1, 8, 1).unwrap()).unwrap();
            let solver = open(path.to_str().unwrap()).unwrap();
            let is_plain = encoding == Encoding::Plain;
            assert_eq!(solver.takes_examples(), !is_plain);
            assert_eq!(solver.posed(&start).examples().is_empty(), is_plain);
            for (start, is_possible) in [(solver.posed(&start), true), (start.clone(), !is_plain)] {
                let attempts = solve(&solver, &[start], &settings(4), 1, 1);
                assert_eq!(attempts.is_ok(), is_possible, "{attempts:?}");
            }
        }
        assert_eq!(Solver::UNIFORM.posed(&start), start);
    }

    /// A file says how many pairs its network was trained on; one that says nothing may be from another program.
    #[test]
    fn a_network_that_has_not_seen_a_pair_is_refused_for_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = onnx::Metadata {
            layout: GeneratorGame::layout(Encoding::Plain),
            step: 1,
        };
        let file = onnx::random::model(&metadata, 1, 8, 1).unwrap();
        let check = |pairs: Option<&str>| {
            let file = match pairs {
                Some(pairs) => onnx::model::with_entry(&file, onnx::model::PAIRS_KEY, pairs).unwrap(),
                None => file.clone(),
            };
            let path = folder.path().join("network.onnx");
            std::fs::write(&path, file).unwrap();
            check_pairs(path.to_str().unwrap())
        };
        let refused = check(Some("0")).unwrap_err().to_string();
        assert!(refused.contains("not trained on a single pair"), "{refused}");
        assert_eq!(check(Some("7")).unwrap(), Pairs::Seen);
        assert_eq!(check(None).unwrap(), Pairs::Unknown);
        assert_eq!(check_pairs("uniform").unwrap(), Pairs::Seen);
        assert_eq!(check_pairs("http://127.0.0.1:1").unwrap(), Pairs::Unknown);
    }
}
