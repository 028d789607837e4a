//! State of a run since `minuet up` was started, and the events that follow from observations: [`Session`].

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use checkpoints::{LATEST, Manifest, Repository};
use config::RunConfig;
use tokio::time::{Instant, timeout};

use crate::{
    event::{Event, StoppedRun},
    moment,
    run::{choices::Choices, folder::CONFIG},
    watch::{Beginning, Checkpoint, History, Observation, Summary, limit, names},
};

/// Time limit for the store of checkpoints to answer at the start.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// State of the run.
pub struct Session {
    config: RunConfig,
    began: Instant,
    started: BTreeMap<String, (u32, Instant)>,
    ready: BTreeSet<String>,
    history: History,
    beginning: Option<Beginning>,
    checkpoint: Option<Manifest>,
    serving: Option<String>,
    /// Reason why the newest checkpoint is refused, about which there was an event.
    refused: Option<String>,
    /// Choices of the inference server at its first answer to this `minuet up`.
    choices: Option<Choices>,
    best: Option<String>,
    games: Option<u64>,
    positions: Option<u64>,
}

impl Session {
    /// Creates the state of a run that has just been started. The newest checkpoint in `repository` is from before this start.
    pub async fn new(config: RunConfig, repository: &Repository) -> Self {
        let newest = timeout(STORE_TIMEOUT, repository.resolve(LATEST)).await;
        let checkpoint = newest.ok().and_then(Result::ok);
        Self {
            config,
            began: Instant::now(),
            started: BTreeMap::new(),
            ready: BTreeSet::new(),
            history: History::new(&names::COUNTERS),
            beginning: None,
            checkpoint,
            serving: None,
            refused: None,
            choices: None,
            best: None,
            games: None,
            positions: None,
        }
    }

    /// Numbers of the running processes, by name.
    pub fn pids(&self) -> BTreeMap<String, u32> {
        let started = self.started.iter();
        started.map(|(name, (pid, _))| (name.clone(), *pid)).collect()
    }

    /// Updates the state with an event of a supervisor.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::RoleStarted { name, pid } => {
                self.started.insert(name.clone(), (*pid, Instant::now()));
            }
            Event::RoleExited { name, .. }
            | Event::RoleFailed { name, .. }
            | Event::RoleStopped { name, .. } => {
                self.started.remove(name);
                self.ready.remove(name);
            }
            _ => {}
        }
    }

    /// Updates the state with an observation; returns the events that follow from it, and the summary.
    pub fn observe(&mut self, observation: &Observation) -> (Vec<Event>, Summary) {
        let mut events = self.newly_ready(observation);
        self.history.push(observation);
        if let Some(stats) = &observation.stats {
            let beginning = *self.beginning.get_or_insert(Beginning {
                after_seconds: self.seconds(),
                games: stats.games_inserted,
                positions: stats.positions_inserted,
            });
            if stats.games_inserted > 0 && self.games.unwrap_or(beginning.games) == 0 {
                events.push(Event::FirstGame {
                    after_seconds: self.seconds(),
                });
            }
            self.games = Some(stats.games_inserted);
            self.positions = Some(stats.positions_inserted);
        }
        let checkpoint = self.checkpoint.as_ref().map(|manifest| Checkpoint {
            version: manifest.version.to_string(),
            step: manifest.draft.step,
            age_seconds: moment::age(manifest.created_at_ms).as_secs_f64(),
        });
        let mut summary = Summary::new(
            self.seconds(),
            observation,
            &self.history,
            self.beginning,
            checkpoint,
            &self.config,
        );
        let refused = summary.inference.newest_refused.clone();
        if let Some(reason) = refused.as_ref().filter(|_| self.refused != refused) {
            let text = format!("the inference server refuses the newest checkpoint: {reason}");
            events.push(Event::Warning { text });
        }
        self.refused = refused;
        summary.limit = limit::sentence(&summary, &self.config);
        let version = summary.inference.version.clone();
        if let Some(version) = version.filter(|version| self.serving.as_ref() != Some(version)) {
            self.serving = Some(version.clone());
            events.push(Event::Serving {
                version,
                after_seconds: self.seconds(),
            });
        }
        (events, summary)
    }

    /// Returns the choices that the inference server has made, once.
    pub fn chosen(&mut self, observation: &Observation) -> Option<Choices> {
        let model = observation.model.as_ref()?;
        if self.choices.is_some() {
            return None;
        }
        self.choices = Choices::of(model, &self.config);
        self.choices.clone()
    }

    fn newly_ready(&mut self, observation: &Observation) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, (pid, since)) in &self.started {
            let answers = observation
                .processes
                .get(name)
                .is_some_and(|process| process.ready && process.pid == Some(*pid));
            if answers && self.ready.insert(name.clone()) {
                events.push(Event::RoleReady {
                    name: name.clone(),
                    after_seconds: since.elapsed().as_secs_f64(),
                });
            }
        }
        events
    }

    /// Updates the state with the newest checkpoint; returns an event unless the checkpoint is the one before.
    pub fn published(&mut self, manifest: Manifest) -> Option<Event> {
        let before = self.checkpoint.as_ref().map(|before| &before.version);
        let is_new = before != Some(&manifest.version);
        let event = Event::checkpoint(&manifest, self.began.elapsed());
        self.checkpoint = Some(manifest);
        is_new.then_some(event)
    }

    /// Updates the state with the checkpoint of the label `best`; returns an event if the label has moved since this start.
    pub fn promoted(&mut self, manifest: &Manifest) -> Option<Event> {
        let version = manifest.version.to_string();
        let before = self.best.replace(version.clone());
        (before.is_some_and(|before| before != version)).then(|| Event::Promoted {
            version,
            step: manifest.draft.step,
            after_seconds: self.seconds(),
        })
    }

    /// Returns the state in which the run stops. `stats` are the store's last counts of games and positions.
    pub fn kept(&self, run: String, stats: Option<(u64, u64)>, killed: Vec<String>) -> StoppedRun {
        StoppedRun {
            moved: !Path::new(&run).join(CONFIG).exists(),
            run,
            after_seconds: self.seconds(),
            games: stats.map(|(games, _)| games).or(self.games),
            positions: stats.map(|(_, positions)| positions).or(self.positions),
            checkpoint: self
                .checkpoint
                .as_ref()
                .map(|manifest| manifest.version.to_string()),
            killed,
        }
    }

    /// Seconds since `minuet up` was started.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use checkpoints::{Draft, MODEL};
    use proto::v1::ModelDescription;
    use service::role::Role;

    use super::*;
    use crate::watch::observe::tests::actors as observed;

    async fn published(repository: &Repository, step: u64) -> Manifest {
        let draft = Draft {
            game: "chess".into(),
            actions: 1,
            layout: serde_json::json!({"entries": 1}),
            step,
            ..Draft::default()
        };
        let model = step.to_string().into();
        let version = repository.publish(draft, vec![(MODEL, model)]).await.unwrap();
        repository.set_label(LATEST, &version).await.unwrap();
        repository.resolve(LATEST).await.unwrap()
    }

    #[tokio::test]
    async fn a_checkpoint_that_is_refused_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::open(&folder.path().to_string_lossy()).unwrap();
        let mut session = Session::new(RunConfig::default(), &repository).await;
        let mut observe = |refused: u32, reason: Option<&str>| {
            let page = format!("{} {refused}\n", names::NEWEST_REFUSED);
            let mut seen = observed(Instant::now(), &[(1, Some(&page), 0.0)]);
            let processes = seen.processes.values_mut();
            processes.for_each(|process| process.role = Role::InferenceServer);
            seen.model = reason.map(|reason| ModelDescription {
                newest_refused: reason.into(),
                ..ModelDescription::default()
            });
            let (events, summary) = session.observe(&seen);
            let told = events.iter().any(|event| matches!(event, Event::Warning { .. }));
            (told, summary.inference.newest_refused.is_some(), summary.limit)
        };
        assert_eq!(observe(0, None).2, "waiting for the first network");
        let (told, refused, limit) = observe(1, None);
        assert!(
            told && refused && limit.contains("refuses the network: logs/"),
            "{limit}"
        );
        assert!(!observe(1, None).0);
        assert!(observe(1, Some("damaged; step 1 is served")).0);
        assert!(!observe(0, Some("")).1);
    }

    #[tokio::test]
    async fn checkpoints_after_the_start_are_events_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::open(&folder.path().to_string_lossy()).unwrap();
        let before = published(&repository, 1).await;
        let mut session = Session::new(RunConfig::default(), &repository).await;
        assert!(session.published(before).is_none());
        let mut later = published(&repository, 2).await;
        // The clock was set back.
        later.created_at_ms = 1;
        assert!(session.published(later.clone()).is_some());
        assert!(session.published(later).is_none());
    }
}
