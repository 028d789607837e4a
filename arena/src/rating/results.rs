//! All finished matches on disk, one line of `metrics.jsonl` each. The ratings are computed from them.
//!
//! A promotion takes two steps, moving the label and writing the line, and a process may end between them. So the line is saved
//! before the label moves ([`Results::intend`]), and a process that finds a saved line completes the promotion.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use checkpoints::Version;
use serde::Deserialize;

use super::{
    RatingError,
    line::{Line, SCHEMA, first_schema},
    ratings::Ratings,
};
use crate::statistics::Rating;

/// Name of the file in the rating folder.
const FILE: &str = "metrics.jsonl";
/// Name of the file with the line of a promotion that has begun.
const PROMOTION: &str = "promotion.json";

/// All rated matches of a run.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
    /// Length of all complete lines in bytes.
    length: u64,
    lines: Vec<Line>,
    promotion: PathBuf,
}

impl Results {
    /// Reads the results in `folder`. An incomplete last line, left by a process that was killed, is removed. Other lines that
    /// cannot be read are skipped with a warning.
    ///
    /// # Errors
    /// [`RatingError::Newer`] if a newer build wrote a match; nothing is changed then. [`RatingError::Io`] if a file cannot be read
    /// or written.
    pub fn open(folder: &Path) -> Result<Self, RatingError> {
        let path = folder.join(FILE);
        for path in [&path, &folder.join(PROMOTION)] {
            match fs::read(path) {
                Ok(bytes) => check_schema(path, &bytes)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io(path)(error)),
            }
        }
        let opened = || -> io::Result<(File, Vec<u8>)> {
            fs::create_dir_all(folder)?;
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let mut bytes = fs::read(&path)?;
            let whole = bytes
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |at| at + 1);
            if whole < bytes.len() {
                file.set_len(whole as u64)?;
                bytes.truncate(whole);
            }
            Ok((file, bytes))
        };
        let (file, bytes) = opened().map_err(|source| RatingError::Io {
            path: path.clone(),
            source,
        })?;
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            match serde_json::from_slice(text) {
                Ok(line) => lines.push(line),
                Err(_) if text.is_empty() => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), line = number, %error, "skipping a match that cannot be read");
                }
            }
        }
        Ok(Self {
            path,
            file,
            length: bytes.len() as u64,
            lines,
            promotion: folder.join(PROMOTION),
        })
    }

    /// The matches, oldest first.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// True if these two have finished a match.
    pub fn has(&self, candidate: &Version, opponent: &Version) -> bool {
        let is_it = |line: &&Line| line.candidate == *candidate && line.opponent == *opponent;
        // The match is usually among the last ones.
        self.lines.iter().rev().find(is_it).is_some()
    }

    /// Rates a match and saves it durably. This also completes a promotion that had begun.
    ///
    /// # Errors
    /// [`RatingError::Io`] if the line cannot be written. Nothing is saved then, and the caller may try again.
    pub fn add(&mut self, mut line: Line) -> Result<&Line, RatingError> {
        let best = line.best().clone();
        self.lines.push(line.clone());
        let ratings = Ratings::of(&self.lines, None);
        let interval = |rated: Rating| [rated.low, rated.high];
        let (candidate, best) = (ratings.rating(&line.candidate), ratings.rating(&best));
        line.elo = candidate.map(|rated| rated.elo);
        line.elo_interval = candidate.map(interval);
        line.best_elo = best.map(|rated| rated.elo);
        line.best_elo_interval = best.map(interval);
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        self.lines.pop();
        self.append(&text).map_err(io(&self.path))?;
        self.lines.push(line);
        self.forget()?;
        Ok(&self.lines[self.lines.len() - 1])
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        // Removes the rest of an attempt that failed.
        self.file.set_len(self.length)?;
        self.file.write_all(text)?;
        self.file.sync_all()?;
        self.length += text.len() as u64;
        Ok(())
    }

    /// Saves durably that the candidate of `line` is about to be promoted.
    ///
    /// # Errors
    /// [`RatingError::Io`] if the file cannot be written. The promotion has not begun then.
    pub fn intend(&self, line: &Line) -> Result<(), RatingError> {
        serde_json::to_vec(line)
            .map_err(io::Error::from)
            .and_then(|text| durable::write(&self.promotion, &text))
            .map_err(io(&self.promotion))
    }

    /// Returns the promotion that has begun and is not complete, if there is one. A file that cannot be parsed is removed with a
    /// warning.
    ///
    /// # Errors
    /// [`RatingError::Io`] if the file cannot be read or removed.
    pub fn intended(&self) -> Result<Option<Line>, RatingError> {
        let bytes = match fs::read(&self.promotion) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(&self.promotion)(error)),
        };
        match serde_json::from_slice::<Line>(&bytes) {
            Ok(line) if !self.has(&line.candidate, &line.opponent) => return Ok(Some(line)),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(path = %self.promotion.display(), %error, "removing a promotion that cannot be read");
            }
        }
        self.forget().map(|()| None)
    }

    fn forget(&self) -> Result<(), RatingError> {
        match fs::remove_file(&self.promotion) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io(&self.promotion)(error)),
            _ => Ok(()),
        }
    }
}

/// Checks that no line, which must be whole, has another schema.
fn check_schema(path: &Path, bytes: &[u8]) -> Result<(), RatingError> {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default = "first_schema")]
        schema: u64,
    }

    let lines = bytes.split(|&byte| byte == b'\n');
    let schemas = lines.filter_map(|line| serde_json::from_slice::<Schema>(line).ok());
    match schemas.map(|line| line.schema).find(|&schema| schema != SCHEMA) {
        Some(found) => Err(RatingError::Newer {
            path: path.into(),
            found,
        }),
        None => Ok(()),
    }
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> RatingError {
    let path = path.to_owned();
    move |source| RatingError::Io { path, source }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        matches::standing::PairingStanding,
        rating::{duel::Live, line::Outcome},
        statistics::{Estimate, Pentanomial},
    };

    /// The version of a step.
    pub fn version(step: u64) -> Version {
        format!("{step:012}-{step:08x}").parse().unwrap()
    }

    /// A match with these pairs of games.
    pub fn live(pairs: [u64; 5]) -> Live {
        let pentanomial = Pentanomial(pairs);
        Live {
            standing: PairingStanding {
                players: ["a".into(), "b".into()],
                wins: pairs[4] * 2,
                draws: 0,
                losses: pairs[0] * 2,
                first_mover_wins: 0,
                estimate: Estimate::of(&pentanomial),
                pentanomial,
                problems: Vec::new(),
            },
            log_likelihood_ratio: 1.5,
        }
    }

    #[test]
    fn elo_rises_along_the_promotions_and_survives_a_restart_and_a_torn_line() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::open(home.path()).unwrap();
        let (zero, one, two) = (version(0), version(1), version(2));
        let first = Line::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
        let added = results.add(first).unwrap().clone();
        assert_eq!(added.best_elo, added.elo);
        assert!(added.elo.unwrap() > 100.0);
        let second = Line::new(&two, &one, Outcome::Kept, &live([20, 0, 10, 0, 10]));
        let added = results.add(second).unwrap().clone();
        assert!(added.elo.unwrap() < added.best_elo.unwrap());
        let [low, high] = added.best_elo_interval.unwrap();
        assert!(low < added.best_elo.unwrap() && added.best_elo.unwrap() < high);
        assert!(results.has(&two, &one) && !results.has(&two, &zero));
        // What ratings rest on; numbers of the text may differ in their last digit.
        let gist = |results: &Results| -> Vec<_> {
            let lines = results.lines().iter();
            lines
                .map(|line| {
                    (
                        line.candidate.clone(),
                        line.opponent.clone(),
                        line.outcome,
                        line.pairs,
                    )
                })
                .collect()
        };
        let kept = gist(&results);
        drop(results);

        let path = home.path().join(FILE);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"candidate\":\"0000")).unwrap();
        let results = Results::open(home.path()).unwrap();
        assert_eq!(gist(&results), kept);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        // So is what an attempt that failed half-way has left.
        let mut results = results;
        fs::write(&path, format!("{whole}{{\"candidate\":\"0000")).unwrap();
        let three = version(3);
        let third = Line::new(&three, &one, Outcome::Kept, &live([1, 0, 1, 0, 1]));
        results.add(third).unwrap();
        drop(results);
        let longer = fs::read_to_string(&path).unwrap();
        assert!(
            longer.starts_with(&whole) && longer.lines().count() == 3,
            "{longer}"
        );
        // A line that is none is passed over.
        fs::write(&path, format!("nonsense\n{whole}")).unwrap();
        assert_eq!(gist(&Results::open(home.path()).unwrap()), kept);
    }

    #[test]
    fn a_match_that_a_newer_build_wrote_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::open(home.path()).unwrap();
        let line = Line::new(&version(1), &version(0), Outcome::Kept, &live([1, 0, 1, 0, 1]));
        results.add(line).unwrap();
        drop(results);
        let (path, promotion) = (home.path().join(FILE), home.path().join(PROMOTION));
        let whole = fs::read_to_string(&path).unwrap();
        let newer = r#"{"schema":2,"match":["a","b"]}"#;
        // The last line is torn, but must not be removed.
        for (file, text) in [
            (&path, format!("{whole}{newer}\n{{\"cand")),
            (&promotion, newer.to_owned()),
        ] {
            fs::write(file, &text).unwrap();
            let error = Results::open(home.path()).unwrap_err();
            assert!(matches!(error, RatingError::Newer { found: 2, .. }), "{error}");
            assert!(!error.is_temporary());
            assert_eq!(fs::read_to_string(file).unwrap(), text);
            fs::write(&path, &whole).unwrap();
        }
        fs::remove_file(&promotion).unwrap();
        // Lines of earlier builds have no schema.
        fs::write(&path, whole.replace("\"schema\":1,", "")).unwrap();
        assert_eq!(Results::open(home.path()).unwrap().lines().len(), 1);
    }

    /// `cargo test -p arena --lib write_a_golden_folder -- --ignored` writes the folder of this release.
    mod golden {
        use super::*;

        fn golden() -> PathBuf {
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
        }

        fn release() -> &'static str {
            env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0
        }

        #[test]
        #[ignore = "writes the golden folder of this release; run it when the format changes"]
        fn write_a_golden_folder() {
            let folder = golden().join(release()).join("rating");
            let _ = fs::remove_dir_all(&folder);
            let mut results = Results::open(&folder).unwrap();
            let (zero, one, two) = (version(0), version(1), version(2));
            let line = Line::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
            results.add(line).unwrap();
            let line = Line::new(&two, &one, Outcome::Kept, &live([20, 0, 10, 0, 10]));
            results.add(line).unwrap();
            let line = Line::new(&version(3), &one, Outcome::Promoted, &live([1, 2, 3, 4, 9]));
            results.intend(&line).unwrap();
        }

        #[test]
        fn every_golden_rating_is_read() {
            let releases: Vec<PathBuf> = fs::read_dir(golden())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            assert!(releases.contains(&golden().join(release())));
            for golden in releases {
                let folder = tempfile::tempdir().unwrap();
                for file in [FILE, PROMOTION] {
                    fs::copy(golden.join("rating").join(file), folder.path().join(file)).unwrap();
                }
                let mut results = Results::open(folder.path()).unwrap();
                let found: Vec<_> = results
                    .lines()
                    .iter()
                    .map(|line| {
                        (
                            line.candidate.step(),
                            line.opponent.step(),
                            line.outcome,
                            line.pairs,
                        )
                    })
                    .collect();
                let expected = [
                    (1, 0, Outcome::Promoted, Pentanomial([0, 0, 10, 0, 30])),
                    (2, 1, Outcome::Kept, Pentanomial([20, 0, 10, 0, 10])),
                ];
                assert_eq!(found, expected, "{}", golden.display());
                let begun = results.intended().unwrap().unwrap();
                assert_eq!(
                    (begun.candidate, begun.pairs),
                    (version(3), Pentanomial([1, 2, 3, 4, 9]))
                );
                let line = Line::new(&version(4), &version(1), Outcome::Kept, &live([1, 0, 1, 0, 1]));
                assert!(results.add(line).unwrap().elo.is_some());
            }
        }
    }

    #[test]
    fn a_promotion_is_known_from_its_beginning_to_its_end() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::open(home.path()).unwrap();
        let (zero, one) = (version(0), version(1));
        assert_eq!(results.intended().unwrap(), None);
        let line = Line::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
        results.intend(&line).unwrap();
        // Killed here: the next process finds it.
        let found = Results::open(home.path()).unwrap().intended().unwrap().unwrap();
        assert_eq!(
            (&found.candidate, &found.opponent, found.outcome, found.pairs),
            (&line.candidate, &line.opponent, line.outcome, line.pairs)
        );
        results.add(found).unwrap();
        assert_eq!(results.intended().unwrap(), None);
        // Killed between the line and this.
        results.intend(&line).unwrap();
        assert_eq!(results.intended().unwrap(), None);
        assert!(!home.path().join(PROMOTION).exists());
        fs::write(home.path().join(PROMOTION), "{").unwrap();
        assert_eq!(results.intended().unwrap(), None);
    }
}
