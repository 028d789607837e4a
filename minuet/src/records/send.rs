//! Sends games to the replay store, and sends a game again that the store cannot take at the moment.

use std::{collections::VecDeque, time::Duration};

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use proto::v1::{AppendAck, Game, StatsRequest};
use service::backoff::Backoff;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::source::{Client, Source, said};

/// Most games that are sent and not acknowledged.
pub const WINDOW: usize = 64;
/// Refusals that are kept to be told one by one.
const REFUSALS: usize = 10;
/// How long it is before a store is sent again what it refused for now: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often a store is told that somebody waits for positions; it believes that for two seconds.
const WORD: Duration = Duration::from_millis(500);

/// Counts of the store's answers, shared.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

/// Counts of the store's answers.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Games stored.
    pub stored: u64,
    /// Games that were known.
    pub duplicates: u64,
    /// Games refused for good.
    pub refused: u64,
    /// The first of those.
    pub refusals: Vec<AppendAck>,
    /// Games refused for now that wait to be sent again.
    waiting: usize,
    /// Why the last of them was refused.
    reason: String,
}

impl Tally {
    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.0.lock().clone()
    }

    /// How far it is, for a person.
    pub fn told(&self) -> String {
        let counts = self.0.lock();
        let mut text = format!(
            "{} games stored, {} were there already",
            counts.stored, counts.duplicates
        );
        if counts.waiting > 0 {
            text += &format!("; {} wait to be sent again ({})", counts.waiting, counts.reason);
        }
        text
    }
}

/// Tells the store, until the returned set is dropped, that positions are awaited. A store with `replay.min_uses` then takes games although
/// no learner uses those that it has. Errors are ignored here, because the import meets them as well.
pub async fn await_positions(client: &Client) -> JoinSet<()> {
    let word = StatsRequest {
        awaits_positions: true,
    };
    let mut telling = JoinSet::new();
    let mut client = client.clone();
    let _ = client.stats(word).await;
    telling.spawn(async move {
        loop {
            tokio::time::sleep(WORD).await;
            let _ = client.stats(word).await;
        }
    });
    telling
}

/// Sends games to the store until each is stored, known or refused for good, or `stop` is cancelled; then waits for the answers to
/// the games that were sent.
///
/// # Errors
/// The store's status if it takes no games at all.
pub async fn put(
    source: &mut Source,
    games: mpsc::Receiver<Game>,
    tally: &Tally,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let (outbound, sent) = mpsc::channel(WINDOW);
    let acks = source
        .client
        .append(ReceiverStream::new(sent))
        .await
        .map_err(said)?;
    carry(games, outbound, acks.into_inner(), tally, stop).await
}

/// Sends games to a store. Games that it refuses for now are sent again after a pause that grows.
async fn carry(
    mut games: mpsc::Receiver<Game>,
    outbound: mpsc::Sender<Game>,
    mut acks: impl Stream<Item = Result<AppendAck, Status>> + Unpin,
    tally: &Tally,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE, rand::random());
    let mut on_their_way: Vec<Game> = Vec::new();
    let mut again: VecDeque<Game> = VecDeque::new();
    let mut resume: Option<Instant> = None;
    let mut are_there_more = true;
    loop {
        while resume.is_none()
            && on_their_way.len() < WINDOW
            && let Some(game) = again.pop_front()
        {
            on_their_way.push(game.clone());
            // A stream that has ended is seen below.
            let _ = outbound.send(game).await;
        }
        tally.0.lock().waiting = again.len();
        if !are_there_more && again.is_empty() && on_their_way.is_empty() {
            return Ok(());
        }
        let may_send = resume.is_none() && again.is_empty() && on_their_way.len() < WINDOW;
        tokio::select! {
            () = stop.cancelled(), if are_there_more || !again.is_empty() => {
                games.close();
                are_there_more = false;
                again.clear();
            }
            () = sleep_until(resume.unwrap_or_else(Instant::now)), if resume.is_some() => resume = None,
            game = games.recv(), if are_there_more && may_send => match game {
                Some(game) => {
                    on_their_way.push(game.clone());
                    let _ = outbound.send(game).await;
                }
                None => are_there_more = false,
            },
            ack = acks.next() => {
                let Some(ack) = ack else {
                    anyhow::bail!("the store takes no more games");
                };
                let ack = ack.map_err(said)?;
                let place = on_their_way.iter().position(|game| game.id == ack.id);
                let game = place.map(|place| on_their_way.swap_remove(place));
                let mut counts = tally.0.lock();
                match (game, ack) {
                    (Some(game), ack) if !ack.refused.is_empty() && ack.retry => {
                        counts.reason = ack.refused;
                        if !stop.is_cancelled() {
                            again.push_back(game);
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

    /// A store that answers by a function of the game's number and how often it has come.
    fn store(
        mut answer: impl FnMut(u64, u64) -> AppendAck + Send + 'static,
    ) -> (mpsc::Sender<Game>, ReceiverStream<Result<AppendAck, Status>>) {
        let (outbound, mut inbound) = mpsc::channel::<Game>(WINDOW);
        let (tell, acks) = mpsc::channel(1000);
        tokio::spawn(async move {
            let mut came: std::collections::HashMap<u64, u64> = Default::default();
            while let Some(game) = inbound.recv().await {
                let number = u128::from_be_bytes(game.id.as_ref().try_into().unwrap()) as u64;
                let times = came.entry(number).or_default();
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
    async fn what_is_refused_for_now_is_sent_again_and_what_is_refused_is_counted() {
        // Every fifth is refused for good, every third of the others a few times for now; every seventh is known.
        let (outbound, acks) = store(|number, times| match number {
            number if number % 5 == 0 => refusal(Bytes::new(), false),
            number if number % 3 == 0 && times < 4 => refusal(Bytes::new(), true),
            number => AppendAck {
                duplicate: number % 7 == 0,
                ..AppendAck::default()
            },
        });
        let tally = Tally::default();
        carry(many(1000), outbound, acks, &tally, &CancellationToken::new())
            .await
            .unwrap();
        let counts = tally.counts();
        assert_eq!(
            (counts.refused, counts.duplicates, counts.stored, counts.waiting),
            (200, 114, 686, 0)
        );
        assert_eq!(counts.refusals.len(), REFUSALS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_nothing_is_asked_less_and_less_often_until_it_is_stopped() {
        let asked = Arc::new(Mutex::new(0u64));
        let (outbound, acks) = store({
            let asked = asked.clone();
            move |_, _| {
                *asked.lock() += 1;
                refusal(Bytes::new(), true)
            }
        });
        let (tally, stop) = (Arc::new(Tally::default()), CancellationToken::new());
        let carrying = tokio::spawn({
            let (tally, stop) = (tally.clone(), stop.clone());
            async move { carry(many(10), outbound, acks, &tally, &stop).await }
        });
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            tally.told(),
            "0 games stored, 0 were there already; 10 wait to be sent again (the disk is full)"
        );
        let times = *asked.lock() / 10;
        // Each pause is between half of 10 s and all of it, but for the first few.
        assert!((60..=140).contains(&times), "{times} times in ten minutes");
        stop.cancel();
        carrying.await.unwrap().unwrap();
        assert_eq!(tally.counts().stored, 0);
    }

    #[tokio::test]
    async fn a_store_that_ends_the_stream_is_an_error() {
        let (outbound, _inbound) = mpsc::channel(WINDOW);
        let acks = futures::stream::iter([Err(Status::unavailable("it stops"))]);
        let (tally, stop) = (Tally::default(), CancellationToken::new());
        let ended = carry(many(10), outbound, acks, &tally, &stop);
        assert!(ended.await.unwrap_err().to_string().contains("it stops"));
    }
}
