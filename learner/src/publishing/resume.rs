//! Finds the checkpoint from which training resumes.

use std::time::Duration;

use checkpoints::{Lease, Manifest, OPTIMIZER, Version, WEIGHTS};
use games::RowLayout;
use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use crate::{
    network::NetworkShape,
    publishing::snapshot::{LearnerState, Snapshot, SnapshotError, check_network},
};

/// A checkpoint from which training resumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    /// The checkpoint's version.
    pub version: Version,
    /// Training time of the checkpoint.
    pub trained: Duration,
    /// The training state in it.
    pub snapshot: Snapshot,
}

/// Error: training cannot resume from the newest checkpoint. There is no silent fallback to an older one.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The store failed, or the checkpoint is damaged.
    #[error(
        "cannot resume from the newest checkpoint (if it is damaged, remove its folder to resume from the one before)"
    )]
    Store(#[from] checkpoints::Error),
    /// The store belongs to another run.
    #[error("checkpoint {version} is of {found}, this run trains {wanted}; use another `checkpoints.store`")]
    Game {
        /// The checkpoint.
        version: Version,
        /// The checkpoint's game.
        found: String,
        /// The run's game.
        wanted: String,
    },
    /// The layout of the rows has changed.
    #[error("checkpoint {version} was trained on rows of another layout of {game}; begin a new run folder")]
    Layout {
        /// The checkpoint.
        version: Version,
        /// The game.
        game: String,
    },
    /// The learner's state is not readable.
    #[error("the learner's state in checkpoint {version} cannot be read")]
    State {
        /// The checkpoint.
        version: Version,
        /// Cause.
        source: serde_json::Error,
    },
    /// The checkpoint has another network.
    #[error("cannot resume from checkpoint {version}")]
    Network {
        /// The checkpoint.
        version: Version,
        /// The differences.
        source: SnapshotError,
    },
}

/// Returns the newest checkpoint of the store; `None` if there is none, or if `shutdown` comes first. Retries while the store does
/// not answer. If a crash has left the label of `lease` behind the newest checkpoint, the label is moved now.
///
/// # Errors
/// [`ResumeError`].
pub async fn newest(
    lease: &Lease,
    layout: &RowLayout,
    shape: &NetworkShape,
    shutdown: &CancellationToken,
) -> Result<Option<Resumed>, ResumeError> {
    let mut backoff = Backoff::for_connections();
    loop {
        match try_newest(lease, layout, shape).await {
            Err(ResumeError::Store(error)) if error.is_transient() => {
                if (backoff.attempts() + 1).is_power_of_two() {
                    tracing::warn!(error = %service::chain(&error), "cannot look for a checkpoint to resume from; retrying");
                }
                if !backoff.wait(shutdown).await {
                    return Ok(None);
                }
            }
            found => return found,
        }
    }
}

async fn try_newest(
    lease: &Lease,
    layout: &RowLayout,
    shape: &NetworkShape,
) -> Result<Option<Resumed>, ResumeError> {
    let repository = lease.repository();
    let Some(manifest) = lease.newest().await? else {
        return Ok(None);
    };
    check(&manifest, layout, shape)?;
    let version = manifest.version.clone();
    let state: LearnerState =
        serde_json::from_value(manifest.draft.learner_state.clone()).map_err(|source| {
            ResumeError::State {
                version: version.clone(),
                source,
            }
        })?;
    let snapshot = Snapshot {
        weights: repository.fetch(&manifest, WEIGHTS).await?,
        optimizer: repository.fetch(&manifest, OPTIMIZER).await?,
        state,
    };
    if repository.label(lease.label()).await?.as_ref() != Some(&version) {
        tracing::info!(%version, label = lease.label(), "moving the label to the newest checkpoint");
        lease.set_label(&version).await?;
    }
    let trained = Duration::from_millis(manifest.draft.trained_ms);
    Ok(Some(Resumed {
        version,
        trained,
        snapshot,
    }))
}

fn check(manifest: &Manifest, layout: &RowLayout, shape: &NetworkShape) -> Result<(), ResumeError> {
    let version = || manifest.version.clone();
    if manifest.draft.game != layout.game {
        return Err(ResumeError::Game {
            version: version(),
            found: manifest.draft.game.clone(),
            wanted: layout.game.clone(),
        });
    }
    let found: Option<RowLayout> = serde_json::from_value(manifest.draft.layout.clone()).ok();
    if found.as_ref() != Some(layout) {
        return Err(ResumeError::Layout {
            version: version(),
            game: layout.game.clone(),
        });
    }
    let found: NetworkShape =
        serde_json::from_value(manifest.draft.network.clone()).map_err(|source| ResumeError::State {
            version: version(),
            source,
        })?;
    check_network(shape, &found).map_err(|source| ResumeError::Network {
        version: version(),
        source,
    })
}
