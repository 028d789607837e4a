//! The course of a `minuet up`: start everything, watch until something ends it, stop in order.

use std::{collections::BTreeMap, io, path::Path, pin::pin, time::Duration};

use anyhow::{Context, bail};
use checkpoints::{BEST, LATEST, Repository};
use futures::StreamExt;
use service::role::Role;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior},
};

use crate::grow;

use super::{
    Arguments,
    addresses::Addresses,
    census::Census,
    event::{Event, Process},
    folder::RunFolder,
    logs,
    plan::Plan,
    screen::Screen,
    session::Session,
    team::Team,
    watch::{Observation, Observer},
};

/// How often the roles are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Events that may wait to be shown; a supervisor that has more to say waits.
const EVENTS: usize = 256;

/// Why the run stops.
enum Reason {
    /// Somebody wants it to.
    Asked(String),
    /// It cannot go on.
    Failed(String),
}

/// Runs `minuet up` to its end.
pub async fn conduct(arguments: Arguments) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let mut screen = Screen::new(arguments.json);
    let overrides = arguments.overrides()?;
    let folder = RunFolder::open(&arguments.folder(), arguments.game.as_deref(), &overrides)?;
    // A larger network may have been about to take over when its process ended.
    grow::recover(folder.path()).await?;
    let plan = Plan::new(
        &folder,
        &overrides,
        usize::from(arguments.actors),
        arguments.replay_stores.map(usize::from),
    )?;
    let repository = Repository::open(&plan.config.checkpoints.store)?;
    let observer = Observer::new(&plan)?;
    let mut session = Session::new(plan.config.clone());
    let addresses = Addresses {
        inference: plan.config.inference.address.clone(),
        replay: plan.config.replay.address.clone(),
    };
    addresses
        .write(folder.path())
        .context("cannot write down the run's addresses")?;
    screen.event(&started(&plan, &folder))?;

    let census = tokio::select! {
        census = no_left_overs(folder.path(), &mut screen) => census?,
        name = signals.next() => bail!("{name} before anything was started"),
    };
    let (tell, mut told) = mpsc::channel(EVENTS);
    let mut team = Team::start(&plan, &folder, &arguments.binaries()?, census, &tell)?;
    let mut show = Show {
        screen: &mut screen,
        session: &mut session,
        told: &mut told,
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
    let text = match &reason {
        Reason::Asked(text) | Reason::Failed(text) => text.clone(),
    };
    // Where nobody reads any more, it stops all the same.
    let _ = show.screen.event(&Event::Stopping { reason: text });
    let kept = tokio::select! {
        kept = show.until_all_stopped(&mut team, &folder, &observer, &repository) => kept,
        name = signals.next() => bail!("{name} again: stopped at once"),
    };
    if let Err(error) = team.ended().await {
        // The next start finds out by itself that they are gone.
        let text = format!("cannot write down that all processes ended: {error}");
        let _ = screen.event(&Event::Warning { text });
    }
    screen.close();
    let _ = screen.event(&kept);
    match reason {
        Reason::Asked(_) => Ok(()),
        Reason::Failed(reason) => bail!(reason),
    }
}

fn started(plan: &Plan, folder: &RunFolder) -> Event {
    Event::Started {
        run: folder.path().display().to_string(),
        game: plan.config.game.name.clone(),
        new: folder.is_new(),
        inference: plan.config.inference.address.clone(),
        replay: plan.config.replay.address.clone(),
        processes: plan
            .members
            .iter()
            .map(|member| Process {
                name: member.name.clone(),
                metrics: member.metrics.to_string(),
            })
            .collect(),
    }
}

async fn no_left_overs(run: &Path, screen: &mut Screen) -> io::Result<Census> {
    let mut census = Census::open(run);
    let mut shown = Ok(());
    let waiting = census.wait_for_left_overs(|known| {
        let (name, pid) = (known.name.clone(), known.pid);
        if shown.is_ok() {
            shown = screen.event(&Event::LeftOver { name, pid });
        }
    });
    waiting.await;
    shown.map(|()| census)
}

/// What is shown while the run goes on and while it stops.
struct Show<'a> {
    screen: &'a mut Screen,
    session: &'a mut Session,
    told: &'a mut mpsc::Receiver<Event>,
}

impl Show<'_> {
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
        let mut looks = look_regularly(observer.clone(), known_pids);
        let mut time_is_up = pin!(sleep(limit));
        loop {
            let shown = tokio::select! {
                name = signals.next() => return Reason::Asked(name.into()),
                () = &mut time_is_up => {
                    return Reason::Asked(format!("the {} are over", humantime::format_duration(limit.unwrap_or_default())));
                }
                Some(event) = self.told.recv() => {
                    self.session.note(&event);
                    pids.send_replace(self.session.pids());
                    if let Event::RoleFailed { name, reason, log, .. } = &event {
                        let reason = format!("{name}: {reason}; see {log}");
                        let _ = self.screen.event(&event);
                        return Reason::Failed(reason);
                    }
                    self.screen.event(&event)
                }
                Some(manifest) = published.next() => match self.session.published(manifest) {
                    Some(event) => self.screen.event(&event),
                    None => Ok(()),
                },
                Some(manifest) = promoted.next() => match self.session.promoted(&manifest) {
                    Some(event) => self.screen.event(&event),
                    None => Ok(()),
                },
                Some(observation) = looks.recv() => {
                    for member in &plan.members {
                        // A log that cannot be made smaller now can be a second later.
                        let _ = logs::rotate(&folder.log(&member.name), logs::LARGEST);
                    }
                    let (events, summary) = self.session.observe(&observation);
                    let shown = events.iter().try_for_each(|event| self.screen.event(event));
                    shown.and_then(|()| self.screen.summary(summary))
                }
            };
            if let Err(error) = shown {
                return Reason::Asked(format!("nobody reads what this prints ({error})"));
            }
        }
    }

    /// Stops the team, and tells what happens meanwhile. Gives the last event.
    async fn until_all_stopped(
        &mut self,
        team: &mut Team,
        folder: &RunFolder,
        observer: &Observer,
        repository: &Repository,
    ) -> Event {
        let mut stopping = pin!(stop_in_order(team, observer));
        let (stats, killed) = loop {
            tokio::select! {
                // What was told comes before the end.
                biased;
                Some(event) = self.told.recv() => {
                    self.session.note(&event);
                    let _ = self.screen.event(&event);
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

/// Actors first, so that their finished games reach the store, and the rating, whose match goes on another time; then the learner, which saves its state; then what
/// both need. Gives games and positions ever stored, and the names of processes that had to be killed.
async fn stop_in_order(team: &mut Team, observer: &Observer) -> (Option<(u64, u64)>, Vec<String>) {
    let mut killed = team.stop(&[Role::Actor, Role::Rating]).await;
    killed.extend(team.stop(&[Role::Learner]).await);
    let stats = observer.stats().await;
    killed.extend(team.stop(&[Role::InferenceServer, Role::ReplayStore]).await);
    (
        stats.map(|stats| (stats.games_inserted, stats.positions_inserted)),
        killed,
    )
}

fn look_regularly(
    observer: Observer,
    pids: watch::Receiver<BTreeMap<String, u32>>,
) -> mpsc::Receiver<Observation> {
    let (give, looks) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = pids.borrow().clone();
            if give.send(observer.look(&now).await).await.is_err() {
                return;
            }
        }
    });
    looks
}

/// Ends after this long; never where there is no limit.
pub async fn sleep(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// What asks a command to stop.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Listens to them.
    ///
    /// # Errors
    /// If the operating system refuses a handler.
    pub fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one; gives what a person would call it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hang_up.recv() => "the terminal was closed",
        }
    }
}
