//! The analysis role: the gRPC service `minuet.v1.Analysis`.
//!
//! Its processes keep nothing, so that any number of them may run. Evaluations come from inference servers, or from a network in the
//! process. Each connection is one client of the fair queue.

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::{Arc, Weak},
};

use config::RunConfig;
use futures::Stream;
use metrics::Gauge;
use proto::v1::{AnalysisModel, AnalyzeReply, AnalyzeRequest, DescribeAnalysisRequest, analysis_server};
use service::{
    listener::{ConnectionPolicy, Peer},
    process,
    role::Work,
    security::{methods::Method, tokens::Right},
    serve::{self, Drained},
};
use tokio::{sync::mpsc, task::spawn_blocking};
use tokio_stream::{StreamExt as _, wrappers::UnboundedReceiverStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, Streaming, server::NamedService};

use super::{
    analysis::Analysis,
    evaluator::Evaluator,
    session::{Message, Session},
};

/// Most streams at once, one connection a quarter of them, and one address or token half of them.
const STREAMS: usize = 64;

type Server = analysis_server::AnalysisServer<Service>;

/// Runs the role: listens on `analysis.address` until `shutdown`.
///
/// # Errors
/// The address is in use, the security settings do not allow it, or the network cannot be used. A server that is away is asked again.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let listener = serve::listen(config.analysis.listen_address()).await?;
        let mut policy = ConnectionPolicy::new(&config.security, method)?;
        policy.call_limits.long_replies = STREAMS;
        policy.check(listener.local_addr()?)?;
        let descriptors = [proto::ANALYSIS_DESCRIPTORS];
        let (routes, health) =
            serve::standard_routes(&[<Server as NamedService>::NAME], &descriptors).await?;
        if !config.analysis.health.is_empty() {
            serve::serve_health_beside(&config.analysis.health, health.clone(), shutdown.clone()).await?;
        }
        let threads = process::cores();
        let evaluator = Evaluator::of(config, threads)?;
        let Some(player) = evaluator.first_player(&shutdown).await? else {
            return Ok(());
        };
        let analysis = Analysis::start(player, threads);
        let routes = routes.add_service(Server::new(Service {
            analysis: Arc::clone(&analysis),
            shutdown: shutdown.clone(),
            hasher: RandomState::new(),
        }));
        let model = analysis.model();
        tracing::info!(address = %listener.local_addr()?, name = model.name, version = model.version, "listening");
        let following = evaluator.follow(analysis);
        let following = tokio::spawn(shutdown.clone().run_until_cancelled_owned(following));
        health.set_serving(true).await;
        let ended = serve::serve_with(policy, routes, listener, health, shutdown, serve::DRAIN).await?;
        if ended == Drained::Cut {
            tracing::warn!(after = ?serve::DRAIN, "some streams were cut");
        }
        following.abort();
        Ok(())
    })
}

/// Returns the rules of the method at `path`.
fn method(path: &str) -> Method {
    match path.strip_prefix("/minuet.v1.Analysis/") {
        Some("Analyze") => Method::needs(Right::Analyze)
            .with_request_stream()
            .with_long_reply(),
        Some(_) => Method::needs(Right::Analyze),
        None => Method::needs(Right::Administer),
    }
}

/// The gRPC service `minuet.v1.Analysis`.
struct Service {
    analysis: Arc<Analysis>,
    shutdown: CancellationToken,
    hasher: RandomState,
}

type Answer = Result<Message, Status>;

#[tonic::async_trait]
impl analysis_server::Analysis for Service {
    type AnalyzeStream = Pin<Box<dyn Stream<Item = Result<AnalyzeReply, Status>> + Send>>;

    async fn analyze(
        &self,
        request: Request<Streaming<AnalyzeRequest>>,
    ) -> Result<Response<Self::AnalyzeStream>, Status> {
        if self.shutdown.is_cancelled() {
            return Err(Status::unavailable("the server is stopping"));
        }
        let address = Peer::of(&request).and_then(|peer| peer.address());
        // Bounded by the room for the answers of a session.
        let (sender, messages) = mpsc::unbounded_channel::<Answer>();
        let (analysis, answers) = (Arc::clone(&self.analysis), sender.clone());
        let session = Session::new(analysis, self.hasher.hash_one(address), move |message| {
            answers.send(Ok(message)).is_ok()
        });
        let (session, ended) = (Arc::new(session), CancellationToken::new());
        let open = OpenStream::new(self.analysis.metrics.streams.clone(), ended.clone());
        let stopped = Arc::downgrade(&session);
        let reading = read(session, request.into_inner(), sender);
        tokio::spawn(stop_at_end(reading, stopped, self.shutdown.clone(), ended));
        let replies = UnboundedReceiverStream::new(messages).map(move |message| {
            let _ = &open;
            message.map(Message::into_reply)
        });
        Ok(Response::new(Box::pin(replies)))
    }

    async fn describe_analysis(
        &self,
        _: Request<DescribeAnalysisRequest>,
    ) -> Result<Response<AnalysisModel>, Status> {
        Ok(Response::new(self.analysis.model()))
    }
}

/// Reads requests until the client ends its side.
async fn read(
    session: Arc<Session>,
    mut requests: Streaming<AnalyzeRequest>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    loop {
        match requests.message().await {
            Ok(None) => return,
            Ok(Some(request)) => {
                let session = Arc::clone(&session);
                // Replays a game, and waits for room.
                let taken = spawn_blocking(move || session.read_message(request)).await;
                if let Err(error) = taken {
                    tracing::error!(%error, "a query could not be read");
                }
            }
            Err(status) => {
                // The stream has ended already if nobody takes the status.
                let _ = answers.send(Err(status));
                return;
            }
        }
    }
}

/// Reads, and ends all searches early at shutdown or when the client has gone.
async fn stop_at_end(
    reading: impl Future<Output = ()>,
    session: Weak<Session>,
    shutdown: CancellationToken,
    ended: CancellationToken,
) {
    let end = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = ended.cancelled() => {}
        }
    };
    tokio::pin!(end);
    tokio::select! {
        () = reading => end.await,
        () = &mut end => {}
    }
    if let Some(session) = session.upgrade() {
        session.stop();
    }
}

/// An open stream of answers. Dropping it ends the searches.
struct OpenStream {
    streams: Gauge,
    _ended: DropGuard,
}

impl OpenStream {
    fn new(streams: Gauge, ended: CancellationToken) -> Self {
        streams.increment(1.0);
        Self {
            streams,
            _ended: ended.drop_guard(),
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.decrement(1.0);
    }
}
