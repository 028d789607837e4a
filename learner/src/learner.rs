//! [`run`], which runs the learner: it connects the parts and shuts them down together.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use checkpoints::{Lease, Repository};
use config::{PolicyTarget, RunConfig};
use games::RowSymmetries;
use network::{ModelFile, ModelName};
use onnx::TowerWeights;
use search::CompletedQ;
use service::{connect::Connector, role::Work};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        game::TrainingGame,
        ledger::DrawCounts,
        packer::Packer,
        source::{PREFETCHED, Source},
        store_view::StoreView,
    },
    metrics::Metrics,
    network::NetworkShape,
    publishing::{
        lease::{self, LearnerFolder},
        publish::Publisher,
        resume::{self, Resumed},
        retention::Retention,
    },
    torch::device,
    training::{
        divergences::Divergences,
        report::Reporter,
        train::{Progress, Trainer},
    },
    worker::{PROOF_POSITIONS, Parts, Worker},
};

/// Trains until `shutdown`, then publishes a last checkpoint. Waits first while another learner publishes to the same store.
///
/// # Errors
/// The configuration names a game, a device or an ONNX Runtime that does not exist; the newest checkpoint does not fit; training
/// diverged twice in a row; or another learner has taken over. If a store does not answer, the learner waits for it.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let metrics = Arc::new(Metrics::new());
        let folder = LearnerFolder::lock(&config.learner.folder)?;
        let repository = Repository::open(&config.checkpoints.store)?;
        let game = TrainingGame::new(&config.game, PROOF_POSITIONS, config.run.seed)?;
        let shape = NetworkShape::new(&config.model, &game.layout)?;
        let line = &config.checkpoints.line;
        let Some(lease) = lease::acquire(&repository, line, &folder, &metrics, &shutdown)
            .await
            .context("cannot publish to the model store")?
        else {
            return Ok(());
        };
        let lease = Arc::new(lease);
        // Training ends when the lease is lost, because nothing trained after that could be published.
        let until_lost = shutdown.child_token();
        let watching = tokio::spawn({
            let (lease, until_lost) = (lease.clone(), until_lost.clone());
            async move {
                lease.lost().await;
                until_lost.cancel();
            }
        });
        let trained = train(config, game, shape, lease.clone(), metrics, until_lost).await;
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
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let resumed = resume::newest(&lease, &game.layout, &shape, &shutdown).await?;
    if shutdown.is_cancelled() {
        return Ok(());
    }
    let start = match &resumed {
        Some(_) => None,
        None => first_weights(&config, &game)?,
    };
    let progress = resumed.as_ref().map_or_else(Progress::default, |resumed| {
        resumed.snapshot.state.progress.clone()
    });
    let line = match progress.draws.line {
        0 => rand::random::<u64>().max(1),
        line => line,
    };
    // After a divergence the batches since the checkpoint are not drawn again: training on them would diverge again.
    let divergences = Divergences::open(&config.learner.folder, Arc::clone(&metrics));
    let counts = DrawCounts {
        line: line.wrapping_add(divergences.since(progress.rollbacks)),
        ..progress.draws
    };
    let (send, batches) = mpsc::channel(PREFETCHED);
    let symmetries = if config.learner.symmetries {
        game.symmetries.clone()
    } else {
        RowSymmetries::none()
    };
    let packer = Packer::new(game.layout.clone(), symmetries, config.run.seed)
        .with_completed_q(completed_q(&config))
        .with_root_values(config.learner.root_value_share)
        .with_outcomes(shape.has_outcomes());
    let link = Connector::new(&config.security).link(&config.replay.address)?;
    let retention = Retention::new(&config.checkpoints, link.clone());
    let source = Source::new(
        link,
        packer,
        &config.learner,
        config.run.seed,
        &counts,
        Arc::clone(&metrics),
        send,
    );
    let training = Training {
        config,
        game,
        shape,
        lease,
        retention,
        resumed,
        start,
        line,
        view: source.view(),
        metrics,
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
    // On shutdown the source ends first; after an error the training thread ends first. Each of them closes the queue, which ends the
    // other.
    let trained = ended.await.context("the training thread ended without a result");
    let fetched = fetching.await.context("the source of batches failed")?;
    trained??;
    Ok(fetched?)
}

/// Reads the weights with which a new run begins; `None`: random ones.
fn first_weights(config: &RunConfig, game: &TrainingGame) -> anyhow::Result<Option<Box<TowerWeights>>> {
    let name = &config.learner.start_from;
    if name.is_empty() {
        return Ok(None);
    }
    let read = || -> anyhow::Result<TowerWeights> {
        let file = ModelFile::find(&name.parse::<ModelName>()?)?;
        let (weights, metadata) = onnx::tower_of(&file.bytes)?;
        ensure!(
            metadata.layout == game.layout,
            "its rows are those of {} (options {}), this run trains {} (options {})",
            metadata.layout.game,
            metadata.layout.options,
            game.layout.game,
            game.layout.options
        );
        Ok(weights)
    };
    let weights = read().with_context(|| format!("`learner.start_from`: cannot begin with {name}"))?;
    Ok(Some(Box::new(weights)))
}

/// Returns the computation of policy targets; `None` for the visits.
fn completed_q(config: &RunConfig) -> Option<CompletedQ> {
    match config.learner.policy_target {
        PolicyTarget::Visits => None,
        PolicyTarget::CompletedQ => Some(config.search.completed_q()),
    }
}

/// Everything that the training thread needs.
struct Training {
    config: RunConfig,
    game: TrainingGame,
    shape: NetworkShape,
    lease: Arc<Lease>,
    retention: Retention,
    resumed: Option<Resumed>,
    start: Option<Box<TowerWeights>>,
    line: u64,
    view: Arc<StoreView>,
    metrics: Arc<Metrics>,
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
            self.retention,
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
            reporter: Reporter::open(folder, Arc::clone(&self.metrics))
                .with_context(|| format!("cannot write to {}", folder.display()))?,
            view: self.view,
            metrics: self.metrics,
            batches: self.batches,
            rows: self.game.rows,
            resumed: self.resumed,
            start: self.start,
            line: self.line,
        };
        Worker::begin(config, parts)?.work(&self.shutdown)
    }
}
