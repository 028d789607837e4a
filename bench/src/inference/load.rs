//! Clients that load a server; each is a stream on a connection of its own.
//!
//! A closed load sends a request when the previous one is answered. An open load sends on a fixed schedule, independent of the
//! replies, like many independent clients.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use parking_lot::Mutex;
use proto::v1::{EvaluateReply, EvaluateRequest, evaluator_client::EvaluatorClient};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, watch},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

use crate::harness::{
    measure::{self, Measured, Subject},
    positions::Positions,
};

/// Number of different requests of each stream.
const REQUESTS: usize = 16;
/// Largest number of requests in flight on one stream of an open load; above the server's limit per stream.
const OPEN_IN_FLIGHT: usize = 1024;
/// Time before a measurement in which its load runs already.
const LEAD: Duration = Duration::from_millis(200);
/// Time limit for the requests in flight to be answered after a load.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Shape of a load: number of streams and positions per request, written `streams`x`rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of streams.
    pub streams: usize,
    /// Positions per request.
    pub rows: usize,
}

/// Counts over all streams.
#[derive(Default)]
struct Count {
    totals: Totals,
    /// Number of requests that are not answered yet.
    in_flight: u64,
    latencies: Vec<Duration>,
    failure: Option<String>,
}

/// Positions since the start.
#[derive(Clone, Copy, Default)]
struct Totals {
    sent: u64,
    answered: u64,
    refused: u64,
}

/// Times at which requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// No requests.
    Rest,
    /// On each stream, a request when the previous one is answered.
    Closed,
    /// This many positions per second over all streams, whatever the replies.
    Open(f64),
}

/// The streams; idle except during a measurement.
pub struct Clients {
    pace: watch::Sender<Pace>,
    count: Arc<Mutex<Count>>,
}

/// Figures of the time between two moments of a load.
pub struct Window {
    /// Answered positions and their cost.
    pub answered: Measured,
    /// Number of positions sent.
    pub offered: u64,
    /// Number of positions that the server refused.
    pub refused: u64,
    /// Times from the moment at which an answered request was due to be sent to its reply.
    pub latencies: Vec<Duration>,
}

impl Window {
    /// Returns the number of positions offered per second.
    pub fn offered_per_second(&self) -> f64 {
        self.offered as f64 / self.answered.time.as_secs_f64()
    }

    /// Returns the share of the offered positions that the server refused.
    pub fn refused_share(&self) -> f64 {
        self.refused as f64 / self.offered.max(1) as f64
    }
}

impl Clients {
    /// Connects the streams to the server.
    pub fn connect(
        runtime: &Runtime,
        address: &str,
        load: Load,
        positions: &Positions,
    ) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let count = Arc::<Mutex<Count>>::default();
        let pace = watch::Sender::new(Pace::Rest);
        for number in 0..load.streams {
            let channel = service::connect::channel(address)?;
            let requests = (0..REQUESTS).map(|step| positions.request(REQUESTS * number + step, load.rows));
            let stream = Stream {
                load,
                number,
                requests: requests.collect(),
                pace: pace.subscribe(),
                count: count.clone(),
            };
            tokio::spawn(async move {
                let count = stream.count.clone();
                if let Err(error) = stream.run(EvaluatorClient::new(channel)).await {
                    count.lock().failure = Some(format!("{error:#}"));
                }
            });
        }
        Ok(Self { pace, count })
    }

    /// Measures a load for `seconds`, then waits until all requests are answered.
    ///
    /// # Errors
    /// A request failed, or is not answered within a minute.
    pub fn measure(&self, pace: Pace, subject: Subject, seconds: f64) -> anyhow::Result<Window> {
        self.measure_while(pace, subject, || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            Ok(())
        })
    }

    /// Measures a load during `work`, like [`Clients::measure`].
    pub fn measure_while(
        &self,
        pace: Pace,
        subject: Subject,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Window> {
        self.pace.send_replace(pace);
        std::thread::sleep(LEAD);
        self.count.lock().latencies.clear();
        let before = self.count.lock().totals;
        let mut after = before;
        let measured = measure::measure(subject, || {
            work()?;
            after = self.count.lock().totals;
            Ok(after.answered - before.answered)
        });
        let latencies = std::mem::take(&mut self.count.lock().latencies);
        self.pace.send_replace(Pace::Rest);
        let began = Instant::now();
        while self.count.lock().is_busy() {
            anyhow::ensure!(began.elapsed() < TIMEOUT, "requests are not answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(failure) = self.count.lock().failure.take() {
            anyhow::bail!("a stream failed: {failure}");
        }
        Ok(Window {
            answered: measured?,
            offered: after.sent - before.sent,
            refused: after.refused - before.refused,
            latencies,
        })
    }
}

impl Count {
    /// True if replies are still to come.
    fn is_busy(&self) -> bool {
        self.in_flight > 0 && self.failure.is_none()
    }
}

/// One stream.
struct Stream {
    load: Load,
    number: usize,
    requests: Vec<EvaluateRequest>,
    pace: watch::Receiver<Pace>,
    count: Arc<Mutex<Count>>,
}

impl Stream {
    async fn run(mut self, mut client: EvaluatorClient<tonic::transport::Channel>) -> anyhow::Result<()> {
        let (sender, receiver) = mpsc::channel(OPEN_IN_FLIGHT);
        let mut replies = client
            .evaluate_stream(ReceiverStream::new(receiver))
            .await?
            .into_inner();
        let mut number = 0;
        loop {
            let pace = *self.pace.borrow_and_update();
            match pace {
                Pace::Rest => self.pace.changed().await?,
                Pace::Closed => {
                    let due = Instant::now();
                    self.send(&sender, &mut number).await?;
                    let reply = receive(&mut replies).await?;
                    self.take(&reply, due)?;
                }
                Pace::Open(per_second) => self.open(&sender, &mut replies, &mut number, per_second).await?,
            }
        }
    }

    /// Sends on schedule until the pace changes, then waits for the requests in flight. A latency is counted from the time on
    /// the schedule, so that a request that was sent late is not measured as a fast one.
    async fn open(
        &mut self,
        sender: &mpsc::Sender<EvaluateRequest>,
        replies: &mut Streaming<EvaluateReply>,
        number: &mut u64,
        per_second: f64,
    ) -> anyhow::Result<()> {
        let interval = Duration::from_secs_f64((self.load.streams * self.load.rows) as f64 / per_second);
        // The streams send in turn, not all at once.
        let share = self.number as f64 / self.load.streams as f64;
        let mut ticks = tokio::time::interval_at((Instant::now() + interval.mul_f64(share)).into(), interval);
        let mut due_at = std::collections::HashMap::new();
        let mut is_over = false;
        while !is_over || !due_at.is_empty() {
            tokio::select! {
                reply = receive(replies) => {
                    let reply = reply?;
                    let due = due_at.remove(&reply.id).context("a reply without a request")?;
                    self.take(&reply, due)?;
                }
                due = ticks.tick(), if !is_over && due_at.len() < OPEN_IN_FLIGHT => {
                    let id = self.send(sender, number).await?;
                    due_at.insert(id, due.into_std());
                }
                changed = self.pace.changed(), if !is_over => {
                    changed?;
                    is_over = true;
                }
            }
        }
        Ok(())
    }

    async fn send(&self, sender: &mpsc::Sender<EvaluateRequest>, number: &mut u64) -> anyhow::Result<u64> {
        *number += 1;
        let place = *number as usize % self.requests.len();
        let request = EvaluateRequest {
            id: *number,
            ..self.requests.get(place).context("no requests")?.clone()
        };
        {
            let mut count = self.count.lock();
            count.totals.sent += self.load.rows as u64;
            count.in_flight += 1;
        }
        sender.send(request).await?;
        Ok(*number)
    }

    fn take(&self, reply: &EvaluateReply, due: Instant) -> anyhow::Result<()> {
        let rows = self.load.rows as u64;
        let mut count = self.count.lock();
        count.in_flight -= 1;
        match &reply.error {
            None => {
                count.totals.answered += rows;
                count.latencies.push(due.elapsed());
            }
            Some(error) if error.code == Code::ResourceExhausted as i32 => count.totals.refused += rows,
            Some(error) => anyhow::bail!("{}", error.message),
        }
        Ok(())
    }
}

async fn receive(replies: &mut Streaming<EvaluateReply>) -> anyhow::Result<EvaluateReply> {
    replies.message().await?.context("the server ended the stream")
}
