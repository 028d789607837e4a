//! The thread that takes finished games from the workers and writes them to the spool.
//!
//! Games that finish during one write go into the next write together. While the spool is over its limit, or writes fail, the
//! thread takes no games: its short queue fills, the workers block, and self-play pauses until there is room again.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context as _;
use service::log_throttle::LogThrottle;
use tokio_util::sync::CancellationToken;

use super::Spool;
use crate::{GameId, metrics::Metrics};

/// Delay before another attempt after a failed write.
const RETRY: Duration = Duration::from_millis(500);
/// Shortest time between two log lines about a pause.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// A finished game, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Id of the game.
    pub id: GameId,
    /// The encoded `Game` message.
    pub bytes: Vec<u8>,
}

/// Sender of finished games; blocks while self-play is paused.
pub type FinishedGames = SyncSender<Finished>;

/// Starts the thread. The thread ends when every sender is dropped, with an error if finished games are lost. `queue` is the number of games that wait before workers block.
///
/// Games that arrive after `shutdown` are still written, even over the limit; they are lost only if the write fails.
///
/// # Errors
/// The error of the operating system if no thread can be started.
pub fn start(
    spool: Arc<Spool>,
    queue: usize,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> io::Result<(FinishedGames, JoinHandle<anyhow::Result<()>>)> {
    let (sender, receiver) = sync_channel(queue.max(1));
    let writer = Writer {
        spool,
        metrics,
        shutdown,
        pauses: LogThrottle::new(LOG_INTERVAL),
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
    /// Log throttle for pauses of self-play.
    pauses: LogThrottle,
}

impl Writer {
    fn run(&self, finished: &Receiver<Finished>) -> anyhow::Result<()> {
        while let Ok(first) = finished.recv() {
            let mut games = vec![first];
            games.extend(finished.try_iter());
            self.write(&games).with_context(|| {
                // The games on which workers are still blocked are lost as well.
                let count = games.len() + finished.iter().count();
                format!("{count} finished games are lost, because the spool cannot be written")
            })?;
            self.metrics.games.add(games.len() as u64);
            self.pause_while_full();
        }
        Ok(())
    }

    /// Tries to write until it succeeds. After the shutdown there is one last attempt.
    fn write(&self, games: &[Finished]) -> anyhow::Result<()> {
        loop {
            let is_last_try = self.shutdown.is_cancelled();
            match self.spool.append(games) {
                Ok(()) => break,
                Err(error) if is_last_try => {
                    self.end_pause();
                    return Err(error);
                }
                Err(error) => self.pause(|| {
                    tracing::error!(error = %service::chain(&*error), "finished games cannot be written, self-play pauses until they can");
                }),
            }
            self.spool.wait_for_room(RETRY);
        }
        self.end_pause();
        Ok(())
    }

    fn pause_while_full(&self) {
        while self.spool.is_full() && !self.shutdown.is_cancelled() {
            let size = self.spool.size();
            self.pause(|| {
                tracing::warn!(
                    games = size.games,
                    mib = size.bytes >> 20,
                    limit_mib = self.spool.max_bytes >> 20,
                    set_aside_mib = size.set_aside >> 20,
                    "the spool is full, self-play pauses until the replay store has taken games \
                     (or refused and damaged games are removed)"
                );
            });
            self.spool.wait_for_room(RETRY);
        }
        self.end_pause();
    }

    /// Notes that self-play pauses, which is logged at intervals.
    fn pause(&self, log: impl FnOnce()) {
        self.metrics.paused.set(1);
        if self.pauses.allows() {
            log();
        }
    }

    fn end_pause(&self) {
        if self.pauses.reset() {
            self.metrics.paused.set(0);
            tracing::info!("self-play continues");
        }
    }
}
