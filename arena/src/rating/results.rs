//! Finished matches: [`RatedMatch`] is one of them, [`Results`] are all of them on disk, one line of `metrics.jsonl` each. The ratings are
//! computed from them.
//!
//! A promotion takes two steps, moving the label and writing the line, and a process may end between them. So the line is saved
//! before the label moves ([`Results::intend`]), and a process that finds a saved line completes the promotion.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use checkpoints::Version;
use serde::{Deserialize, Serialize};

use super::{duel::Live, ratings::Ratings};
use crate::{
    files::{LineFile, cannot_use},
    matches::ClassStanding,
    statistics::{Pentanomial, Rating},
};

/// Name of the file in the rating folder.
pub(super) const FILE: &str = "metrics.jsonl";
/// Name of the file with the line of a promotion that has begun.
const PROMOTION: &str = "promotion.json";
/// Name of the folder that holds the folders of the matches.
pub const MATCHES: &str = "matches";

/// Result of a match for its candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The candidate is the best checkpoint now.
    Promoted,
    /// The test decided against the candidate.
    Kept,
    /// The largest number of games was played, or the time of the match ended, before the test decided.
    Undecided,
    /// Somebody else moved `best` during the match.
    Overtaken,
    /// The candidate was the best checkpoint already, because somebody had moved `best`, and played to get a rating.
    Placed,
}

/// Schema of the lines that are written. A field that changes its meaning takes a new number.
const SCHEMA: u64 = 1;

/// A rated match. Elo differences are those of the candidate to its opponent; Elo ratings are relative to the first checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatedMatch {
    /// Schema number of the line.
    pub schema: u64,
    /// Time of the end, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The checkpoint that was rated.
    pub candidate: Version,
    /// Training steps of the candidate.
    pub step: u64,
    /// The best checkpoint before the match; for [`Outcome::Placed`], a checkpoint with a rating.
    pub opponent: Version,
    /// Result for the candidate.
    pub outcome: Outcome,
    /// Number of games.
    pub games: u64,
    /// Number of games that the candidate won.
    pub wins: u64,
    /// Number of drawn games.
    pub draws: u64,
    /// Number of games that the candidate lost.
    pub losses: u64,
    /// Numbers of pairs in which the candidate took 0, ½, 1, 1½ and 2 points.
    pub pairs: Pentanomial,
    /// Problems that the candidate and its opponent solved, by kind and level. Empty in games of two players.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ClassStanding>,
    /// Log-likelihood ratio of the test.
    pub log_likelihood_ratio: f64,
    /// Elo difference estimated from this match alone; `None` if it has no bound.
    pub elo_difference: Option<f64>,
    /// Ends of the 95 % interval of the difference; `None` for an end without bound.
    pub elo_difference_interval: [Option<f64>; 2],
    /// Rating of the candidate after the match.
    pub elo: Option<f64>,
    /// Ends of the 95 % interval of the candidate's rating.
    pub elo_interval: Option<[f64; 2]>,
    /// Rating of the best checkpoint after the match.
    pub best_elo: Option<f64>,
    /// Ends of the 95 % interval of the best checkpoint's rating.
    pub best_elo_interval: Option<[f64; 2]>,
}

impl RatedMatch {
    /// Returns the line of a match that ends now, without ratings.
    pub fn new(candidate: &Version, opponent: &Version, outcome: Outcome, live: &Live) -> Self {
        let standing = &live.standing;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let estimate = standing.estimate.as_ref();
        Self {
            schema: SCHEMA,
            time_ms: now.as_millis() as u64,
            candidate: candidate.clone(),
            step: candidate.step(),
            opponent: opponent.clone(),
            outcome,
            games: live.games(),
            wins: standing.wins,
            draws: standing.draws,
            losses: standing.losses,
            pairs: standing.pentanomial,
            problems: standing.problems.clone(),
            log_likelihood_ratio: live.log_likelihood_ratio,
            elo_difference: estimate.and_then(|estimate| estimate.elo),
            elo_difference_interval: estimate.map_or([None; 2], |estimate| estimate.elo_interval),
            elo: None,
            elo_interval: None,
            best_elo: None,
            best_elo_interval: None,
        }
    }

    /// The best checkpoint after the match.
    pub fn best(&self) -> &Version {
        match self.outcome {
            Outcome::Promoted | Outcome::Placed => &self.candidate,
            Outcome::Kept | Outcome::Undecided | Outcome::Overtaken => &self.opponent,
        }
    }

    /// Ratings of the candidate and of the best checkpoint after the match.
    pub fn ratings(&self) -> [Option<Rating>; 2] {
        let rated = |elo: Option<f64>, interval: Option<[f64; 2]>| {
            let [low, high] = interval?;
            Some(Rating { elo: elo?, low, high })
        };
        [
            rated(self.elo, self.elo_interval),
            rated(self.best_elo, self.best_elo_interval),
        ]
    }
}

/// All rated matches of a run.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: LineFile,
    lines: Vec<RatedMatch>,
    promotion: PathBuf,
}

impl Results {
    /// Reads the results in `folder`. An incomplete last line, left by a process that was killed, is removed. Other lines that
    /// cannot be read are skipped with a warning.
    ///
    /// # Errors
    /// A file cannot be read or written, or another build wrote a match in another format; nothing is changed
    /// then.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        for path in [&path, &folder.join(PROMOTION)] {
            match fs::read(path) {
                Ok(bytes) => check_schema(path, &bytes)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| cannot_use(path)),
            }
        }
        let opened = fs::create_dir_all(folder).and_then(|()| LineFile::open(&path));
        let (file, bytes) = opened.with_context(|| cannot_use(&path))?;
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
            lines,
            promotion: folder.join(PROMOTION),
        })
    }

    /// The matches, oldest first.
    pub fn lines(&self) -> &[RatedMatch] {
        &self.lines
    }

    /// True if these two have finished a match.
    pub fn has(&self, candidate: &Version, opponent: &Version) -> bool {
        let is_it = |line: &&RatedMatch| line.candidate == *candidate && line.opponent == *opponent;
        // The match is usually among the last ones.
        self.lines.iter().rev().find(is_it).is_some()
    }

    /// Rates a match and saves it durably. This also completes a promotion that had begun.
    ///
    /// # Errors
    /// The line cannot be written. Nothing is saved then, and the caller may try again.
    pub fn add(&mut self, mut line: RatedMatch) -> anyhow::Result<&RatedMatch> {
        let best = line.best().clone();
        self.lines.push(line.clone());
        let ratings = Ratings::of(&self.lines, None);
        let interval = |rated: Rating| [rated.low, rated.high];
        let (candidate, best) = (ratings.rating(&line.candidate), ratings.rating(&best));
        line.elo = candidate.map(|rated| rated.elo);
        line.elo_interval = candidate.map(interval);
        line.best_elo = best.map(|rated| rated.elo);
        line.best_elo_interval = best.map(interval);
        self.lines.pop();
        let appended = self.file.append(&line).and_then(|()| self.file.sync());
        appended.with_context(|| cannot_use(&self.path))?;
        self.lines.push(line);
        self.forget()?;
        Ok(&self.lines[self.lines.len() - 1])
    }

    /// Saves durably that the candidate of `line` is about to be promoted.
    ///
    /// # Errors
    /// The file cannot be written. The promotion has not begun then.
    pub fn intend(&self, line: &RatedMatch) -> anyhow::Result<()> {
        let written = durable::write(&self.promotion, &serde_json::to_vec(line)?);
        written.with_context(|| cannot_use(&self.promotion))
    }

    /// Returns the promotion that has begun and is not complete, if there is one. A file that cannot be parsed is removed with a
    /// warning.
    ///
    /// # Errors
    /// The file cannot be read or removed.
    pub fn intended(&self) -> anyhow::Result<Option<RatedMatch>> {
        let bytes = match fs::read(&self.promotion) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| cannot_use(&self.promotion)),
        };
        match serde_json::from_slice::<RatedMatch>(&bytes) {
            Ok(line) if !self.has(&line.candidate, &line.opponent) => return Ok(Some(line)),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(path = %self.promotion.display(), %error, "removing a promotion that cannot be read");
            }
        }
        self.forget().map(|()| None)
    }

    fn forget(&self) -> anyhow::Result<()> {
        match fs::remove_file(&self.promotion) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| cannot_use(&self.promotion)),
        }
    }
}

/// Checks that no whole line has another schema than that of this build.
fn check_schema(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Schema {
        schema: Option<u64>,
    }

    let lines = bytes.split(|&byte| byte == b'\n');
    let schemas = lines.filter_map(|line| serde_json::from_slice::<Schema>(line).ok());
    match schemas
        .map(|line| line.schema)
        .find(|&schema| schema != Some(SCHEMA))
    {
        Some(found) => bail!(
            "{} holds a match of {}, which this build does not know; nothing was changed. Rate with the build that wrote it, or set \
             another `rating.folder`",
            path.display(),
            found.map_or_else(|| "no schema".into(), |found| format!("schema {found}"))
        ),
        None => Ok(()),
    }
}

/// Removes all match folders in `matches` except the `keep` most recent ones; 0 keeps all. Ratings need only one line of each match,
/// and the games take room. Returns the number of removed folders.
///
/// # Errors
/// The error of the file system. Some folders may have been removed before.
pub fn keep_newest(matches: &Path, keep: usize) -> io::Result<usize> {
    if keep == 0 {
        return Ok(0);
    }
    let mut folders: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(matches)? {
        let path = entry?.path();
        let is_match = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains("-vs-"));
        if is_match && path.is_dir() {
            // A match without a finished game has no file of games.
            let games = fs::metadata(path.join("games.jsonl")).or_else(|_| fs::metadata(&path));
            folders.push((games?.modified()?, path));
        }
    }
    folders.sort();
    let gone = folders.len().saturating_sub(keep);
    for (_, path) in &folders[..gone] {
        fs::remove_dir_all(path)?;
    }
    Ok(gone)
}

#[cfg(test)]
pub(super) mod tests {
    use std::{fs::File, time::Duration};

    use super::*;
    use crate::{matches::standing::PairingStanding, rating::error::is_temporary, statistics::Estimate};

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

    /// Everything on which ratings rest.
    fn gist(line: &RatedMatch) -> (Version, Version, Outcome, Pentanomial) {
        (
            line.candidate.clone(),
            line.opponent.clone(),
            line.outcome,
            line.pairs,
        )
    }

    #[test]
    fn elo_rises_along_the_promotions_and_survives_a_restart_and_a_torn_line() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::open(home.path()).unwrap();
        let (zero, one, two) = (version(0), version(1), version(2));
        let first = RatedMatch::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
        let added = results.add(first).unwrap().clone();
        assert_eq!(added.best_elo, added.elo);
        assert!(added.elo.unwrap() > 100.0);
        let second = RatedMatch::new(&two, &one, Outcome::Kept, &live([20, 0, 10, 0, 10]));
        let added = results.add(second).unwrap().clone();
        assert!(added.elo.unwrap() < added.best_elo.unwrap());
        let [low, high] = added.best_elo_interval.unwrap();
        assert!(low < added.best_elo.unwrap() && added.best_elo.unwrap() < high);
        assert!(results.has(&two, &one) && !results.has(&two, &zero));
        // What ratings rest on; numbers of the text may differ in their last digit.
        let gist = |results: &Results| -> Vec<_> { results.lines().iter().map(gist).collect() };
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
        let third = RatedMatch::new(&three, &one, Outcome::Kept, &live([1, 0, 1, 0, 1]));
        results.add(third).unwrap();
        drop(results);
        let longer = fs::read_to_string(&path).unwrap();
        assert!(
            longer.starts_with(&whole) && longer.lines().count() == 3,
            "{longer}"
        );
        // A line that is not a match is skipped.
        fs::write(&path, format!("nonsense\n{whole}")).unwrap();
        assert_eq!(gist(&Results::open(home.path()).unwrap()), kept);
    }

    #[test]
    fn a_match_of_another_schema_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut results = Results::open(home.path()).unwrap();
        let line = RatedMatch::new(&version(1), &version(0), Outcome::Kept, &live([1, 0, 1, 0, 1]));
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
            assert!(error.to_string().contains("a match of schema 2"), "{error}");
            assert!(!is_temporary(&error));
            assert_eq!(fs::read_to_string(file).unwrap(), text);
            fs::write(&path, &whole).unwrap();
        }
        fs::remove_file(&promotion).unwrap();
        // Lines of builds before the first release have none.
        fs::write(&path, whole.replace("\"schema\":1,", "")).unwrap();
        let error = Results::open(home.path()).unwrap_err();
        assert!(error.to_string().contains("a match of no schema"), "{error}");
    }

    /// `cargo test -p arena --lib write_a_golden_folder -- --ignored` writes the folder of this release.
    mod golden {
        use test_support::{all_golden, new_golden};

        use super::*;

        const CRATE: &str = env!("CARGO_MANIFEST_DIR");

        #[test]
        #[ignore = "writes the golden folder of this release; run it when the format changes"]
        fn write_a_golden_folder() {
            let folder = new_golden(CRATE, "rating");
            let mut results = Results::open(&folder).unwrap();
            let (zero, one, two) = (version(0), version(1), version(2));
            let line = RatedMatch::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
            results.add(line).unwrap();
            let line = RatedMatch::new(&two, &one, Outcome::Kept, &live([20, 0, 10, 0, 10]));
            results.add(line).unwrap();
            let line = RatedMatch::new(&version(3), &one, Outcome::Promoted, &live([1, 2, 3, 4, 9]));
            results.intend(&line).unwrap();
        }

        #[test]
        fn every_golden_rating_is_read() {
            for golden in all_golden(CRATE, "rating") {
                let folder = tempfile::tempdir().unwrap();
                for file in [FILE, PROMOTION] {
                    fs::copy(golden.join(file), folder.path().join(file)).unwrap();
                }
                let mut results = Results::open(folder.path()).unwrap();
                let found: Vec<_> = results.lines().iter().map(gist).collect();
                let expected = [
                    (
                        version(1),
                        version(0),
                        Outcome::Promoted,
                        Pentanomial([0, 0, 10, 0, 30]),
                    ),
                    (
                        version(2),
                        version(1),
                        Outcome::Kept,
                        Pentanomial([20, 0, 10, 0, 10]),
                    ),
                ];
                assert_eq!(found, expected, "{}", golden.display());
                let begun = results.intended().unwrap().unwrap();
                assert_eq!(
                    (begun.candidate, begun.pairs),
                    (version(3), Pentanomial([1, 2, 3, 4, 9]))
                );
                let line = RatedMatch::new(&version(4), &version(1), Outcome::Kept, &live([1, 0, 1, 0, 1]));
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
        let line = RatedMatch::new(&one, &zero, Outcome::Promoted, &live([0, 0, 10, 0, 30]));
        results.intend(&line).unwrap();
        // Killed here: the next process finds it.
        let found = Results::open(home.path()).unwrap().intended().unwrap().unwrap();
        assert_eq!(gist(&found), gist(&line));
        results.add(found).unwrap();
        assert_eq!(results.intended().unwrap(), None);
        // Killed between the line and this.
        results.intend(&line).unwrap();
        assert_eq!(results.intended().unwrap(), None);
        assert!(!home.path().join(PROMOTION).exists());
        fs::write(home.path().join(PROMOTION), "{").unwrap();
        assert_eq!(results.intended().unwrap(), None);
    }

    #[test]
    fn the_newest_matches_and_other_folders_are_kept() {
        let home = tempfile::tempdir().unwrap();
        // The times differ from the order of the names.
        for (second, name) in [(3, "1-vs-0-aa"), (1, "2-vs-1-aa"), (2, "3-vs-1-aa")] {
            let folder = home.path().join(name);
            fs::create_dir(&folder).unwrap();
            let games = File::create(folder.join("games.jsonl")).unwrap();
            games
                .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second))
                .unwrap();
        }
        fs::create_dir(home.path().join("somebody's own")).unwrap();
        let names = || {
            let entries = fs::read_dir(home.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(keep_newest(home.path(), 0).unwrap(), 0);
        assert_eq!(keep_newest(home.path(), 3).unwrap(), 0);
        assert_eq!(names().len(), 4);
        assert_eq!(keep_newest(home.path(), 2).unwrap(), 1);
        assert_eq!(names(), ["1-vs-0-aa", "3-vs-1-aa", "somebody's own"]);
        assert_eq!(keep_newest(home.path(), 1).unwrap(), 1);
        assert_eq!(names(), ["1-vs-0-aa", "somebody's own"]);
    }
}
