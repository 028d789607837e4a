//! [`Timeline`]: what a run had done at each moment: time at work, games, evaluations. Read from the record of `minuet up`.

use std::path::Path;

use launcher::up::journal::{FOLDER, LINES};
use serde::Deserialize;
use service::figures::Tail;

use crate::figures::journal::Now;

/// Longest time between two lines of figures of a run at work, in milliseconds. In a longer gap the run was not at work.
const GAP: u64 = 30_000;
/// Most stamps; with more, every second one is dropped.
const MOST: usize = 4096;

/// Totals of a run at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stamp {
    /// Moment, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Time at work, in minutes.
    pub minutes: f64,
    /// Games ever stored.
    pub games: f64,
    /// Positions that the network evaluated.
    pub evaluations: f64,
}

/// Totals of a run over time.
#[derive(Debug)]
pub struct Timeline {
    /// The file that was put aside when it was full, and the present one.
    tails: [Tail; 2],
    last: Stamp,
    stamps: Vec<Stamp>,
}

/// A line of events or of figures.
#[derive(Debug, Deserialize)]
struct Line {
    event: String,
    #[serde(flatten)]
    now: Now,
}

impl Timeline {
    /// Reads the record of the run in `folder` with [`Timeline::refresh`].
    pub fn new(folder: &Path) -> Self {
        let path = Path::new(FOLDER).join(LINES);
        Self {
            tails: [path.with_extension("1.jsonl"), path].map(|path| Tail::below(folder, &path)),
            last: Stamp::default(),
            stamps: Vec::new(),
        }
    }

    /// Reads what was written since the last call.
    pub fn refresh(&mut self) {
        let [before, present] = &mut self.tails;
        let lines: Vec<Line> = before.read_all().into_iter().chain(present.read_all()).collect();
        for line in lines.iter().filter(|line| line.event == "summary") {
            self.push(&line.now);
        }
    }

    fn push(&mut self, now: &Now) {
        let last = self.last;
        // A line that was read before, from the file that was put aside.
        if now.at_ms <= last.at_ms {
            return;
        }
        let passed = now.at_ms - last.at_ms;
        let seconds = if passed <= GAP {
            passed as f64 / 1000.0
        } else {
            0.0
        };
        let rate = now.summary.inference.positions_per_second.unwrap_or(0.0).max(0.0);
        let games = now.summary.replay.games_inserted;
        self.last = Stamp {
            at_ms: now.at_ms,
            minutes: last.minutes + seconds / 60.0,
            games: games.map_or(last.games, |games| games as f64),
            evaluations: last.evaluations + rate * seconds,
        };
        self.stamps.push(self.last);
        if self.stamps.len() > MOST {
            let mut number = 0_usize;
            self.stamps.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
        }
    }

    /// Newest totals.
    pub fn last(&self) -> Stamp {
        self.last
    }

    /// A total at a moment, between those of the stamps around it; `None` before the first stamp. Later than the last one, the last
    /// total holds.
    pub fn at(&self, at_ms: u64, total: impl Fn(&Stamp) -> f64) -> Option<f64> {
        let after = self.stamps.partition_point(|stamp| stamp.at_ms <= at_ms);
        let before = self.stamps.get(after.checked_sub(1)?)?;
        let Some(next) = self.stamps.get(after) else {
            return Some(total(before).max(total(&self.last)));
        };
        let share = (at_ms - before.at_ms) as f64 / (next.at_ms - before.at_ms) as f64;
        Some(total(before) + share * (total(next) - total(before)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn line(second: u64, rate: f64, games: u64) -> String {
        json!({
            "event": "summary", "at_ms": 1_000 * second, "after_seconds": 0.0,
            "inference": { "positions_per_second": rate }, "replay": { "games_inserted": games },
        })
        .to_string()
    }

    #[test]
    fn totals_grow_only_while_the_run_is_at_work() {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join(FOLDER)).unwrap();
        let lines = [
            line(1_000, 500.0, 0),
            line(1_010, 100.0, 10),
            "{\"event\":\"stopped\",\"at_ms\":1011000}".into(),
            // An hour later.
            line(4_610, 300.0, 20),
            line(4_620, 200.0, 30),
        ];
        fs::write(run.path().join(FOLDER).join(LINES), lines.join("\n") + "\n").unwrap();
        let mut timeline = Timeline::new(run.path());
        timeline.refresh();
        timeline.refresh();
        let last = timeline.last();
        assert_eq!((last.games, last.evaluations), (30.0, 3_000.0));
        assert!((last.minutes - 20.0 / 60.0).abs() < 1e-9, "{last:?}");
        let games = |at_ms: u64| timeline.at(at_ms, |stamp| stamp.games);
        assert_eq!(games(999_999), None);
        assert_eq!(games(1_005_000), Some(5.0));
        assert_eq!(games(4_615_000), Some(25.0));
        assert_eq!(games(9_000_000), Some(30.0));
    }

    #[test]
    fn the_file_that_was_put_aside_counts_once() {
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let present = folder.join(LINES);
        fs::write(&present, line(10, 0.0, 1) + "\n" + &line(20, 10.0, 2) + "\n").unwrap();
        let mut timeline = Timeline::new(run.path());
        timeline.refresh();
        fs::copy(&present, present.with_extension("1.jsonl")).unwrap();
        fs::write(&present, line(30, 10.0, 3) + "\n").unwrap();
        timeline.refresh();
        assert_eq!(timeline.last().evaluations, 200.0);
    }
}
