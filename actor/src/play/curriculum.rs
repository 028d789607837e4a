//! The curriculum of games that are about problems: draws the next problem, raises the levels of difficulty, and shows progress as
//! gauges.
//!
//! Each kind of problem has a level of its own ([`Game::problem_kinds`]). Each actor keeps its levels in its spool folder, so that
//! they survive a restart. A level is raised when the share of solved problems among the last ones of the kind and level reaches
//! a threshold. Counting starts again with the new level.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use config::ProblemsConfig;
use games::{Drawn, Game};
use metrics::{describe_gauge, gauge};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};
use serde::{Deserialize, Serialize};

const FILE: &str = "curriculum.json";

/// Share of solved problems, among the latest ones of a level, at which the level is raised.
const RAISE_AT: f64 = 0.7;
/// Share of played problems from lower levels, so that the network does not forget them.
const EASIER: f64 = 0.3;

/// The curriculum that the threads of an actor share.
#[derive(Debug)]
pub struct Curriculum {
    config: ProblemsConfig,
    path: PathBuf,
    /// Progress by kind of problem. Kinds that have not been drawn yet may be missing at the end.
    kinds: Mutex<Vec<Kind>>,
}

/// Progress with one kind of problem.
#[derive(Clone, Debug)]
struct Kind {
    level: u32,
    /// Results of the last problems of the level: the length of the solution, `None` if unsolved.
    results: VecDeque<Option<usize>>,
}

/// Progress with one kind of problem at its present level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindProgress {
    /// Present level.
    pub level: u32,
    /// Number of latest problems whose results are known, at most the window.
    pub recent: usize,
    /// Number of solved ones among them.
    pub solved: usize,
    /// Moves of their solutions, summed.
    pub moves: usize,
}

/// Version of the file.
const FORMAT: u32 = 2;

#[derive(Deserialize, Serialize)]
struct KeptLevels {
    format: u32,
    levels: Vec<u32>,
}

/// Place of a problem in the curriculum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Number of its kind, as in [`Game::problem_kinds`].
    pub kind: usize,
    /// Level of difficulty, from 1.
    pub level: u32,
}

/// The next game.
#[derive(Debug)]
pub enum NextGame<G> {
    /// A game from the usual start.
    Usual,
    /// A problem to be played.
    Problem(G, Rung),
    /// A problem with its solution, to be recorded without being played.
    Known(Drawn<G>),
}

impl Curriculum {
    /// Continues with the level saved in `folder`, or begins with the configured level. `levels` is the highest level of the game.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn open(folder: &Path, config: &ProblemsConfig, levels: u32) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let unusable = || format!("cannot use {}", path.display());
        let mut config = config.clone();
        config.max_level = config.max_level.min(levels);
        config.level = config.level.min(config.max_level);
        let levels = match fs::read(&path) {
            Ok(bytes) => {
                let kept: KeptLevels = serde_json::from_slice(&bytes).with_context(unusable)?;
                let format = kept.format;
                ensure!(
                    format == FORMAT,
                    "{}: this build reads format {FORMAT}, and the file has format {format}",
                    unusable()
                );
                kept.levels
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![config.level],
            Err(error) => return Err(error).with_context(unusable),
        };
        let kinds = levels.into_iter().map(|level| Kind {
            // The configuration may have been changed since the level was saved.
            level: level.clamp(config.level, config.max_level),
            results: VecDeque::new(),
        });
        Ok(Self {
            path,
            kinds: Mutex::new(kinds.collect()),
            config,
        })
    }

    /// Returns the progress with a kind of problem.
    pub fn progress(&self, kind: usize) -> KindProgress {
        let kinds = self.kinds.lock();
        let results = kinds.get(kind).map(|kind| &kind.results);
        let solved = results.into_iter().flatten().flatten();
        KindProgress {
            level: kinds.get(kind).map_or(self.config.level, |kind| kind.level),
            recent: results.map_or(0, VecDeque::len),
            solved: solved.clone().count(),
            moves: solved.sum(),
        }
    }

    /// Draws the next game. All random draws depend only on `key`.
    pub fn next<G: Game>(&self, rules: &G::Rules, key: GameKey) -> NextGame<G> {
        if G::LEVELS == 0 {
            return NextGame::Usual;
        }
        let mut draws = Draws::new(key, 0, Purpose::Problem);
        let (kind, rules) = draw_kind::<G>(rules, &mut draws);
        let is_known = draws.unit() < f64::from(self.config.known_solutions);
        let present = self.progress(kind).level;
        let level = if is_known {
            1 + draws.below(self.config.max_level as usize) as u32
        } else if draws.unit() < EASIER {
            1 + draws.below(present as usize) as u32
        } else {
            present
        };
        match G::draw_start(&rules, level, &mut |below| draws.below(below)) {
            None => NextGame::Usual,
            Some(drawn) if is_known => NextGame::Known(drawn),
            Some(drawn) => NextGame::Problem(drawn.start, Rung { kind, level }),
        }
    }

    /// Counts the result of a played problem: the length of its solution, or `None`. Returns the new level if that raises the
    /// level of its kind.
    ///
    /// # Errors
    /// The new level cannot be saved. The new level then applies until the next restart.
    pub fn note(&self, rung: Rung, solution: Option<usize>) -> anyhow::Result<Option<u32>> {
        let Rung { kind, level } = rung;
        let (raised, all) = {
            let mut kinds = self.kinds.lock();
            while kinds.len() <= kind {
                kinds.push(Kind {
                    level: self.config.level,
                    results: VecDeque::new(),
                });
            }
            let Some(own) = kinds.get_mut(kind).filter(|own| own.level == level) else {
                return Ok(None);
            };
            let window = self.config.window as usize;
            if own.results.len() >= window {
                own.results.pop_front();
            }
            own.results.push_back(solution);
            let solved = own.results.iter().flatten().count();
            let is_enough = solved as f64 >= RAISE_AT * window as f64;
            if own.results.len() < window || !is_enough || level >= self.config.max_level {
                return Ok(None);
            }
            own.level += 1;
            own.results.clear();
            let all: Vec<u32> = kinds.iter().map(|kind| kind.level).collect();
            (level + 1, all)
        };
        let kept = serde_json::to_vec(&KeptLevels {
            format: FORMAT,
            levels: all,
        })?;
        durable::write(&self.path, &kept).with_context(|| format!("cannot use {}", self.path.display()))?;
        Ok(Some(raised))
    }
}

/// Draws a kind of problem by the shares of the kinds. Returns its number, and rules that draw only it.
fn draw_kind<G: Game>(rules: &G::Rules, draws: &mut Draws) -> (usize, G::Rules) {
    let kinds = G::problem_kinds(rules);
    let sum: u32 = kinds.iter().map(|kind| kind.share).sum();
    let mut left = draws.below(sum.max(1) as usize) as u32;
    for (number, kind) in kinds.into_iter().enumerate() {
        if left < kind.share {
            return (number, kind.rules);
        }
        left -= kind.share;
    }
    (0, rules.clone())
}

const LEVEL: &str = "minuet_actor_problem_level";
const RECENT: &str = "minuet_actor_problem_recent";
const SOLVED: &str = "minuet_actor_problem_recent_solved";
const MOVES: &str = "minuet_actor_problem_recent_moves";

/// Gauges of all kinds of problems of a game. Sums over several actors can be divided: solved by recent, moves by solved.
#[derive(Debug)]
pub struct ProgressGauges {
    /// Number and name of each kind that is drawn.
    kinds: Vec<(usize, &'static str)>,
}

impl ProgressGauges {
    /// Describes the gauges of the kinds that these rules draw. A game without problems has none.
    pub fn new<G: Game>(rules: &G::Rules) -> Self {
        describe_gauge!(LEVEL, "Level of difficulty of the problems, by kind.");
        describe_gauge!(
            RECENT,
            "Latest problems of the present level, which decide when it is raised."
        );
        describe_gauge!(
            SOLVED,
            "Solved ones among the latest problems of the present level."
        );
        describe_gauge!(MOVES, "Moves of the solutions of these problems, summed.");
        let kinds = G::problem_kinds(rules).into_iter().enumerate();
        let drawn = kinds.filter(|(_, kind)| kind.share > 0);
        Self {
            kinds: drawn.map(|(number, kind)| (number, kind.name)).collect(),
        }
    }

    /// Sets the gauges.
    pub fn show(&self, curriculum: &Curriculum) {
        for &(number, name) in &self.kinds {
            let progress = curriculum.progress(number);
            gauge!(LEVEL, "kind" => name).set(progress.level);
            gauge!(RECENT, "kind" => name).set(progress.recent as f64);
            gauge!(SOLVED, "kind" => name).set(progress.solved as f64);
            gauge!(MOVES, "kind" => name).set(progress.moves as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use games::generator::{GeneratorGame, Rules};

    use super::*;

    fn config() -> ProblemsConfig {
        ProblemsConfig {
            level: 2,
            max_level: 4,
            window: 10,
            ..ProblemsConfig::default()
        }
    }

    const fn drawing(level: u32) -> Rung {
        Rung { kind: 0, level }
    }

    #[test]
    fn the_level_rises_with_success_and_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let curriculum = Curriculum::open(folder.path(), &config(), 48).unwrap();
        for number in 0..30 {
            // Six of ten are not enough, and other levels do not count.
            let solution = (number % 10 < 6).then_some(4);
            assert_eq!(curriculum.note(drawing(2), solution).unwrap(), None);
            assert_eq!(curriculum.note(drawing(1), Some(2)).unwrap(), None);
        }
        let progress = |recent, solved, moves, level| KindProgress {
            level,
            recent,
            solved,
            moves,
        };
        assert_eq!(curriculum.progress(0), progress(10, 6, 24, 2));
        let mut raised = (0..10).filter_map(|_| curriculum.note(drawing(2), Some(3)).unwrap());
        assert_eq!(raised.next(), Some(3));
        let again = Curriculum::open(folder.path(), &config(), 48).unwrap();
        assert_eq!(again.progress(0), progress(0, 0, 0, 3));
        for _ in 0..10 {
            again.note(drawing(3), Some(3)).unwrap();
            again.note(drawing(4), Some(3)).unwrap();
        }
        assert_eq!(
            again.progress(0).level,
            4,
            "no higher than the configuration says"
        );
        let low = Curriculum::open(folder.path(), &config(), 3).unwrap();
        assert_eq!(low.progress(0).level, 3, "no higher than the game has");
        for text in [
            "damaged",
            r#"{"format":3,"levels":[3]}"#,
            r#"{"format":2,"level":3}"#,
        ] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert!(Curriculum::open(folder.path(), &config(), 48).is_err());
            assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), text);
        }
    }

    /// Kinds are told apart by the rungs of the problems that were drawn.
    #[test]
    fn each_kind_of_problem_has_a_level_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let only_played = ProblemsConfig {
            known_solutions: 0.0,
            ..config()
        };
        let rules = Rules {
            pairs: 40,
            ..Rules::default()
        };
        let curriculum = Curriculum::open(folder.path(), &only_played, 48).unwrap();
        let next = |curriculum: &Curriculum, game| {
            let key = GameKey { run_seed: 9, game };
            match curriculum.next::<GeneratorGame>(&rules, key) {
                NextGame::Problem(start, rung) => (start.problem().second_target().is_some(), rung),
                other => panic!("{other:?}"),
            }
        };
        let mut pairs = 0;
        for game in 0..200 {
            let (is_pair, rung) = next(&curriculum, game);
            pairs += u32::from(is_pair);
            // Only pairs are solved.
            curriculum.note(rung, is_pair.then_some(5)).unwrap();
        }
        assert!((50..110).contains(&pairs), "{pairs}");
        assert_eq!(
            (curriculum.progress(0).level, curriculum.progress(1).level),
            (2, 4)
        );
        let again = Curriculum::open(folder.path(), &only_played, 48).unwrap();
        assert_eq!((again.progress(0).level, again.progress(1).level), (2, 4));
        for game in 0..50 {
            let (is_pair, rung) = next(&again, game);
            let (kind, level) = if is_pair { (1, 4) } else { (0, 2) };
            assert!(rung.kind == kind && rung.level <= level, "{rung:?}");
        }
    }

    #[test]
    fn games_are_drawn_by_their_keys_in_the_configured_shares() {
        let folder = tempfile::tempdir().unwrap();
        let curriculum = Curriculum::open(folder.path(), &config(), 48).unwrap();
        let (mut known, mut easier) = (0, 0);
        for game in 0..400 {
            let key = GameKey { run_seed: 3, game };
            let text = |next: NextGame<GeneratorGame>| format!("{next:?}");
            let next = || curriculum.next::<GeneratorGame>(&Rules::default(), key);
            assert_eq!(text(next()), text(next()));
            match next() {
                NextGame::Known(_) => known += 1,
                NextGame::Problem(_, rung) => easier += usize::from(rung.level < 2),
                NextGame::Usual => panic!("the generator game has problems"),
            }
        }
        assert!((160..240).contains(&known), "{known}");
        // Three in ten of the rest, of which every other is level 1.
        assert!((15..50).contains(&easier), "{easier}");
    }
}
