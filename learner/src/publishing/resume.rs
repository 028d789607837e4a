//! Finds the checkpoint from which training resumes.

use anyhow::{Context as _, ensure};
use checkpoints::{LATEST, Lease, MODEL, Manifest, OPTIMIZER, WEIGHTS};
use games::RowLayout;
use network::file::check_layout;
use tokio_util::sync::CancellationToken;

use crate::{
    network::NetworkShape,
    publishing::{
        is_transient,
        snapshot::{LearnerState, Snapshot},
        until_answered,
    },
};

/// A checkpoint from which training resumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    /// The checkpoint.
    pub manifest: Manifest,
    /// Damage of its `model.onnx`, which the learner can export again; `None` if the file is sound.
    pub damage: Option<String>,
    /// The training state in it.
    pub snapshot: Snapshot,
}

/// Returns the newest checkpoint of the store; `None` if there is none, or if `shutdown` comes first. Retries while the store does
/// not answer. If a crash has left the label of `lease` behind the newest checkpoint, the label is moved now.
///
/// # Errors
/// Training cannot resume from the newest checkpoint. There is no silent fallback to an older one.
pub async fn newest(
    lease: &Lease,
    layout: &RowLayout,
    shape: &NetworkShape,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<Resumed>> {
    let failure = "cannot look for a checkpoint to resume from";
    match until_answered(failure, shutdown, || try_newest(lease, layout, shape)).await {
        Err(error) if is_transient(&error) => Ok(None),
        Err(error) if error.is::<checkpoints::Error>() => Err(error.context(
            "cannot resume from the newest checkpoint (if it is damaged, remove its folder, or let `minuet doctor --run DIR \
             --repair` set it aside, to resume from the one before)",
        )),
        found => found,
    }
}

async fn try_newest(
    lease: &Lease,
    layout: &RowLayout,
    shape: &NetworkShape,
) -> anyhow::Result<Option<Resumed>> {
    let repository = lease.repository();
    let Some(manifest) = repository.newest().await? else {
        return Ok(None);
    };
    check(&manifest, layout, shape)?;
    let version = manifest.version.clone();
    let state: LearnerState = serde_json::from_value(manifest.draft.learner_state.clone())
        .with_context(|| format!("the learner's state in checkpoint {version} cannot be read"))?;
    let snapshot = Snapshot {
        weights: repository.fetch(&manifest, WEIGHTS).await?,
        optimizer: repository.fetch(&manifest, OPTIMIZER).await?,
        state,
    };
    if repository.label(LATEST).await?.as_ref() != Some(&version) {
        tracing::info!(%version, label = LATEST, "moving the label to the newest checkpoint");
        lease.set_label(&version).await?;
    }
    let damage = match repository.fetch(&manifest, MODEL).await {
        Ok(_) => None,
        Err(error) if error.is_damage() => Some(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(Resumed {
        manifest,
        damage,
        snapshot,
    }))
}

fn check(manifest: &Manifest, layout: &RowLayout, shape: &NetworkShape) -> anyhow::Result<()> {
    let (version, draft) = (&manifest.version, &manifest.draft);
    ensure!(
        draft.game == layout.game,
        "checkpoint {version} is of {}, this run trains {}; use another `checkpoints.store`",
        draft.game,
        layout.game
    );
    let found: RowLayout = serde_json::from_value(draft.layout.clone())
        .with_context(|| format!("the row layout of checkpoint {version} cannot be read"))?;
    check_layout(&found, layout, &format!("checkpoint {version}"))
        .context("cannot resume; begin a new run folder")?;
    let found: NetworkShape = serde_json::from_value(draft.network.clone())
        .with_context(|| format!("the network of checkpoint {version} cannot be read"))?;
    let differences = shape.differences(&found);
    ensure!(
        differences.is_empty(),
        "cannot resume from checkpoint {version}: [model] describes another network than the checkpoint ({}); restore it, or begin a \
         new run folder",
        differences.join(", ")
    );
    Ok(())
}
