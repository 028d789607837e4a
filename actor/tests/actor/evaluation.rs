//! The stream to the inference server: retries, new streams, and errors that end it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actor::{
    evaluator::{EvaluatedRequest, Evaluator, EvaluatorLimits, Expected, StampedRequest, Versions},
    metrics::Metrics,
};
use games::{Game as _, Symmetry, connect_four::ConnectFour};
use proto::v1::EvaluateRequest;
use service::{connect::Link, log_throttle::LogThrottle};
use test_support::FakeStore;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::{
    Place, config,
    evaluator_server::{Fate, Server},
    in_time,
    process::Process,
    start,
};

pub struct Client {
    requests: mpsc::Sender<StampedRequest>,
    pub evaluations: mpsc::Receiver<EvaluatedRequest>,
    versions: Arc<Versions>,
    pub metrics: Arc<Metrics>,
    running: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Client {
    fn start(address: &str, answer_within: Duration) -> Self {
        let link = service::connect::link(address, &config::SecurityConfig::default());
        Self::over(link.unwrap(), answer_within)
    }

    pub fn over(link: Link, answer_within: Duration) -> Self {
        Self::renewing(link, answer_within, LONG)
    }

    pub fn renewing(link: Link, answer_within: Duration, stream: Duration) -> Self {
        let (requests, sent) = mpsc::channel(4);
        let (evaluated, evaluations) = mpsc::channel(4);
        let (versions, metrics) = (Arc::new(Versions::default()), Arc::new(Metrics::default()));
        let evaluator = Evaluator {
            channel: link,
            expected: Arc::new(Expected::of::<ConnectFour>(Default::default(), "latest")),
            versions: Arc::clone(&versions),
            metrics: Arc::clone(&metrics),
            limits: EvaluatorLimits {
                answer: answer_within,
                first_retry: Duration::from_millis(2),
                longest_retry: Duration::from_millis(20),
                stream,
                drain: Duration::from_secs(2),
                malformed: 4,
            },
            requests: sent,
            evaluations: evaluated,
            shutdown: CancellationToken::new(),
            outage: Arc::new(LogThrottle::new(Duration::from_secs(10))),
        };
        Self {
            requests,
            evaluations,
            versions,
            metrics,
            running: tokio::spawn(evaluator.run()),
        }
    }

    pub async fn send(&self, id: u64) {
        let mut request = EvaluateRequest {
            id,
            legal_actions: (0..7).collect(),
            legal_counts: vec![7],
            ..Default::default()
        };
        ConnectFour::EMPTY.write_row(Default::default(), Symmetry::IDENTITY, &mut request.indices);
        let request = StampedRequest {
            request: Arc::new(request),
            stamp: self.versions.stamp(),
        };
        self.requests.send(request).await.unwrap();
    }

    /// Sends requests with these ids and receives their evaluations, one for each.
    pub async fn exchange(&mut self, ids: std::ops::Range<u64>) {
        for id in ids.clone() {
            self.send(id).await;
        }
        let mut answered = Vec::new();
        for _ in ids.clone() {
            let evaluated = in_time(self.evaluations.recv()).await.unwrap();
            let predictions = &evaluated.predictions;
            assert_eq!((predictions.values.len(), predictions.priors.len()), (1, 7));
            answered.push(evaluated.id);
        }
        answered.sort_unstable();
        assert_eq!(answered, ids.collect::<Vec<_>>());
    }
}

pub const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn temporary_errors_are_retried_until_the_request_succeeds() {
    let server = Server::new(|nth| match nth {
        0 | 4 => Fate::Error(Code::Unavailable),
        1 => Fate::Error(Code::ResourceExhausted),
        2 => Fate::Malformed,
        3 => Fate::Error(Code::NotFound),
        5 | 9 => Fate::Break,
        _ => Fate::Evaluate,
    });
    let process = Process::start(server.routes()).await;
    let mut client = Client::start(&process.address(), LONG);
    client.exchange(0..3).await;
    client.exchange(3..6).await;
    assert_eq!(client.metrics.malformed_replies.get(), 1);
    assert!(client.metrics.request_retries.get() >= 6);
    assert!(client.metrics.reconnects.get() >= 2);
    assert_eq!(client.metrics.requests.get(), 6);
    drop(client.requests);
    in_time(client.running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_silent_stream_is_replaced_by_a_new_one() {
    let server = Server::new(|nth| if nth < 2 { Fate::Silence } else { Fate::Evaluate });
    let process = Process::start(server.routes()).await;
    let mut client = Client::start(&process.address(), Duration::from_millis(300));
    client.exchange(0..2).await;
    assert!(client.metrics.reconnects.get() >= 1);
}

#[tokio::test]
async fn requests_are_sent_again_to_a_server_that_was_killed_and_restarted() {
    let server = Server::new(|nth| if nth < 2 { Fate::Silence } else { Fate::Evaluate });
    let process = Process::start(server.routes()).await;
    let mut client = Client::start(&process.address(), LONG);
    client.send(0).await;
    client.send(1).await;
    while server.requests.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let address = process.kill().await;
    client.send(2).await;
    let _process = Process::start_at(address, server.routes()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(in_time(client.evaluations.recv()).await.unwrap().id);
    }
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
}

#[tokio::test]
async fn too_many_malformed_replies_are_an_error() {
    let server = Server::new(|_| Fate::Malformed);
    let process = Process::start(server.routes()).await;
    let client = Client::start(&process.address(), LONG);
    client.send(0).await;
    let error = in_time(client.running).await.unwrap().unwrap_err();
    let expected = "keeps sending malformed replies: 0 values for 1 positions";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(client.metrics.malformed_replies.get(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_stops_the_actor_with_the_message_of_the_server() {
    let server = Server::new(|nth| {
        if nth == 5 {
            Fate::Error(Code::InvalidArgument)
        } else {
            Fate::Evaluate
        }
    });
    let store = FakeStore::good();
    let place = Place::new(&server, &store).await;
    let config = place.config();
    let error = start(config).end().await;
    let expected = "refuses this actor's requests (InvalidArgument: as the test wishes)";
    assert!(error.to_string().contains(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_of_another_game_stops_the_actor_before_and_during_play() {
    let store = FakeStore::good();
    let store_process = Process::start(store.routes()).await;
    for is_there_from_the_start in [true, false] {
        let server = Server::good();
        let process = Process::start(server.routes()).await;
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), &process.address(), &store_process.address());
        let spoil = || {
            server.layout.lock().game = "chess".into();
            *server.version.lock() = "a chess model".into();
        };
        if is_there_from_the_start {
            spoil();
        }
        let actor = start(config);
        if !is_there_from_the_start {
            actor.until(|| actor.metrics.requests.get() > 20).await;
            spoil();
        }
        let error = actor.end().await.to_string();
        assert!(
            error.contains("a chess model is for chess, this actor plays connect-four"),
            "{error}"
        );
        let asked = server.positions.load(Ordering::SeqCst);
        assert_eq!(asked == 0, is_there_from_the_start);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_kind_of_service_is_an_error_at_once() {
    let store = FakeStore::good();
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(store.routes()).await;
    let config = config(folder.path(), &process.address(), &process.address());
    let error = start(config).end().await;
    assert!(error.to_string().contains("requests (Unimplemented: "), "{error}");
}
