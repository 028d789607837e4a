//! The rating role: plays new checkpoints against the best one, and moves the label `best` to a better one.
//!
//! | module | what it is for |
//! |---|---|
//! | `rater` | chooses the next match and acts on its result |
//! | [`pairing`] | the two checkpoints of a match, and what its result means |
//! | [`duel`] | one match between two checkpoints, ended by a sequential test |
//! | [`results`] | finished matches, in memory and on disk; promotions in two steps; the games of old matches are removed |
//! | [`ratings`] | the ratings that follow from the matches (the formula is in [`bradley_terry`](crate::statistics::bradley_terry)) |
//! | [`damage`] | files of a rating that cannot be read |
//! | [`metrics`] | the metrics page, the log and TensorBoard |
//! | [`error`] | which errors are temporary |
//!
//! In games of one player a match is about the same held-out problems for both, by kind and level
//! ([`problems`](crate::matches::problems)).
//!
//! When a match ends, the newest checkpoint (`latest`) is the next candidate. So rating lags behind training by one match at most;
//! checkpoints published in between are skipped. The label `candidate` keeps the candidate from being pruned and names the match to
//! continue after a restart.
//!
//! The label `best` is moved by compare-and-swap from the checkpoint that the candidate played against. If somebody else has moved
//! `best` meanwhile, the match ends and its games count for the ratings only. If somebody has moved `best` to a checkpoint that was
//! never played, that checkpoint is played first, so that it gets a rating. If none of the rated checkpoints is left in the model
//! store, the ratings begin anew with it.
//!
//! The role waits while the disk is full or fails, and while the model store or the inference server cannot be reached.
//!
//! Files in the folder `rating.folder`:
//!
//! | path | contents |
//! |---|---|
//! | `metrics.jsonl` | a line for each finished match, with the ratings after the match |
//! | `matches/<candidate>-vs-<best>-<settings>/` | games of the last `rating.keep_matches` matches, in the format of `minuet arena` |
//! | `promotion.json` | exists while `best` is being moved: the line that will be added to `metrics.jsonl` |
//! | `tensorboard/` | Elo over training steps |
//! | `lock` | locked by the process that rates in this folder |

pub mod damage;
pub mod duel;
pub mod error;
pub mod metrics;
mod pairing;
mod rater;
pub mod ratings;
pub mod results;

use std::{fs::File, path::Path, sync::Arc};

use anyhow::Context as _;
use config::RunConfig;
use service::{backoff::Backoff, role::Work};
use tokio_util::sync::CancellationToken;

use crate::files;
use metrics::Metrics;
use rater::{Rater, wait};

pub use results::{MATCHES, Outcome, RatedMatch};

/// Rates until `shutdown`. A match that is interrupted continues after the next start.
///
/// # Errors
/// The run's checkpoints cannot be rated, or its files cannot be used. Temporary failures, such as a model store
/// that cannot be reached or a full disk, are retried and are not errors.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let metrics = Arc::new(Metrics::register());
        let sprt = duel::sprt(&config.rating)?;
        let mut backoff = Backoff::for_connections();
        let (_lock, rater) = loop {
            let opened = lock(&config.rating.folder).and_then(|lock| {
                let rater = Rater::open(&config, sprt, metrics.clone(), shutdown.clone())?;
                Ok((lock, rater))
            });
            match opened {
                Ok(opened) => break opened,
                Err(error) if error::is_temporary(&error) => {
                    if !wait(&error, &mut backoff, &shutdown).await {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        };
        rater.work().await
    })
}

fn lock(folder: &Path) -> anyhow::Result<File> {
    let locked = files::lock(folder).with_context(|| files::cannot_use(&folder.join(files::LOCK)))?;
    locked.with_context(|| {
        let folder = folder.display();
        format!("another process rates in {folder}; give each its own `rating.folder`, or stop the other one")
    })
}
