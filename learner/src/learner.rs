//! The role: puts the parts together and ends them together.

use std::sync::Arc;

use anyhow::Context as _;
use checkpoints::{Lease, Repository};
use config::RunConfig;
use games::RowSymmetries;
use service::{
    connect::{AddressError, Connector},
    role::Work,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        batches::Packer,
        game::TrainingGame,
        source::{PREFETCHED, Source, StoreView},
    },
    network::NetworkShape,
    publishing::{
        lease::{self, LearnerFolder},
        publish::Publisher,
        resume::{self, Resumed},
    },
    torch::device,
    training::{
        report::{self, Reporter},
        train::{Progress, Trainer},
    },
    worker::{PROOF_POSITIONS, Parts, Worker},
};

/// Trains until `shutdown`; then publishes what is not published yet. While another learner publishes to the same store
/// this one waits.
///
/// # Errors
/// Where the configuration names what is not there (game, device, ONNX Runtime), the newest checkpoint cannot be gone on
/// from, training cannot go on, or another learner has taken over. The replay store or the model store being away is no error.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        report::register();
        let folder = LearnerFolder::lock(&config.learner.folder)?;
        let repository = Repository::open(&config.checkpoints.store)?;
        let game = TrainingGame::new(&config.game, PROOF_POSITIONS, config.run.seed)?;
        let shape = NetworkShape::new(&config.model, &config.learner, &game.layout)?;
        let Some(lease) = lease::acquire(&repository, &config.checkpoints.line, &folder, &shutdown)
            .await
            .context("cannot publish to the model store")?
        else {
            return Ok(());
        };
        let lease = Arc::new(lease);
        // What was trained after the lease is lost would be for nothing.
        let stop = shutdown.child_token();
        let watching = tokio::spawn({
            let (lease, stop) = (lease.clone(), stop.clone());
            async move {
                lease.lost().await;
                stop.cancel();
            }
        });
        let trained = train(config, game, shape, lease.clone(), stop).await;
        watching.abort();
        lease::release(&lease).await;
        match lease.is_lost() {
            Some(error) => Err(error).context("training ends"),
            None => trained,
        }
    })
}

async fn train(
    config: RunConfig,
    game: TrainingGame,
    shape: NetworkShape,
    lease: Arc<Lease>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let resumed = resume::newest(&lease, &game.layout, &shape, &shutdown).await?;
    if shutdown.is_cancelled() {
        return Ok(());
    }
    let progress = resumed.as_ref().map_or_else(Progress::default, |resumed| {
        resumed.snapshot.state.progress.clone()
    });
    let (send, batches) = mpsc::channel(PREFETCHED);
    let symmetries = if config.learner.symmetries {
        game.symmetries.clone()
    } else {
        RowSymmetries::none()
    };
    let packer = Packer::new(game.layout.clone(), symmetries, config.run.seed)
        .with_root_values(config.learner.root_value_share)
        .for_network(&shape, &game.other_side);
    let connector = Connector::new(&config.security);
    let stores = config.replay.stores()?;
    let links = stores
        .all()
        .iter()
        .map(|store| Ok((store.name.clone(), connector.link(&store.address)?)))
        .collect::<Result<_, AddressError>>()?;
    let source = Source::new(links, packer, &config.learner, config.run.seed, &progress, send);
    let training = Training {
        config,
        game,
        shape,
        lease,
        resumed,
        view: source.view(),
        batches,
        runtime: Handle::current(),
        shutdown: shutdown.clone(),
    };
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("training".into())
        .spawn(move || done.send(training.run()))
        .context("cannot start the training thread")?;
    let fetching = tokio::spawn(source.run(shutdown));
    // The source ends first on shutdown, the thread first on failure; each ends the other by closing the queue.
    let trained = ended.await.context("the training thread ended without a word");
    let fetched = fetching.await.context("the source of batches failed")?;
    trained??;
    Ok(fetched?)
}

/// What the training thread needs to begin.
struct Training {
    config: RunConfig,
    game: TrainingGame,
    shape: NetworkShape,
    lease: Arc<Lease>,
    resumed: Option<Resumed>,
    view: Arc<StoreView>,
    batches: mpsc::Receiver<crate::data::batches::HostBatch>,
    runtime: Handle,
    shutdown: CancellationToken,
}

impl Training {
    fn run(self) -> anyhow::Result<()> {
        let config = &self.config;
        let device = device::choose(config.learner.device)?;
        device::set_threads(config.learner.threads);
        let publisher = Publisher::new(
            self.lease,
            self.game.layout.clone(),
            config.run.seed,
            config.checkpoints.keep,
            &config.inference.runtime,
            self.runtime,
            self.shutdown.clone(),
        )?;
        let (shape, layout, settings, seed) = (
            self.shape,
            self.game.layout.clone(),
            config.learner.clone(),
            config.run.seed,
        );
        let new_trainer = move || Trainer::new(&shape, &layout, &settings, seed, device);
        let folder = &config.learner.folder;
        let parts = Parts {
            new_trainer: Box::new(new_trainer),
            publisher,
            reporter: Reporter::open(folder)
                .with_context(|| format!("cannot write to {}", folder.display()))?,
            view: self.view,
            batches: self.batches,
            rows: self.game.rows,
            resumed: self.resumed,
        };
        Worker::begin(config, parts)?.work(&self.shutdown)
    }
}
