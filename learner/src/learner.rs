//! [`run`], which runs the learner: it connects the parts and shuts them down together.

use std::sync::Arc;

use anyhow::Context as _;
use checkpoints::{Lease, Repository};
use config::{PolicyTarget, RunConfig};
use network::{ModelFile, ModelName, file::check_layout};
use onnx::TowerWeights;
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
    },
    metrics::Metrics,
    network::NetworkShape,
    publishing::{
        lease::{self, LearnerFolder},
        publish::Publisher,
        resume,
        retention::Retention,
    },
    training::divergences::Divergences,
    worker::{Beginning, PROOF_POSITIONS, Worker},
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
        let shape = game.network(&config.model)?;
        let Some(lease) = lease::acquire(&repository, &folder, &metrics, &shutdown)
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
    let resumed_at = resumed.as_ref().map(|resumed| &resumed.snapshot.state.progress);
    let progress = resumed_at.cloned().unwrap_or_default();
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
    let packer = Packer {
        completed_q: match config.learner.policy_target {
            PolicyTarget::Visits => None,
            PolicyTarget::CompletedQ => Some(config.search.completed_q()),
        },
        root_value_share: config.learner.root_value_share,
        has_outcomes: shape.has_outcomes(),
        has_territory: shape.has_territory(),
        ..Packer::new(game.layout.clone(), game.symmetries.clone(), config.run.seed)
    };
    let link = Connector::new(&config.security).link(&config.replay.address)?;
    let publisher = Publisher::new(
        lease,
        game.layout.clone(),
        config.run.seed,
        Retention::new(&config.checkpoints, link.clone()),
        Handle::current(),
        shutdown.clone(),
    )?;
    let source = Source::new(
        link,
        packer,
        config.learner.clone(),
        config.run.seed,
        counts,
        Arc::clone(&metrics),
        send,
    );
    let beginning = Beginning {
        config,
        game,
        shape,
        publisher,
        view: source.view(),
        metrics,
        batches,
        resumed,
        start,
        line,
    };
    let until = shutdown.clone();
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("training".into())
        .spawn(move || done.send(Worker::begin(beginning).and_then(|worker| worker.work(&until))))
        .context("cannot start the training thread")?;
    let fetching = tokio::spawn(source.run(shutdown));
    // On shutdown the source ends first; after an error the training thread ends first. Each of them closes the queue, which ends the
    // other.
    let trained = ended.await.context("the training thread ended without a result");
    let fetched = fetching.await.context("the source of batches failed")?;
    trained??;
    fetched
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
        check_layout(&metadata.layout, &game.layout, "it")?;
        Ok(weights)
    };
    let weights = read().with_context(|| format!("`learner.start_from`: cannot begin with {name}"))?;
    Ok(Some(Box::new(weights)))
}
