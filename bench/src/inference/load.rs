//! Clients that load a server; each is a stream on a connection of its own.
//!
//! A closed load sends a request when the previous one is answered, and measures the server's capacity. An open load sends on a
//! fixed schedule, independent of the replies, and measures the server under overload.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use proto::v1::{EvaluateReply, EvaluateRequest, evaluator_client::EvaluatorClient};
use serde::Serialize;
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
/// Greatest number of requests in flight on one stream of an open load; above the server's limit per stream.
const OPEN_IN_FLIGHT: usize = 1024;
/// Time limit for the requests in flight to be answered after a load.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Shape of a load: number of streams and positions per request, written `streams`x`rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Number of streams.
    pub streams: usize,
    /// Positions per request.
    pub rows: usize,
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let load = text.split_once('x').and_then(|(streams, rows)| {
            let (streams, rows) = (streams.parse().ok()?, rows.parse().ok()?);
            Some(Self { streams, rows })
        });
        load.filter(|load| (1..=1024).contains(&load.streams) && (1..=4096).contains(&load.rows))
            .ok_or_else(|| {
                format!("`{text}` is not a load; write streams x rows, e.g. 4x64 (at most 1024x4096)")
            })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.streams, self.rows)
    }
}

/// Counts over all streams.
#[derive(Default)]
struct Count {
    positions: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    /// Number of requests that are not answered yet.
    in_flight: AtomicU64,
    latencies: parking_lot::Mutex<Vec<Duration>>,
    failure: parking_lot::Mutex<Option<String>>,
}

/// Current task of the streams.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Rest,
    /// Send a request when the previous one is answered.
    Closed,
    /// Send one request per stream in each interval of this length.
    Open(Duration),
}

/// The streams; idle except during a measurement.
pub struct Clients {
    load: Load,
    order: watch::Sender<Order>,
    count: Arc<Count>,
    latencies: Vec<Duration>,
}

/// Result of an open load.
pub struct Overload {
    /// Answered positions and their cost.
    pub answered: Measured,
    /// Number of positions sent.
    pub offered: u64,
    /// Number of positions refused by the server.
    pub refused: u64,
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
        let count = Arc::new(Count::default());
        let order = watch::Sender::new(Order::Rest);
        for number in 0..load.streams {
            let channel = service::connect::channel(address)?;
            let requests = (0..REQUESTS).map(|step| positions.request(REQUESTS * number + step, load.rows));
            let stream = Stream {
                requests: requests.collect(),
                order: order.subscribe(),
                count: count.clone(),
                rows: load.rows as u64,
            };
            tokio::spawn(async move {
                let count = stream.count.clone();
                if let Err(error) = stream.run(EvaluatorClient::new(channel)).await {
                    *count.failure.lock() = Some(format!("{error:#}"));
                }
            });
        }
        Ok(Self {
            load,
            order,
            count,
            latencies: Vec::new(),
        })
    }

    /// Measures a closed load for `seconds`, then waits until all requests are answered.
    pub fn measure(&mut self, subject: Subject, seconds: f64) -> anyhow::Result<Measured> {
        self.run(Order::Closed, subject, seconds)
    }

    /// Measures an open load of `per_second` positions per second for `seconds`, then waits until all requests are answered.
    pub fn overload(&mut self, subject: Subject, seconds: f64, per_second: f64) -> anyhow::Result<Overload> {
        let each = (self.load.streams * self.load.rows) as f64 / per_second;
        let before = (
            self.count.sent.load(Ordering::Relaxed),
            self.count.refused.load(Ordering::Relaxed),
        );
        let answered = self.run(Order::Open(Duration::from_secs_f64(each)), subject, seconds)?;
        Ok(Overload {
            answered,
            offered: self.count.sent.load(Ordering::Relaxed) - before.0,
            refused: self.count.refused.load(Ordering::Relaxed) - before.1,
        })
    }

    fn run(&mut self, order: Order, subject: Subject, seconds: f64) -> anyhow::Result<Measured> {
        // The first moments are not measured.
        self.order.send_replace(order);
        std::thread::sleep(Duration::from_secs_f64(seconds / 10.0));
        self.count.latencies.lock().clear();
        let before = self.count.positions.load(Ordering::Relaxed);
        let measured = measure::measure(subject, || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            Ok(self.count.positions.load(Ordering::Relaxed) - before)
        });
        self.latencies.append(&mut self.count.latencies.lock());
        self.order.send_replace(Order::Rest);
        let began = Instant::now();
        while self.count.in_flight.load(Ordering::Relaxed) > 0 {
            if let Some(failure) = self.count.failure.lock().take() {
                anyhow::bail!("a stream failed: {failure}");
            }
            anyhow::ensure!(began.elapsed() < TIMEOUT, "requests are not answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        measured
    }

    /// Discards the latencies measured so far.
    pub fn forget_latencies(&mut self) {
        self.latencies.clear();
    }

    /// Returns the median and the 99th percentile of the latency, in milliseconds.
    pub fn latencies(&mut self) -> (f64, f64) {
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let place = (self.latencies.len() as f64 * share) as usize;
            let latency = self.latencies.get(place).copied().unwrap_or_default();
            latency.as_secs_f64() * 1e3
        };
        (at(0.5), at(0.99))
    }
}

/// One stream.
struct Stream {
    requests: Vec<EvaluateRequest>,
    order: watch::Receiver<Order>,
    count: Arc<Count>,
    rows: u64,
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
            let order = *self.order.borrow_and_update();
            match order {
                Order::Rest => self.order.changed().await?,
                Order::Closed => {
                    let asked = Instant::now();
                    self.send(&sender, &mut number).await?;
                    let reply = receive(&mut replies).await?;
                    self.take(&reply, asked)?;
                }
                Order::Open(interval) => self.open(&sender, &mut replies, &mut number, interval).await?,
            }
        }
    }

    /// Sends on schedule until the order changes, then waits for the requests in flight.
    async fn open(
        &mut self,
        sender: &mpsc::Sender<EvaluateRequest>,
        replies: &mut Streaming<EvaluateReply>,
        number: &mut u64,
        interval: Duration,
    ) -> anyhow::Result<()> {
        let mut asked = std::collections::HashMap::new();
        let mut ticks = tokio::time::interval(interval);
        loop {
            tokio::select! {
                reply = receive(replies) => {
                    let reply = reply?;
                    let since = asked.remove(&reply.id).context("a reply without a request")?;
                    self.take(&reply, since)?;
                }
                _ = ticks.tick(), if asked.len() < OPEN_IN_FLIGHT => {
                    let since = Instant::now();
                    let id = self.send(sender, number).await?;
                    asked.insert(id, since);
                }
                changed = self.order.changed() => {
                    changed?;
                    break;
                }
            }
        }
        while !asked.is_empty() {
            let reply = receive(replies).await?;
            let since = asked.remove(&reply.id).context("a reply without a request")?;
            self.take(&reply, since)?;
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
        self.count.sent.fetch_add(self.rows, Ordering::Relaxed);
        self.count.in_flight.fetch_add(1, Ordering::Relaxed);
        sender.send(request).await?;
        Ok(*number)
    }

    fn take(&self, reply: &EvaluateReply, asked: Instant) -> anyhow::Result<()> {
        self.count.in_flight.fetch_sub(1, Ordering::Relaxed);
        match &reply.error {
            None => {
                self.count.positions.fetch_add(self.rows, Ordering::Relaxed);
                self.count.latencies.lock().push(asked.elapsed());
            }
            Some(error) if error.code == Code::ResourceExhausted as i32 => {
                self.count.refused.fetch_add(self.rows, Ordering::Relaxed);
            }
            Some(error) => anyhow::bail!("{}", error.message),
        }
        Ok(())
    }
}

async fn receive(replies: &mut Streaming<EvaluateReply>) -> anyhow::Result<EvaluateReply> {
    replies.message().await?.context("the server ended the stream")
}
