//! The class `EvaluatorClient`: requests of an inference server. The Python class `Evaluator` is the part that users see.

use futures::future::try_join_all;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use proto::{
    priors,
    v1::{DescribeModelRequest, EvaluateReply, EvaluateRequest, evaluator_client::EvaluatorClient as Grpc},
};
use pyo3::{prelude::*, types::PyDict};
use service::connect::{Link, MAX_MESSAGE_BYTES};
use tokio::task::AbortHandle;
use tonic::Status;

use super::link::{Client, Limits, of_link, runtime, within};
use crate::error::{RowError, server};

/// Largest number of positions in one request, far below the default limit of servers.
const LARGEST: usize = 1024;

/// Priors back to back, values, and the version of the model.
type Answer<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>, String);

/// Priors back to back, values, and the version of the model, before they become arrays.
type Answered = (Vec<f32>, Vec<f32>, String);

/// Requests of one inference server.
#[pyclass(frozen, module = "minuet._minuet")]
pub struct EvaluatorClient {
    client: Client<Grpc<Link>>,
}

/// Positions as Python gives them: rows and legal entries back to back with the length of each row and the number of each position's
/// entries, and whether rows differ in length.
type Given<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    bool,
);

/// Positions of one call, split into requests.
struct Positions {
    rows: Vec<u32>,
    lengths: Vec<u32>,
    entries: Vec<u32>,
    counts: Vec<u32>,
    is_ragged: bool,
}

impl Positions {
    /// Copies arrays.
    ///
    /// # Errors
    /// `RowError` if their lengths do not fit together.
    fn new((rows, lengths, entries, counts, is_ragged): &Given<'_>) -> PyResult<Self> {
        let of = |numbers: &PyReadonlyArray1<'_, u32>| numbers.as_array().to_vec();
        let positions = Self {
            rows: of(rows),
            lengths: of(lengths),
            entries: of(entries),
            counts: of(counts),
            is_ragged: *is_ragged,
        };
        positions.check().map_err(RowError::new_err)?;
        Ok(positions)
    }

    fn requests(&self) -> Vec<EvaluateRequest> {
        let (mut row, mut entry) = (0, 0);
        let parts = self.lengths.chunks(LARGEST).zip(self.counts.chunks(LARGEST));
        let sum = |numbers: &[u32]| numbers.iter().map(|&number| number as usize).sum::<usize>();
        parts
            .map(|(lengths, counts)| {
                let (rows, entries) = (row..row + sum(lengths), entry..entry + sum(counts));
                (row, entry) = (rows.end, entries.end);
                EvaluateRequest {
                    indices: self.rows[rows].to_vec(),
                    row_lengths: if self.is_ragged {
                        lengths.to_vec()
                    } else {
                        Vec::new()
                    },
                    legal_actions: self.entries[entries].to_vec(),
                    legal_counts: counts.to_vec(),
                    ..EvaluateRequest::default()
                }
            })
            .collect()
    }

    /// Checks that the arrays belong to the same positions.
    fn check(&self) -> Result<(), String> {
        let sum = |numbers: &[u32]| numbers.iter().map(|&number| u64::from(number)).sum::<u64>();
        let (rows, positions) = (self.lengths.len(), self.counts.len());
        if rows != positions {
            return Err(format!("{rows} rows, but legal entries of {positions} positions"));
        }
        for (numbers, of, found, things) in [
            ("row lengths", &self.lengths, self.rows.len(), "values"),
            ("counts", &self.counts, self.entries.len(), "entries"),
        ] {
            let sum = sum(of);
            if sum != found as u64 {
                return Err(format!(
                    "the {numbers} sum to {sum}, but there are {found} {things}"
                ));
            }
        }
        Ok(())
    }
}

/// A call that runs while Python does something else.
#[pyclass(frozen, module = "minuet._minuet")]
pub struct Pending {
    task: AbortHandle,
}

#[pymethods]
impl Pending {
    /// Ends the call, unless it has ended.
    fn cancel(&self) {
        self.task.abort();
    }
}

#[pymethods]
impl EvaluatorClient {
    #[new]
    #[pyo3(signature = (address, security=None))]
    fn new(address: &str, security: Option<&str>) -> PyResult<Self> {
        let client = Client::new(address, security, |link| {
            Grpc::new(link)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        })?;
        Ok(Self { client })
    }

    /// Description of a model, as a dictionary.
    fn describe<'py>(&self, py: Python<'py>, model: &str, seconds: f64) -> PyResult<Bound<'py, PyDict>> {
        let request = DescribeModelRequest { model: model.into() };
        let described = self
            .client
            .call(py, seconds, request, |mut client, request| async move {
                client.describe_model(request).await
            })?;
        let facts = PyDict::new(py);
        facts.set_item("version", described.version)?;
        facts.set_item("game", described.game)?;
        facts.set_item("layout", described.layout_json)?;
        facts.set_item("actions", described.actions)?;
        facts.set_item("step", described.step)?;
        facts.set_item("provider", described.provider)?;
        facts.set_item("digest", described.digest)?;
        Ok(facts)
    }

    /// Evaluates positions. All are evaluated by one version, that of the first request's reply.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        model: &str,
        positions: Given<'py>,
        seconds: f64,
    ) -> PyResult<Answer<'py>> {
        let (call, _) = self.ask(model, &positions, seconds)?;
        let answered = self.client.wait(py, Some(seconds), call)?;
        Ok(arrays(py, answered))
    }

    /// Like `evaluate`, but returns at once. Another thread calls `done(answer, None)` or `done(None, exception)` at the end.
    fn start(&self, model: &str, positions: Given<'_>, seconds: f64, done: Py<PyAny>) -> PyResult<Pending> {
        let (call, limits) = self.ask(model, &positions, seconds)?;
        started(
            &self.client.address,
            call,
            limits,
            done,
            |py, answered: Answered| Ok(arrays(py, answered).into_pyobject(py)?.into_any().unbind()),
        )
    }
}

/// Starts a call to the server at `address`. Another thread calls `done(answer, None)` or `done(None, exception)` at the end.
pub fn started<R: Send + 'static>(
    address: &str,
    call: impl Future<Output = Result<R, Status>> + Send + 'static,
    limits: Limits,
    done: Py<PyAny>,
    to_python: fn(Python<'_>, R) -> PyResult<Py<PyAny>>,
) -> PyResult<Pending> {
    let address = address.to_owned();
    let task = runtime()?.spawn(async move {
        let answer = within(Some(limits.left()), call).await;
        // The interpreter may be shutting down; then nobody waits.
        let told = Python::try_attach(|py| {
            let answer = answer.map_err(|status| server(py, &address, &of_link(status)));
            match answer.and_then(|answered| to_python(py, answered)) {
                Ok(answer) => done.call1(py, (answer, py.None())),
                Err(error) => done.call1(py, (py.None(), error)),
            }
        });
        drop(told);
    });
    Ok(Pending {
        task: task.abort_handle(),
    })
}

impl EvaluatorClient {
    /// Returns a call that begins now, and its limits.
    fn ask(
        &self,
        model: &str,
        positions: &Given<'_>,
        seconds: f64,
    ) -> PyResult<(impl Future<Output = Result<Answered, Status>> + use<>, Limits)> {
        let requests = Positions::new(positions)?.requests();
        let limits = self.client.limits(seconds);
        Ok((ask(self.client.get()?, model.into(), requests, limits), limits))
    }
}

fn arrays(py: Python<'_>, (priors, values, version): Answered) -> Answer<'_> {
    (priors.into_pyarray(py), values.into_pyarray(py), version)
}

/// Asks for all positions. The version that answers the first request answers the others too.
async fn ask(
    client: Grpc<Link>,
    model: String,
    requests: Vec<EvaluateRequest>,
    limits: Limits,
) -> Result<Answered, Status> {
    let mut requests = requests.into_iter();
    let (mut priors, mut values) = (Vec::new(), Vec::new());
    let Some(first) = requests.next() else {
        return Ok((priors, values, model));
    };
    let first = one(client.clone(), EvaluateRequest { model, ..first }, limits).await?;
    let version = first.2;
    let others = requests.map(|request| {
        let model = version.clone();
        one(client.clone(), EvaluateRequest { model, ..request }, limits)
    });
    let others = try_join_all(others).await?;
    for (more_priors, more_values, _) in std::iter::once((first.0, first.1, String::new())).chain(others) {
        priors.extend(more_priors);
        values.extend(more_values);
    }
    Ok((priors, values, version))
}

async fn one(client: Grpc<Link>, request: EvaluateRequest, limits: Limits) -> Result<Answered, Status> {
    let (positions, legal) = (request.legal_counts.len(), request.legal_actions.len());
    let attempt = move || {
        let (mut client, request) = (client.clone(), limits.request(request.clone()));
        async move { client.evaluate(request).await }
    };
    let reply: EvaluateReply = limits.repeat(attempt).await?.into_inner();
    if reply.values.len() != positions {
        let found = reply.values.len();
        return Err(Status::internal(format!(
            "the answer has {found} values for {positions} positions"
        )));
    }
    let mut decoded = Vec::with_capacity(legal);
    priors::decode(&reply.priors, legal, &mut decoded)
        .map_err(|error| Status::internal(error.to_string()))?;
    Ok((decoded, reply.values, reply.version))
}
