//! The rating role: plays new checkpoints against the best one, and moves the label `best` to a better one.
//!
//! | module | what it is for |
//! |---|---|
//! | `rater` | what is played next, and what becomes of it |
//! | [`duel`] | one match between two checkpoints, ended by a sequential test |
//! | [`results`] | all matches that are over; promotions in two steps |
//! | [`ratings`] | the ratings that follow from them |
//! | [`keeping`] | how many matches' games are kept |
//! | [`report`] | metrics, TensorBoard |
//! | [`error`] | what can go wrong |
//!
//! The newest checkpoint (`latest`) is the next candidate whenever a match is over, so rating never lags behind training by more than a
//! match; what was published in between is passed over. The label `candidate` keeps it from being pruned, and says which match
//! goes on after a restart. `best` is moved by compare-and-swap from the checkpoint that was played against: where
//! somebody else has moved it meanwhile, the match ends and its games count for the ratings only. Where somebody has moved it to a
//! checkpoint that was never played, that one is played first, so that it has a rating; where nobody is left in the model store whom it
//! could play, the ratings begin anew with it.
//!
//! A disk that is full or fails, and a model store or inference server that is away, are waited for.
//!
//! What is kept lies in the folder `rating.folder`:
//!
//! | path | what it is |
//! |---|---|
//! | `metrics.jsonl` | a line for each match that is over, with the ratings after it |
//! | `matches/<candidate>-vs-<best>-<settings>/` | the last matches' games (`rating.keep_matches` of them), as `minuet arena` keeps them |
//! | `promotion.json` | there while `best` is moved: the line that follows |
//! | `tensorboard/` | Elo over training steps |
//! | `lock` | held by the one process that rates here |

pub mod duel;
pub mod error;
pub mod keeping;
mod rater;
pub mod ratings;
pub mod report;
pub mod results;

use std::{
    fs::{self, File, TryLockError},
    path::Path,
};

use config::{ConfigError, RunConfig};
use games::{
    Game,
    registry::{self, Visitor},
};
use service::{backoff::Backoff, role::Work};
use tokio_util::sync::CancellationToken;

use rater::Rater;

pub use error::RatingError;

const LOCK: &str = "lock";
/// Folder of the matches' folders.
pub const MATCHES: &str = "matches";

/// Rates until `shutdown`. A match that is interrupted goes on with the next start.
///
/// # Errors
/// [`RatingError`] where the run has nothing that could be rated, or its files cannot be used. The model store or the inference
/// server being away is no error, nor is a full disk.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        report::register();
        check_game(&config.game.name)?;
        let sprt = duel::sprt(&config.rating)?;
        let mut backoff = Backoff::for_connections();
        let (_lock, rater) = loop {
            let opened = take(&config.rating.folder)
                .and_then(|lock| Ok((lock, Rater::open(&config, sprt, shutdown.clone())?)));
            match opened {
                Ok(opened) => break opened,
                Err(error) if error.is_passing() => {
                    if !wait(&error, &mut backoff, &shutdown).await {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        };
        Ok(rater.work().await?)
    })
}

/// Waits before the next attempt. False where there should be none: `shutdown` came first.
async fn wait(error: &RatingError, backoff: &mut Backoff, shutdown: &CancellationToken) -> bool {
    if (backoff.attempts() + 1).is_power_of_two() {
        tracing::warn!(%error, "cannot rate; trying again");
    }
    backoff.wait(shutdown).await
}

/// Checks that a game has somebody to play against.
///
/// # Errors
/// [`RatingError::Config`].
pub fn check_game(name: &str) -> Result<(), RatingError> {
    struct Players;

    impl Visitor for Players {
        type Output = u8;

        fn visit<G: Game>(self) -> u8 {
            G::PLAYERS
        }
    }

    match registry::visit(name, Players).map_err(RatingError::of_game)? {
        1 => Err(RatingError::Config(ConfigError::Game(format!(
            "`rating.enabled`: {name} has one player, so checkpoints cannot play each other; `minuet bench {name}` measures them"
        )))),
        _ => Ok(()),
    }
}

/// Takes the folder for this process; it is given back when the file is closed.
fn take(folder: &Path) -> Result<File, RatingError> {
    let path = folder.join(LOCK);
    let io = |source| RatingError::Io {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(io)?;
    let file = File::create(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RatingError::Taken(folder.into())),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}
