//! The class `AnalysisClient`: queries of an analysis service, all on one stream. The Python class `Analysis` is the part that users see.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use proto::v1::{
    AnalysisQuery, AnalyzeReply, AnalyzeRequest, DescribeAnalysisRequest,
    analysis_client::AnalysisClient as Grpc, analyze_request::Request,
};
use pyo3::prelude::*;
use service::connect::{Link, MAX_MESSAGE_BYTES};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use super::{
    evaluator::{Pending, started},
    link::{Client, Limits, of_link},
};
use crate::{error::SettingsError, rules::python_of};

/// Answers to a query, one for each position.
type Answered = Vec<AnalyzeReply>;

/// Queries of one analysis service.
#[pyclass(frozen, module = "minuet._minuet")]
pub struct AnalysisClient {
    client: Client<Grpc<Link>>,
    stream: Arc<AsyncMutex<Option<OpenStream>>>,
}

/// The stream on which the queries of this process travel.
struct OpenStream {
    process: u32,
    requests: mpsc::UnboundedSender<AnalyzeRequest>,
    waiting: Waiting,
    next: u64,
}

/// Calls that wait for answers, by the id of their query. `None` once the stream has ended.
type Waiting = Arc<Mutex<Option<HashMap<String, Call>>>>;

/// A call that waits.
struct Call {
    answers: Answered,
    /// Number of positions of the query.
    positions: usize,
    done: oneshot::Sender<Result<Answered, Status>>,
}

#[pymethods]
impl AnalysisClient {
    #[new]
    #[pyo3(signature = (address, security=None))]
    fn new(address: &str, security: Option<&str>) -> PyResult<Self> {
        let client = Client::new(address, security, |link| {
            Grpc::new(link).max_decoding_message_size(MAX_MESSAGE_BYTES)
        })?;
        Ok(Self {
            client,
            stream: Arc::default(),
        })
    }

    /// Description of the network, as a dictionary.
    fn describe<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Bound<'py, PyAny>> {
        let request = DescribeAnalysisRequest {};
        let described = self
            .client
            .call(py, seconds, request, |mut client, request| async move {
                client.describe_analysis(request).await
            })?;
        python_of(py, &described)
    }

    /// Answers to a query, given as JSON, as a list of dictionaries in the order of its positions.
    fn analyze<'py>(&self, py: Python<'py>, query: &str, seconds: f64) -> PyResult<Bound<'py, PyAny>> {
        let (call, _) = self.ask(query, seconds)?;
        let answered = self.client.wait(py, Some(seconds), call)?;
        python_of(py, &answered)
    }

    /// Like `analyze`, but returns at once. Another thread calls `done(answers, None)` or `done(None, exception)` at the end.
    fn start(&self, query: &str, seconds: f64, done: Py<PyAny>) -> PyResult<Pending> {
        let (call, limits) = self.ask(query, seconds)?;
        started(
            &self.client.address,
            call,
            limits,
            done,
            |py, answered: Answered| Ok(python_of(py, &answered)?.unbind()),
        )
    }
}

impl AnalysisClient {
    /// Returns a call that begins now, and its limits.
    fn ask(
        &self,
        query: &str,
        seconds: f64,
    ) -> PyResult<(impl Future<Output = Result<Answered, Status>> + use<>, Limits)> {
        let query: AnalysisQuery = serde_json::from_str(query)
            .map_err(|error| SettingsError::new_err(format!("the query cannot be sent: {error}")))?;
        let (client, stream, limits) = (
            self.client.get()?,
            Arc::clone(&self.stream),
            self.client.limits(seconds),
        );
        let attempt = move || one(client.clone(), Arc::clone(&stream), query.clone());
        Ok((limits.repeat(attempt), limits))
    }
}

/// Sends a query, and waits for all of its answers. The query is cancelled if the future is dropped.
async fn one(
    client: Grpc<Link>,
    stream: Arc<AsyncMutex<Option<OpenStream>>>,
    query: AnalysisQuery,
) -> Result<Answered, Status> {
    let (sent, answered) = {
        let mut stream = stream.lock().await;
        let open = match stream.as_mut() {
            Some(open) if open.is_usable() => open,
            _ => stream.insert(OpenStream::open(client).await?),
        };
        open.send(query)?
    };
    let answered = answered.await;
    drop(sent);
    answered.unwrap_or_else(|_| Err(ended()))
}

fn ended() -> Status {
    Status::unavailable("the server has ended the stream")
}

impl OpenStream {
    async fn open(mut client: Grpc<Link>) -> Result<Self, Status> {
        let (requests, sent) = mpsc::unbounded_channel();
        let replies = client.analyze(UnboundedReceiverStream::new(sent)).await?;
        let waiting = Waiting::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(receive(replies.into_inner(), Arc::clone(&waiting)));
        Ok(Self {
            process: std::process::id(),
            requests,
            waiting,
            next: 0,
        })
    }

    /// True if the stream is open, and was opened by this process, not by its parent before a fork.
    fn is_usable(&self) -> bool {
        self.process == std::process::id() && locked(&self.waiting).is_some()
    }

    fn send(&mut self, query: AnalysisQuery) -> Result<(Sent, Answers), Status> {
        let id = self.next.to_string();
        self.next += 1;
        let (done, answered) = oneshot::channel();
        let call = Call {
            answers: Answered::new(),
            positions: query.turns.len().max(1),
            done,
        };
        locked(&self.waiting)
            .as_mut()
            .ok_or_else(ended)?
            .insert(id.clone(), call);
        let sent = Sent {
            id: id.clone(),
            requests: self.requests.clone(),
            waiting: Arc::clone(&self.waiting),
        };
        let request = AnalyzeRequest {
            id,
            request: Some(Request::Query(query)),
        };
        self.requests.send(request).map_err(|_| ended())?;
        Ok((sent, answered))
    }
}

type Answers = oneshot::Receiver<Result<Answered, Status>>;

/// A query whose call waits. Dropping it cancels the query, unless it is answered.
struct Sent {
    id: String,
    requests: mpsc::UnboundedSender<AnalyzeRequest>,
    waiting: Waiting,
}

impl Drop for Sent {
    fn drop(&mut self) {
        let call = locked(&self.waiting)
            .as_mut()
            .and_then(|calls| calls.remove(&self.id));
        if call.is_some() {
            // No answer to this request is waited for; the stream may have ended.
            let _ = self.requests.send(AnalyzeRequest {
                id: String::new(),
                request: Some(Request::Cancel(self.id.clone())),
            });
        }
    }
}

/// Gives answers to the calls that wait for them, until the stream ends.
async fn receive(mut replies: Streaming<AnalyzeReply>, waiting: Waiting) {
    let status = loop {
        match replies.message().await {
            Ok(Some(reply)) => take(reply, &waiting),
            Ok(None) => break ended(),
            Err(status) => break of_link(status),
        }
    };
    let calls = locked(&waiting).take().unwrap_or_default();
    for call in calls.into_values() {
        // A call that does not wait any more needs no status.
        let _ = call.done.send(Err(status.clone()));
    }
}

fn take(reply: AnalyzeReply, waiting: &Waiting) {
    let mut waiting = locked(waiting);
    let Some(calls) = waiting.as_mut() else {
        return;
    };
    let Some(call) = calls.get_mut(&reply.id) else {
        return;
    };
    let id = reply.id.clone();
    let failure = reply.error.as_ref().map(|reason| match reply.turn {
        // The query was refused.
        None => Status::invalid_argument(reason),
        Some(_) => Status::unavailable(reason),
    });
    // Nobody cancels a call that waits but a server that stops.
    let failure = failure.or_else(|| {
        reply
            .cancelled
            .map(|_| Status::unavailable("the server is stopping"))
    });
    call.answers.push(reply);
    if failure.is_none() && call.answers.len() < call.positions {
        return;
    }
    if let Some(call) = calls.remove(&id) {
        let answered = failure.map_or(Ok(call.answers), Err);
        // A call that does not wait any more needs no answer.
        let _ = call.done.send(answered);
    }
}

fn locked(waiting: &Waiting) -> std::sync::MutexGuard<'_, Option<HashMap<String, Call>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
