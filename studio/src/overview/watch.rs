//! [`Watch`]: checks a run for its alarms every two seconds while somebody watches.

use std::time::Duration;

use launcher::{
    alarms::{Alarm, LearningReader, Look, NewestCheckpoint, raised},
    moment,
    run::addresses::Addresses,
};
use tokio::{sync::Mutex, time::Instant};

use crate::run::Run;

/// Age from which the run is checked again.
const FRESH: Duration = Duration::from_secs(2);
/// Shortest time over which counters are watched: a page that was open for twice as long shows no older event.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Alarms of a run at one moment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Raised alarms, the critical ones first.
    pub raised: Vec<Alarm>,
    /// Time of the check, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Checks a run for its alarms, shared by all who watch.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Looks>);

#[derive(Debug, Default)]
struct Looks {
    /// Look since which counters are compared. `None`: since the start of each process.
    before: Option<Look>,
    /// Look that takes the place of `before` after [`WINDOW`].
    next: Option<(Instant, Look)>,
    looked: Option<Instant>,
    /// Reader of the run's learning. `None`: no check was made yet.
    learning: Option<LearningReader>,
    /// `None`: the run is not at work.
    findings: Option<Findings>,
}

impl Watch {
    /// Alarms of the run; `None` if it is not at work. If the last check is old, asks all processes, which takes two seconds at
    /// most.
    pub async fn findings(&self, run: &Run, newest: Option<NewestCheckpoint>) -> Option<Findings> {
        let mut looks = self.0.lock().await;
        if looks.looked.is_none_or(|looked| looked.elapsed() >= FRESH) {
            looks.refresh(run, newest).await;
        }
        looks.findings.clone()
    }
}

impl Looks {
    async fn refresh(&mut self, run: &Run, newest: Option<NewestCheckpoint>) {
        let Some(addresses) = Addresses::of_running(&run.folder) else {
            *self = Self::default();
            return;
        };
        let learning = self
            .learning
            .get_or_insert_with(|| LearningReader::new(&run.folder));
        let learned = learning.read(&run.config, &addresses).await;
        let look = Look::at(&run.config, &addresses, newest, learned).await;
        let now = Instant::now();
        if self.next.as_ref().is_none_or(|(at, _)| *at + WINDOW <= now) {
            let earlier = self.next.replace((now, look.clone()));
            self.before = earlier.map(|(_, look)| look);
        }
        self.findings = Some(Findings {
            raised: raised(&look, self.before.as_ref()),
            at_ms: moment::now(),
        });
        self.looked = Some(now);
    }
}
