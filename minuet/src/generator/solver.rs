//! Problems solved side by side: many searches, whose leaves travel to the network together.

use anyhow::Context as _;
use arena::{Evaluator, evaluator::Source};
use games::{
    Action, Game,
    generator::{End, GeneratorGame},
};
use search::{FirstPlay, GameKey, Reuse, Search, Settings};

/// What came of a problem.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The state at the end.
    pub state: GeneratorGame,
    /// Everything that was played, the marks included.
    pub actions: Vec<Action>,
    /// Traversals of all its decisions.
    pub visits: u64,
}

impl Attempt {
    /// Whether the problem is solved.
    pub fn is_solved(&self) -> bool {
        self.state.end() == Some(End::Solved)
    }
}

/// How problems are searched: as in training, without noise.
pub fn settings(visits: u32) -> Settings {
    Settings {
        traversals: visits,
        exploration: 1.25,
        first_play: FirstPlay::Reduction(0.1),
        leaves: 4,
        noise: None,
        random_symmetry: false,
        reuse: Reuse::Keep,
        discount: 0.97,
        max_share: 0.25,
        stop_when_solved: true,
        tree_bytes: 64 << 20,
    }
}

/// Plays every problem to its end with one search for each move; `at_once` of them side by side.
///
/// # Errors
/// Where the network does not answer.
pub fn solve(
    source: &Source,
    starts: &[GeneratorGame],
    settings: &Settings,
    seed: u64,
    at_once: usize,
) -> anyhow::Result<Vec<Attempt>> {
    let mut evaluator = Evaluator::<GeneratorGame>::new(source.clone(), ());
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
                one.search.gather(|leaf| evaluator.ask(slot, &leaf));
            }
            evaluator
                .hand_out_known(|slot, leaf, evaluation| running[slot].search.apply(leaf, evaluation))?;
            evaluator.flush(|slot, leaf, evaluation| {
                let applied = running[slot].search.apply(leaf, evaluation);
                applied.map_err(anyhow::Error::from)
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

    /// Plays as long as it is known what to play.
    fn play_decided(&mut self) -> anyhow::Result<()> {
        while !self.is_over() && self.search.is_decided() {
            let action = self
                .search
                .choose(0.0)
                .context("there is nothing to choose from")?;
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
    fn easy_problems_are_solved_without_a_network_however_many_run_at_once() {
        let narrow = Clan::start().after(1, Move(20)).unwrap();
        let red = narrow.after(3, Move(27)).unwrap();
        let starts: Vec<GeneratorGame> = [Clan::start(), narrow, red]
            .iter()
            .map(|clan| GeneratorGame::posed(&Rules::default(), Problem::Draw(clan.render())))
            .collect();
        for at_once in [1, 3] {
            let attempts = solve(&Source::Uniform, &starts, &settings(20_000), 1, at_once).unwrap();
            let lengths: Vec<usize> = attempts.iter().map(|attempt| attempt.actions.len()).collect();
            assert!(attempts.iter().all(Attempt::is_solved));
            assert_eq!(lengths, [1, 2, 3]);
        }
    }
}
