//! The thread that takes finished games from the workers and makes them durable.
//!
//! Games that finish while one write is under way go into the next one together. While the spool is over its limit,
//! or the disk takes nothing, it takes no games either: the short queue fills, the workers block on it, self-play
//! pauses, and goes on when there is room again.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::{Spool, SpoolError};
use crate::{GameId, metrics::Metrics};

/// How long a disk that refused a write is left alone.
const RETRY: Duration = Duration::from_millis(500);
/// How often a pause is said to go on.
const REMINDER: Duration = Duration::from_secs(30);

/// A finished game, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its id.
    pub id: GameId,
    /// The encoded `Game` message.
    pub bytes: Vec<u8>,
}

/// Where workers hand in finished games; blocks while self-play is paused.
pub type FinishedGames = SyncSender<Finished>;

/// Games that could not be written before the process was asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("{count} finished games are lost, the spool cannot be written: {source}")]
pub struct Lost {
    /// How many.
    pub count: usize,
    /// Why.
    pub source: SpoolError,
}

/// Starts the thread; it ends when every sender is dropped. `queue` games wait at most before workers block.
///
/// After `shutdown` whatever is handed in is still written, over the limit if need be; only a disk that takes nothing loses it.
///
/// # Errors
/// Where no thread can be started.
pub fn start(
    spool: Arc<Spool>,
    queue: usize,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> io::Result<(FinishedGames, JoinHandle<Result<(), Lost>>)> {
    let (sender, receiver) = sync_channel(queue.max(1));
    let writer = Writer {
        spool,
        metrics,
        shutdown,
    };
    let thread = thread::Builder::new()
        .name("spool".into())
        .spawn(move || writer.run(&receiver))?;
    Ok((sender, thread))
}

struct Writer {
    spool: Arc<Spool>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
}

impl Writer {
    fn run(&self, finished: &Receiver<Finished>) -> Result<(), Lost> {
        while let Ok(first) = finished.recv() {
            let mut games = vec![first];
            games.extend(finished.try_iter());
            if let Err(source) = self.write(&games) {
                // What the workers are still blocked on is lost as well.
                let count = games.len() + finished.iter().count();
                return Err(Lost { count, source });
            }
            self.metrics.games.add(games.len() as u64);
            self.pause_while_full();
        }
        Ok(())
    }

    /// Writes until it succeeds; gives up after the shutdown.
    fn write(&self, games: &[Finished]) -> Result<(), SpoolError> {
        let mut pause = Pause::default();
        loop {
            let is_last_try = self.shutdown.is_cancelled();
            match self.spool.append(games) {
                Ok(()) => break,
                Err(error) if is_last_try => {
                    pause.end(&self.metrics);
                    return Err(error);
                }
                Err(error) => pause.go_on(&self.metrics, || {
                    tracing::error!(%error, "finished games cannot be kept, self-play pauses until they can");
                }),
            }
            self.spool.wait_for_room(RETRY);
        }
        pause.end(&self.metrics);
        Ok(())
    }

    fn pause_while_full(&self) {
        let mut pause = Pause::default();
        while self.spool.is_full() && !self.shutdown.is_cancelled() {
            let size = self.spool.size();
            pause.go_on(&self.metrics, || {
                tracing::warn!(
                    games = size.games,
                    mib = size.bytes >> 20,
                    limit_mib = self.spool.max_bytes() >> 20,
                    set_aside_mib = size.set_aside >> 20,
                    "the spool is full, self-play pauses until the replay store has taken games \
                     (or refused and damaged ones are cleared away)"
                );
            });
            self.spool.wait_for_room(RETRY);
        }
        pause.end(&self.metrics);
    }
}

/// Says that self-play pauses, now and then while it lasts, and when it is over.
#[derive(Default)]
struct Pause {
    said: Option<Instant>,
}

impl Pause {
    fn go_on(&mut self, metrics: &Metrics, say: impl FnOnce()) {
        metrics.paused.set(1);
        if self.said.is_none_or(|said| said.elapsed() >= REMINDER) {
            say();
            self.said = Some(Instant::now());
        }
    }

    fn end(self, metrics: &Metrics) {
        if self.said.is_some() {
            metrics.paused.set(0);
            tracing::info!("self-play goes on");
        }
    }
}
