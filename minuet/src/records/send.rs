//! Sends games to the replay store, and resends games that the store refuses temporarily.

use std::{collections::VecDeque, pin::pin, time::Duration};

use anyhow::{bail, ensure};
use futures::{Stream, StreamExt as _};
use launcher::signals::Signals;
use parking_lot::Mutex;
use proto::v1::{AppendAck, Game, StatsRequest};
use replay_store::client::Client;
use service::backoff::Backoff;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::source::{Source, status_error};

/// Maximum number of games that are sent and not acknowledged.
pub const WINDOW: usize = 64;
/// Maximum number of refusals that are reported individually.
const REFUSALS: usize = 10;
/// First and longest pause before games that were refused temporarily are sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Interval at which the progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the reports that positions are awaited. The store treats a report as valid for two seconds.
const AWAIT_INTERVAL: Duration = Duration::from_millis(500);

/// Counts of the store's answers, which sending changes and the display of the progress reads.
pub type AppendCounts = Mutex<Counts>;

/// Counts of the store's answers.
#[derive(Debug, Default)]
pub struct Counts {
    /// Number of games stored.
    pub stored: u64,
    /// Number of games that the store already had.
    pub duplicates: u64,
    /// Number of games refused permanently.
    pub refused: u64,
    /// The first of these refusals.
    refusals: Vec<AppendAck>,
    /// Number of games that were refused temporarily and will be sent again.
    waiting: usize,
    /// Reason of the last temporary refusal.
    reason: String,
}

impl Counts {
    /// Returns the counts in words.
    pub fn summary(&self) -> String {
        let (stored, duplicates, refused) = (self.stored, self.duplicates, self.refused);
        let mut text = format!("{stored} games stored, {duplicates} already present, {refused} refused");
        if self.waiting > 0 {
            text += &format!("; {} wait to be sent again ({})", self.waiting, self.reason);
        }
        text
    }
}

/// Waits until `sending` has ended, and prints its progress meanwhile. A signal cancels `shutdown`, a second one ends the waiting.
///
/// # Errors
/// That of `sending`, a game was refused, or a signal stopped it.
pub async fn watched(
    sending: impl Future<Output = anyhow::Result<()>>,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let mut sending = pin!(sending);
    let mut progress = tokio::time::interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    let mut stopped_by = None;
    let ended = loop {
        tokio::select! {
            ended = &mut sending => break ended,
            _ = progress.tick() => eprintln!("{}", append_counts.lock().summary()),
            name = signals.next() => {
                if stopped_by.replace(name).is_some() {
                    bail!("stopped by a second {name}; games in transit may or may not be stored");
                }
                eprintln!("{name}: stopping when the games in transit are stored; repeat to stop at once");
                shutdown.cancel();
            }
        }
    };
    let counts = append_counts.lock();
    for ack in &counts.refusals {
        let reason = service::plain(&ack.refused);
        eprintln!("game {} was refused: {reason}", proto::ids::hex(&ack.id));
    }
    ended?;
    if let Some(name) = stopped_by {
        bail!("stopped by {name}; run the same command again to send the remaining games");
    }
    ensure!(counts.refused == 0, "{} games were refused", counts.refused);
    Ok(())
}

/// Reports to the store, until the returned set is dropped, that positions are awaited. A store with `replay.min_uses` then accepts games
/// although no learner samples positions. Errors are ignored here, because sending games fails with them too.
pub async fn await_positions(client: &Client) -> JoinSet<()> {
    let request = StatsRequest {
        awaits_positions: true,
    };
    let mut reports = JoinSet::new();
    let mut client = client.clone();
    let _ = client.stats(request).await;
    reports.spawn(async move {
        loop {
            tokio::time::sleep(AWAIT_INTERVAL).await;
            let _ = client.stats(request).await;
        }
    });
    reports
}

/// Sends games to the store until each is stored, a duplicate or refused permanently, or `shutdown` is cancelled; then waits for the answers to
/// the games that were sent.
///
/// # Errors
/// The store's status if it takes no games at all.
pub async fn put(
    source: &mut Source,
    games: mpsc::Receiver<Game>,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let (outbound, sent) = mpsc::channel(WINDOW);
    let acks = source
        .client
        .append(ReceiverStream::new(sent))
        .await
        .map_err(status_error)?;
    send_games(games, outbound, acks.into_inner(), append_counts, shutdown).await
}

/// Sends games to a store. Games that it refuses temporarily are sent again after a pause, which grows with each refusal.
async fn send_games(
    mut games: mpsc::Receiver<Game>,
    outbound: mpsc::Sender<Game>,
    mut acks: impl Stream<Item = Result<AppendAck, Status>> + Unpin,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE, rand::random());
    let mut in_transit: Vec<Game> = Vec::new();
    let mut resend: VecDeque<Game> = VecDeque::new();
    let mut resume: Option<Instant> = None;
    let mut has_more = true;
    loop {
        while resume.is_none()
            && in_transit.len() < WINDOW
            && let Some(game) = resend.pop_front()
        {
            in_transit.push(game.clone());
            // If the stream has ended, `acks.next()` below reports it.
            let _ = outbound.send(game).await;
        }
        append_counts.lock().waiting = resend.len();
        if !has_more && resend.is_empty() && in_transit.is_empty() {
            return Ok(());
        }
        let may_send = resume.is_none() && resend.is_empty() && in_transit.len() < WINDOW;
        tokio::select! {
            () = shutdown.cancelled(), if has_more || !resend.is_empty() => {
                games.close();
                has_more = false;
                resend.clear();
            }
            () = sleep_until(resume.unwrap_or_else(Instant::now)), if resume.is_some() => resume = None,
            game = games.recv(), if has_more && may_send => match game {
                Some(game) => {
                    in_transit.push(game.clone());
                    let _ = outbound.send(game).await;
                }
                None => has_more = false,
            },
            ack = acks.next() => {
                let Some(ack) = ack else {
                    anyhow::bail!("the store closed the stream");
                };
                let ack = ack.map_err(status_error)?;
                let place = in_transit.iter().position(|game| game.id == ack.id);
                let game = place.map(|place| in_transit.swap_remove(place));
                let mut counts = append_counts.lock();
                match (game, ack) {
                    (Some(game), ack) if !ack.refused.is_empty() && ack.retry => {
                        counts.reason = ack.refused;
                        if !shutdown.is_cancelled() {
                            resend.push_back(game);
                            resume.get_or_insert_with(|| Instant::now() + backoff.next_delay());
                        }
                    }
                    (_, ack) if !ack.refused.is_empty() => {
                        counts.refused += 1;
                        if counts.refusals.len() < REFUSALS {
                            counts.refusals.push(ack);
                        }
                    }
                    (_, ack) => {
                        backoff.reset();
                        if ack.duplicate {
                            counts.duplicates += 1;
                        } else {
                            counts.stored += 1;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;

    fn game(number: u64) -> Game {
        Game {
            id: u128::from(number).to_be_bytes().to_vec().into(),
            ..Game::default()
        }
    }

    fn refusal(id: Bytes, retry: bool) -> AppendAck {
        AppendAck {
            id,
            refused: "the disk is full".into(),
            retry,
            ..AppendAck::default()
        }
    }

    /// A store whose answer is a function of the game's number and of how often the game has arrived.
    fn store(
        mut answer: impl FnMut(u64, u64) -> AppendAck + Send + 'static,
    ) -> (mpsc::Sender<Game>, ReceiverStream<Result<AppendAck, Status>>) {
        let (outbound, mut inbound) = mpsc::channel::<Game>(WINDOW);
        let (tell, acks) = mpsc::channel(1000);
        tokio::spawn(async move {
            let mut arrivals: std::collections::HashMap<u64, u64> = Default::default();
            while let Some(game) = inbound.recv().await {
                let number = u128::from_be_bytes(game.id.as_ref().try_into().unwrap()) as u64;
                let times = arrivals.entry(number).or_default();
                *times += 1;
                let ack = AppendAck {
                    id: game.id,
                    ..answer(number, *times)
                };
                if tell.send(Ok(ack)).await.is_err() {
                    return;
                }
            }
        });
        (outbound, ReceiverStream::new(acks))
    }

    fn many(count: u64) -> mpsc::Receiver<Game> {
        let (give, games) = mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..count {
                if give.send(game(number)).await.is_err() {
                    return;
                }
            }
        });
        games
    }

    #[tokio::test(start_paused = true)]
    async fn temporary_refusals_are_resent_and_permanent_ones_counted() {
        // Every fifth game is refused permanently, every third of the others three times temporarily; every seventh is a duplicate.
        let (outbound, acks) = store(|number, times| match number {
            number if number % 5 == 0 => refusal(Bytes::new(), false),
            number if number % 3 == 0 && times < 4 => refusal(Bytes::new(), true),
            number => AppendAck {
                duplicate: number % 7 == 0,
                ..AppendAck::default()
            },
        });
        let append_counts = AppendCounts::default();
        send_games(
            many(1000),
            outbound,
            acks,
            &append_counts,
            &CancellationToken::new(),
        )
        .await
        .unwrap();
        let counts = append_counts.lock();
        assert_eq!(
            (counts.refused, counts.duplicates, counts.stored, counts.waiting),
            (200, 114, 686, 0)
        );
        assert_eq!(counts.refusals.len(), REFUSALS);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_while_the_store_refuses_until_shutdown() {
        let sent = Arc::new(Mutex::new(0u64));
        let (outbound, acks) = store({
            let sent = sent.clone();
            move |_, _| {
                *sent.lock() += 1;
                refusal(Bytes::new(), true)
            }
        });
        let (append_counts, shutdown) = (Arc::new(AppendCounts::default()), CancellationToken::new());
        let sending = tokio::spawn({
            let (append_counts, shutdown) = (append_counts.clone(), shutdown.clone());
            async move { send_games(many(10), outbound, acks, &append_counts, &shutdown).await }
        });
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            append_counts.lock().summary(),
            "0 games stored, 0 already present, 0 refused; 10 wait to be sent again (the disk is full)"
        );
        let times = *sent.lock() / 10;
        // Each pause is between 5 s and 10 s, except for the first few.
        assert!((60..=140).contains(&times), "{times} times in ten minutes");
        shutdown.cancel();
        sending.await.unwrap().unwrap();
        assert_eq!(append_counts.lock().stored, 0);
    }

    #[tokio::test]
    async fn a_store_that_ends_the_stream_is_an_error() {
        let (outbound, _inbound) = mpsc::channel(WINDOW);
        let acks = futures::stream::iter([Err(Status::unavailable("shutting down"))]);
        let (append_counts, shutdown) = (AppendCounts::default(), CancellationToken::new());
        let ended = send_games(many(10), outbound, acks, &append_counts, &shutdown);
        assert!(ended.await.unwrap_err().to_string().contains("shutting down"));
    }
}
