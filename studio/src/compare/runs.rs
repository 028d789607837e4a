//! [`Runs`]: the other runs in the parent folder of this one, and their figures.
//!
//! Other accounts may have made the other folders. So only regular files within them are read, of limited length, no link is followed,
//! and an error never shows the text of a file.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use arena::rating::RatedMatch;
use config::RunConfig;
use launcher::{losses, run::folder::CONFIG};
use parking_lot::Mutex;
use service::{figures::Tail, filesystem::read_below};

use super::timeline::{Stamp, Timeline};
use crate::figures::{
    learning::{Head, Learning},
    series::Point,
};

/// Most folders that are searched for runs.
const FOLDERS: usize = 500;
/// Largest `run.toml` that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// Most runs whose figures are kept in memory.
const KEPT: usize = 16;

/// A run in the same parent folder.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// Name of its folder.
    pub name: String,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Configuration, with paths as its file has them.
    pub config: RunConfig,
}

/// The runs of one parent folder.
#[derive(Debug, Default)]
pub struct Siblings {
    /// Runs of the same game, that of the newest figures first.
    pub same_game: Vec<Sibling>,
    /// Number of runs of other games.
    pub others: usize,
    /// Folders whose `run.toml` cannot be used, each with the reason.
    pub unusable: Vec<(String, String)>,
}

/// Axis along which runs are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Training steps.
    #[default]
    Step,
    /// Time at work.
    Time,
    /// Stored games.
    Games,
    /// Positions that the network evaluated.
    Evaluations,
}

/// Curves of one run.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// Losses of the policy and of the value: held-out games, training.
    pub losses: [[Vec<Point>; 2]; 2],
    /// Rating of the best checkpoint.
    pub elo: Vec<Point>,
    /// Newest totals.
    pub last: Stamp,
    /// Training steps.
    pub step: f64,
}

/// Figures of runs that were compared, read on where they were left.
#[derive(Debug, Default)]
pub struct Runs(Mutex<BTreeMap<PathBuf, Figures>>);

#[derive(Debug)]
struct Figures {
    learning: Learning,
    timeline: Timeline,
    matches: Tail,
    rated: Vec<RatedMatch>,
}

impl Siblings {
    /// Looks for the other runs in the parent of `folder`.
    pub fn of(folder: &Path, game: &str) -> Self {
        let mut found = Self::default();
        let entries = folder.parent().and_then(|parent| fs::read_dir(parent).ok());
        let folders = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        for sibling in folders.take(FOLDERS).filter(|path| path != folder) {
            let Some(name) = sibling.file_name() else {
                continue;
            };
            let name = name.to_string_lossy().into_owned();
            match configuration(&sibling) {
                Ok(config) if config.game.title() == game => found.same_game.push(Sibling {
                    name,
                    config,
                    folder: sibling,
                }),
                Ok(_) => found.others += 1,
                Err(Some(reason)) => found.unusable.push((name, reason)),
                Err(None) => {}
            }
        }
        found
            .same_game
            .sort_by_cached_key(|run| (Reverse(trained(&run.folder)), run.name.clone()));
        found.unusable.sort();
        found
    }
}

impl Axis {
    /// All axes, with their names in an address, in a choice and below a chart.
    pub const ALL: [(Self, &'static str, &'static str, &'static str); 4] = [
        (Self::Step, "step", "training steps", "step"),
        (Self::Time, "time", "time at work", "minutes at work"),
        (Self::Games, "games", "games", "games"),
        (
            Self::Evaluations,
            "evaluations",
            "evaluations",
            "evaluations by the network",
        ),
    ];

    /// Name below a chart.
    pub fn across(self) -> &'static str {
        let found = Self::ALL.iter().find(|(axis, ..)| *axis == self);
        found.map_or("step", |(.., across)| across)
    }
}

impl Runs {
    /// Curves of the run in `folder`. Reads files, which blocks.
    pub fn curves(&self, folder: &Path, axis: Axis) -> Curves {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT && !kept.contains_key(folder) {
            kept.clear();
        }
        let figures = kept
            .entry(folder.to_owned())
            .or_insert_with(|| Figures::new(folder));
        figures.refresh();
        figures.curves(axis)
    }
}

impl Figures {
    fn new(folder: &Path) -> Self {
        Self {
            learning: Learning::of(Tail::below(folder, Path::new(losses::FILE))),
            timeline: Timeline::new(folder),
            matches: Tail::below(folder, Path::new("rating/metrics.jsonl")),
            rated: Vec::new(),
        }
    }

    fn refresh(&mut self) {
        self.learning.refresh();
        self.timeline.refresh();
        self.rated.extend(self.matches.read_all::<RatedMatch>());
    }

    fn curves(&self, axis: Axis) -> Curves {
        let place = |step: f64, at_ms: u64| match axis {
            Axis::Step => Some(step),
            _ => self.place(axis, at_ms),
        };
        let moved = |points: &[Point]| {
            let points = points.iter();
            ascending(points.filter_map(|point| Some(point.moved(place(point.x, point.at_ms)?))))
        };
        let losses = |head: &Head| [moved(head.held_out.points()), moved(head.training.points())];
        let elo = self.rated.iter().filter_map(|line| {
            let [_, best] = line.ratings();
            let best = best?;
            let x = place(line.step as f64, line.time_ms)?;
            Some(Point::with_interval(x, best.elo, best.low, best.high))
        });
        let trained = self.learning.policy.training.points();
        Curves {
            losses: [losses(&self.learning.policy), losses(&self.learning.value)],
            elo: ascending(elo),
            last: self.timeline.last(),
            step: trained.last().map_or(0.0, |point| point.x),
        }
    }

    /// Place of a moment on an axis.
    fn place(&self, axis: Axis, at_ms: u64) -> Option<f64> {
        self.timeline.at(at_ms, |stamp| match axis {
            Axis::Games => stamp.games,
            Axis::Evaluations => stamp.evaluations,
            Axis::Step | Axis::Time => stamp.minutes,
        })
    }
}

/// Reads the configuration of the run in a folder. The error is the reason why it cannot be used, without the text of the file;
/// `None`: the folder is not that of a run.
fn configuration(folder: &Path) -> Result<RunConfig, Option<String>> {
    let refused = |error: io::Error| Some(format!("its {CONFIG} cannot be read: {error}"));
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let bytes = match read_below(folder, Path::new(CONFIG), LARGEST) {
        Ok(bytes) => bytes,
        Err(_) if is_link(folder) => return Err(None),
        Err(_) if is_link(&folder.join(CONFIG)) => {
            return Err(Some(format!("its {CONFIG} is a link, which is not followed")));
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Err(None);
        }
        Err(error) => return Err(refused(error)),
    };
    let text = String::from_utf8(bytes).map_err(|_| Some(format!("its {CONFIG} is not text")))?;
    config::parse(&text).map_err(|error| Some(error.without_text()))
}

/// Time of the last figures of the run in a folder.
fn trained(folder: &Path) -> Option<SystemTime> {
    let figures = fs::symlink_metadata(folder.join("learner/metrics.jsonl"));
    figures.and_then(|figures| figures.modified()).ok()
}

/// Points of a curve. A later point at the same place or before replaces those behind it.
fn ascending(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        while kept.last().is_some_and(|last| last.x >= point.x) {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
