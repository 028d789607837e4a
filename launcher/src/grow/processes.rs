//! The larger network's learner, and the run's replay stores where the run is not at work: [`Processes`].

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use config::{Override, RunConfig};
use service::role::Role;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::nursery::Nursery;
use crate::up::{
    addresses::Addresses,
    census::Census,
    event::Event,
    folder::{CONFIG, RunFolder},
    plan::{Member, Plan},
    supervise::{Place, supervise},
    team::Missing,
};

/// Events that may wait.
const EVENTS: usize = 64;
const LEARNER: &str = "learner-grown";

/// What runs. Dropping it kills it.
pub struct Processes {
    /// Held where the run is not at work: nobody else may start its stores then.
    run: Option<RunFolder>,
    learner: Group,
    stores: Group,
    events: mpsc::Receiver<Event>,
}

/// Processes that stop together.
#[derive(Default)]
struct Group {
    stop: CancellationToken,
    members: JoinSet<bool>,
}

impl Group {
    fn start(&mut self, member: Member, place: Place) {
        self.members.spawn(supervise(member, place, self.stop.clone()));
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        while self.members.join_next().await.is_some() {}
    }
}

impl Processes {
    /// Starts what is needed: where the run is at work its own stores are asked.
    ///
    /// # Errors
    /// Where the run's folder cannot be used, or a binary is missing.
    pub fn start(
        run: &Path,
        config: &RunConfig,
        nursery: &Nursery,
        wishes: &[Override],
        binaries: &Path,
    ) -> anyhow::Result<Self> {
        for role in [Role::Learner, Role::ReplayStore] {
            Missing::check(role, binaries)?;
        }
        let (tell, events) = mpsc::channel(EVENTS);
        // Of its own: the run's file belongs to whoever works there.
        let census = Arc::new(Mutex::new(Census::open(nursery.path())));
        let place = |name: &str| Place {
            binaries: binaries.into(),
            log: run.join("logs").join(format!("{name}.log")),
            census: census.clone(),
            events: tell.clone(),
        };
        let mut stores = Group::default();
        let (held, address) = match Addresses::of_running(run) {
            Some(addresses) => (None, addresses.replay),
            None => {
                let folder = RunFolder::open(run, None, &[])?;
                let plan = Plan::new(&folder, &[], 0, None)?;
                let members = plan.members.into_iter();
                for member in members.filter(|member| member.role == Role::ReplayStore) {
                    let place = place(&member.name);
                    stores.start(member, place);
                }
                (Some(folder), plan.config.replay.address)
            }
        };
        let mut learner = Group::default();
        let member = learner_member(run, config, nursery, wishes, &address)?;
        learner.start(member, place(LEARNER));
        Ok(Self {
            run: held,
            learner,
            stores,
            events,
        })
    }

    /// Whether the run is at work.
    pub fn is_beside(&self) -> bool {
        self.run.is_none()
    }

    /// What happens next.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Asks the learner to publish what it has and to end, and waits for that.
    pub async fn stop_learner(&mut self) {
        let events = &mut self.events;
        let drain = async {
            while events.recv().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.learner.stop() => {}
            () = drain => {}
        }
    }

    /// Stops everything in order.
    pub async fn stop(mut self) {
        self.stop_learner().await;
        let events = &mut self.events;
        let drain = async {
            while events.recv().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.stores.stop() => {}
            () = drain => {}
        }
    }
}

fn learner_member(
    run: &Path,
    config: &RunConfig,
    nursery: &Nursery,
    wishes: &[Override],
    replay: &str,
) -> anyhow::Result<Member> {
    let text = |text: &str| toml::Value::String(text.into()).to_string();
    let mut set = vec![
        Override::new("replay.address", text(replay))?,
        Override::new("learner.folder", text(&nursery.path().to_string_lossy()))?,
        Override::new("checkpoints.store", text(&nursery.store()))?,
        Override::new("learner.metrics", text(""))?,
        Override::new("learner.health", text(""))?,
        // The bounds are kept by the store; here they would only be compared with a pace that is not the run's.
        Override::new("replay.max_uses", "0.0")?,
        Override::new("replay.min_uses", "0.0")?,
    ];
    if config.checkpoints.keep == 0 {
        // Of those that grow nobody needs every one.
        set.push(Override::new("checkpoints.keep", 20)?);
    }
    set.extend(wishes.iter().cloned());
    let mut arguments = vec![
        "--config".to_owned(),
        run.join(CONFIG).display().to_string(),
        "--supervised".to_owned(),
    ];
    for single in &set {
        arguments.extend(["--set".to_owned(), single.to_string()]);
    }
    Ok(Member {
        name: LEARNER.into(),
        role: Role::Learner,
        arguments,
        environment: vec![
            ("MALLOC_ARENA_MAX", "2"),
            ("OMP_WAIT_POLICY", "PASSIVE"),
            ("GOMP_SPINCOUNT", "0"),
        ],
        // It has none.
        metrics: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        stop_within: Duration::from_secs(60),
    })
}
