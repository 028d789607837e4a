//! Runs `minuet up`: starts everything, watches until something ends the run, stops in order.

use std::{collections::BTreeMap, path::Path, pin::pin, time::Duration};

use anyhow::{Context, bail};
use checkpoints::{BEST, LATEST, Repository};
use futures::StreamExt;
use service::role::Role;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior},
};

use super::{arguments::Arguments, journal::Journal, session::Session, store_users};
use crate::{
    event::{Event, Process},
    plan::Plan,
    processes::{groups::ProcessGroups, list::ProcessList, logs},
    run::{addresses::Addresses, choices::FILE, folder::RunFolder, recipe},
    screen::Screen,
    signals::{Signals, sleep},
    watch::{Observation, Observer, Summary},
};

/// Interval at which the processes are observed.
const INTERVAL: Duration = Duration::from_secs(1);
/// Reason why the run stops: a request or the time limit (`Ok`), or a process that cannot be kept running (`Err`).
type Reason = Result<String, String>;

/// Runs `minuet up` until a signal, the time limit or a failed process ends it.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let mut screen = Screen::new(arguments.json).context("cannot start a thread")?;
    let overrides = arguments.overrides()?;
    let folder = RunFolder::open(&arguments.folder(), arguments.game.as_deref(), &overrides)?;
    let game = folder.load(&overrides)?.game;
    let (stored, wanted) = (folder.load(&[])?.game.title(), game.title());
    anyhow::ensure!(
        wanted == stored,
        "{} is a run of {stored}, and the settings of this command are of {wanted}; name another folder with --run",
        folder.path().display()
    );
    let actors = match arguments.actors {
        Some(count) => usize::from(count),
        // An interpreter runs one thread at a time, so that each core has a process.
        None if game.is_from_outside() => (service::process::cores() - 1).max(1),
        None => 1,
    };
    let mut plan = Plan::new(&folder, &overrides, actors)?;
    let mut journal = Journal::open(folder.path()).context("cannot record the run's figures")?;
    if !arguments.no_studio {
        let address = plan
            .add_studio(&folder)
            .context("cannot find a port for the studio")?;
        screen.event(&Event::Studio {
            url: format!("http://{address}/"),
        });
    }
    if let Some(text) = folder.note().map(str::to_owned) {
        let warning = Event::Warning { text };
        screen.event(&warning);
        journal.event(&warning);
    }
    let repository = Repository::open(&plan.config.checkpoints.store)?;
    let observer = Observer::new(&plan.config, plan.members())?;
    let mut session = Session::new(plan.config.clone(), &repository).await;
    Addresses::of_plan(&plan)
        .write(folder.path())
        .context("cannot write the run's addresses")?;
    let started = started(&plan, &folder);
    screen.event(&started);
    journal.event(&started);
    if let Some(kept) = &plan.choices {
        let chosen = Event::chosen(kept, true);
        screen.event(&chosen);
        journal.event(&chosen);
    }
    if let Some(fault) = &plan.choices_fault {
        let text = format!(
            "{FILE} cannot be read ({fault}): its settings are measured again, and it is written anew"
        );
        let warning = Event::Warning { text };
        screen.event(&warning);
        journal.event(&warning);
    }

    let waiting = async {
        let list = wait_for_left_overs_of(folder.path(), &screen).await;
        store_users::wait(&plan.config.replay.folder, |event| screen.event(&event)).await;
        list
    };
    let list = tokio::select! {
        list = waiting => list,
        name = signals.next() => bail!("{name} before anything was started"),
    };
    let (mut groups, mut events) =
        ProcessGroups::start(&plan.processes, folder.path(), &arguments.binaries()?, list)?;
    let mut show = Show {
        screen: &mut screen,
        journal: &mut journal,
        session: &mut session,
        events: &mut events,
    };
    let reason = show
        .until_it_ends(
            &plan,
            &folder,
            &observer,
            &repository,
            &mut signals,
            arguments.limit,
        )
        .await;
    let (Ok(text) | Err(text)) = reason.clone();
    show.event(&Event::Stopping { reason: text });
    let kept = tokio::select! {
        kept = show.until_all_stopped(&mut groups, &folder, &observer, &repository) => kept,
        name = signals.next() => bail!("{name} again: stopped at once"),
    };
    if let Err(error) = groups.ended().await {
        // The next start notices by itself that they have ended.
        let text = format!("cannot update the list of processes: {error}");
        screen.event(&Event::Warning { text });
    }
    journal.event(&kept);
    screen.close(&kept);
    reason.map(drop).map_err(anyhow::Error::msg)
}

fn started(plan: &Plan, folder: &RunFolder) -> Event {
    Event::Started {
        run: folder.path().display().to_string(),
        game: plan.config.game.name.clone(),
        new: folder.is_new(),
        settings: recipe::reason(&plan.config).filter(|_| folder.is_new()),
        inference: plan.config.inference.address.clone(),
        replay: plan.config.replay.address.clone(),
        processes: plan
            .processes
            .iter()
            .map(|member| Process {
                name: member.name.clone(),
                metrics: member.metrics.map(|page| page.to_string()).unwrap_or_default(),
            })
            .collect(),
    }
}

async fn wait_for_left_overs_of(run: &Path, screen: &Screen) -> ProcessList {
    let mut list = ProcessList::open(run);
    if let Some(fault) = list.fault() {
        let text = format!(
            "processes.json cannot be read ({fault}) and is written anew; processes of an earlier start that still run are not waited for"
        );
        screen.event(&Event::Warning { text });
    }
    for stranger in list.strangers() {
        let text = format!(
            "processes.json is a copy of another folder's: the {} there (process {}) is left alone",
            stranger.name, stranger.pid
        );
        screen.event(&Event::Warning { text });
    }
    let waiting = list.wait_for_left_overs(|known| {
        let (name, pid) = (known.name.clone(), known.pid);
        screen.event(&Event::LeftOver { name, pid });
    });
    waiting.await;
    list
}

/// Shows the run while it is at work and while it stops.
struct Show<'a> {
    screen: &'a mut Screen,
    journal: &'a mut Journal,
    session: &'a mut Session,
    events: &'a mut mpsc::Receiver<Event>,
}

impl Show<'_> {
    /// Shows an event and records it.
    fn event(&mut self, event: &Event) {
        let warning = self.journal.event(event);
        [Some(event), warning.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|event| self.screen.event(event));
    }

    /// Shows figures and records them.
    fn summary(&mut self, summary: Summary) {
        let warning = self.journal.summary(&summary);
        self.screen.summary(summary);
        warning.iter().for_each(|warning| self.screen.event(warning));
        if let Some(error) = self.screen.failure() {
            let text = format!("standard output cannot be written ({error}); the run continues without it");
            self.journal.event(&Event::Warning { text });
        }
    }

    async fn until_it_ends(
        &mut self,
        plan: &Plan,
        folder: &RunFolder,
        observer: &Observer,
        repository: &Repository,
        signals: &mut Signals,
        limit: Option<Duration>,
    ) -> Reason {
        let poll = Duration::from_millis(plan.config.checkpoints.poll_ms);
        let mut published = repository.watch(LATEST, poll);
        let mut promoted = if plan.config.rating.enabled {
            repository.watch(BEST, poll)
        } else {
            futures::stream::pending().boxed()
        };
        let (pids, known_pids) = watch::channel(BTreeMap::new());
        let mut observations = observe_regularly(observer.clone(), known_pids);
        let mut time_is_up = pin!(sleep(limit));
        loop {
            tokio::select! {
                name = signals.next() => return Ok(name.into()),
                () = &mut time_is_up => {
                    return Ok(format!("the time limit of {} is over", humantime::format_duration(limit.unwrap_or_default())));
                }
                Some(event) = self.events.recv() => {
                    self.session.note(&event);
                    pids.send_replace(self.session.pids());
                    self.event(&event);
                    if let Some(reason) = event.failure() {
                        return Err(reason);
                    }
                }
                Some(manifest) = published.next() => {
                    if let Some(event) = self.session.published(manifest) {
                        self.event(&event);
                    }
                }
                Some(manifest) = promoted.next() => {
                    if let Some(event) = self.session.promoted(&manifest) {
                        self.event(&event);
                    }
                }
                Some(observation) = observations.recv() => {
                    for member in &plan.processes {
                        // A failed rotation is tried again a second later.
                        let _ = logs::rotate(&folder.log(&member.name), logs::LARGEST);
                    }
                    let (mut events, summary) = self.session.observe(&observation);
                    if let Some(choices) = self.session.chosen(&observation) {
                        events.push(Event::chosen(&choices, false));
                        if let Err(error) = choices.keep(folder.path()) {
                            let text = format!("the next start measures again, since the choices cannot be kept: {error}");
                            events.push(Event::Warning { text });
                        }
                    }
                    events.iter().for_each(|event| self.event(event));
                    self.summary(summary);
                }
            }
        }
    }

    /// Stops all processes and shows the events meanwhile. Returns the last event.
    async fn until_all_stopped(
        &mut self,
        groups: &mut ProcessGroups,
        folder: &RunFolder,
        observer: &Observer,
        repository: &Repository,
    ) -> Event {
        let mut stopping = pin!(stop_in_order(groups, observer));
        let (stats, killed) = loop {
            tokio::select! {
                // Events that were sent come before the end.
                biased;
                Some(event) = self.events.recv() => {
                    self.session.note(&event);
                    self.event(&event);
                }
                ended = &mut stopping => break ended,
            }
        };
        if let Ok(manifest) = repository.resolve(LATEST).await {
            self.session.published(manifest);
        }
        let run = folder.path().display().to_string();
        Event::Stopped(self.session.kept(run, stats, killed))
    }
}

/// Stops the actors first, so that their finished games reach the store, and the rating, whose match the next start continues; then the
/// learner, which saves its state; then the servers that both need. Returns the numbers of games and positions ever stored, and
/// the names of processes that had to be killed.
async fn stop_in_order(groups: &mut ProcessGroups, observer: &Observer) -> (Option<(u64, u64)>, Vec<String>) {
    let mut killed = groups.stop(&[Role::Actor, Role::Rating, Role::Studio]).await;
    killed.extend(groups.stop(&[Role::Learner]).await);
    let stats = observer.stats().await;
    killed.extend(groups.stop(&[Role::InferenceServer, Role::ReplayStore]).await);
    (
        stats.map(|stats| (stats.games_inserted, stats.positions_inserted)),
        killed,
    )
}

fn observe_regularly(
    observer: Observer,
    pids: watch::Receiver<BTreeMap<String, u32>>,
) -> mpsc::Receiver<Observation> {
    let (send, observations) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval_at(Instant::now() + INTERVAL, INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = pids.borrow().clone();
            if send.send(observer.observe(&now).await).await.is_err() {
                return;
            }
        }
    });
    observations
}
