//! The curriculum of games that are about problems: draws the next problem and raises the level of difficulty.
//!
//! Each actor has a level of its own, kept in its spool folder, so that it survives a restart. The level is raised when the share
//! of solved problems among the last ones of the level reaches a threshold. Counting starts again with the new level.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
};

use config::ProblemsConfig;
use games::{Drawn, Game};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};
use serde::{Deserialize, Serialize};

const FILE: &str = "curriculum.json";

/// The curriculum that the threads of an actor share.
#[derive(Debug)]
pub struct Curriculum {
    config: ProblemsConfig,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    level: u32,
    /// Results of the last problems of the level: true if solved.
    results: VecDeque<bool>,
}

/// Version of the file.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Earlier builds wrote no version.
    #[serde(default = "format")]
    format: u32,
    level: u32,
}

fn format() -> u32 {
    FORMAT
}

/// The next game.
#[derive(Debug)]
pub enum Next<G> {
    /// A game from the usual start.
    Usual,
    /// A problem of this level, to be played.
    Problem(G, u32),
    /// A problem with its solution, to be recorded without being played.
    Known(Drawn<G>),
}

/// Error: the file of the curriculum cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the curriculum in {path}")]
pub struct CurriculumError {
    path: PathBuf,
    source: io::Error,
}

impl Curriculum {
    /// Continues with the level saved in `folder`, or begins with the configured level. `levels` is the highest level of the game.
    ///
    /// # Errors
    /// [`CurriculumError`] if the file exists and cannot be read.
    pub fn open(folder: &Path, config: &ProblemsConfig, levels: u32) -> Result<Self, CurriculumError> {
        let path = folder.join(FILE);
        let fault = |source| CurriculumError {
            path: path.clone(),
            source,
        };
        let mut config = config.clone();
        config.max_level = config.max_level.min(levels);
        config.level = config.level.min(config.max_level);
        let level = match fs::read(&path) {
            Ok(bytes) => {
                let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| fault(error.into()))?;
                if kept.format != FORMAT {
                    let reason = format!(
                        "its format {} is unknown to this build; start the build that wrote it, or a newer one",
                        kept.format
                    );
                    return Err(fault(io::Error::other(reason)));
                }
                // The configuration may have been changed since the level was saved.
                kept.level.clamp(config.level, config.max_level)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => config.level,
            Err(error) => return Err(fault(error)),
        };
        Ok(Self {
            config,
            path,
            state: Mutex::new(State {
                level,
                results: VecDeque::new(),
            }),
        })
    }

    /// The present level.
    pub fn level(&self) -> u32 {
        self.state.lock().level
    }

    /// True if an unsolved problem is also recorded as the problem that its actions do solve.
    pub fn hindsight(&self) -> bool {
        self.config.hindsight
    }

    /// Draws the next game. All random draws depend only on `key`.
    pub fn next<G: Game>(&self, rules: &G::Rules, key: GameKey) -> Next<G> {
        if G::LEVELS == 0 {
            return Next::Usual;
        }
        let mut draws = Draws::new(key, 0, Purpose::Problem);
        let is_known = draws.unit() < f64::from(self.config.known_solutions);
        let present = self.level();
        let level = if is_known {
            1 + draws.below(self.config.max_level as usize) as u32
        } else if draws.unit() < f64::from(self.config.easier) {
            1 + draws.below(present as usize) as u32
        } else {
            present
        };
        match G::draw_start(rules, level, &mut |below| draws.below(below)) {
            None => Next::Usual,
            Some(drawn) if is_known => Next::Known(drawn),
            Some(drawn) => Next::Problem(drawn.start, level),
        }
    }

    /// Counts the result of a played problem. Returns the new level if that raises it.
    ///
    /// # Errors
    /// [`CurriculumError`] if the new level cannot be saved. It is in force until a restart all the same.
    pub fn note(&self, level: u32, is_solved: bool) -> Result<Option<u32>, CurriculumError> {
        let raised = {
            let mut state = self.state.lock();
            if level != state.level {
                return Ok(None);
            }
            let window = self.config.window as usize;
            if state.results.len() >= window {
                state.results.pop_front();
            }
            state.results.push_back(is_solved);
            let solved = state.results.iter().filter(|&&is_solved| is_solved).count();
            let is_enough = solved as f64 >= f64::from(self.config.raise_at) * window as f64;
            if state.results.len() < window || !is_enough || level >= self.config.max_level {
                return Ok(None);
            }
            state.level += 1;
            state.results.clear();
            state.level
        };
        let kept = serde_json::to_vec(&Kept {
            format: FORMAT,
            level: raised,
        })
        .map_err(io::Error::from);
        kept.and_then(|bytes| durable::write(&self.path, &bytes))
            .map_err(|source| CurriculumError {
                path: self.path.clone(),
                source,
            })?;
        Ok(Some(raised))
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

    #[test]
    fn the_level_rises_with_success_and_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let curriculum = Curriculum::open(folder.path(), &config(), 48).unwrap();
        for number in 0..30 {
            // Six of ten are not enough, and other levels do not count.
            assert_eq!(curriculum.note(2, number % 10 < 6).unwrap(), None);
            assert_eq!(curriculum.note(1, true).unwrap(), None);
        }
        let mut raised = (0..10).filter_map(|_| curriculum.note(2, true).unwrap());
        assert_eq!(raised.next(), Some(3));
        let again = Curriculum::open(folder.path(), &config(), 48).unwrap();
        assert_eq!(again.level(), 3);
        for _ in 0..10 {
            again.note(3, true).unwrap();
            again.note(4, true).unwrap();
        }
        assert_eq!(again.level(), 4, "no higher than the configuration says");
        let low = Curriculum::open(folder.path(), &config(), 3).unwrap();
        assert_eq!(low.level(), 3, "no higher than the game has");
        fs::write(folder.path().join(FILE), r#"{"level":3}"#).unwrap();
        let older = Curriculum::open(folder.path(), &config(), 48).unwrap();
        assert_eq!(older.level(), 3);
        for text in ["damaged", r#"{"format":2,"level":3}"#] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert!(Curriculum::open(folder.path(), &config(), 48).is_err());
            assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), text);
        }
    }

    #[test]
    fn games_are_drawn_by_their_keys_in_the_configured_shares() {
        let folder = tempfile::tempdir().unwrap();
        let curriculum = Curriculum::open(folder.path(), &config(), 48).unwrap();
        let (mut known, mut easier) = (0, 0);
        for game in 0..400 {
            let key = GameKey { run_seed: 3, game };
            let text = |next: Next<GeneratorGame>| format!("{next:?}");
            let next = || curriculum.next::<GeneratorGame>(&Rules::default(), key);
            assert_eq!(text(next()), text(next()));
            match next() {
                Next::Known(_) => known += 1,
                Next::Problem(_, level) => easier += usize::from(level < 2),
                Next::Usual => panic!("the generator game has problems"),
            }
        }
        assert!((160..240).contains(&known), "{known}");
        // Three in ten of the rest, of which every other is level 1.
        assert!((15..50).contains(&easier), "{easier}");
    }
}
