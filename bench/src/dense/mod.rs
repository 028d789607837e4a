//! `minuet bench dense`: what index rows save against dense planes. The same network is served in three forms, on loopback and through a
//! link of limited rate and delay.
//!
//! | form | request | answer | server |
//! |---|---|---|---|
//! | `rows` | index rows, legal actions | priors of the legal actions | Minuet's, `minuet.v1.Evaluator` |
//! | `rows-logits` | index rows | logits of all actions | Minuet's, the Open Inference Protocol |
//! | `planes` | f32 planes, which the client expands | logits of all actions | a plain dense model in ONNX Runtime, the same protocol |
//!
//! All calls are unary. Each server is a process of its own, pinned to one core, and the clients are pinned to another. All three are
//! measured in turn for several rounds, and the results are medians. Server caches are off.
//!
//! | module | content |
//! |---|---|
//! | [`served`] | the server of the plain dense model |
//! | [`link`] | the link |

mod link;
pub mod served;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::builder::PossibleValuesParser;
use games::registry;
use onnx::model::{PLANES, ROWS, VALUE};
use proto::{
    inference::{
        ModelInferRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
        model_infer_request::InferInputTensor,
    },
    v1::evaluator_client::EvaluatorClient,
};
use serde::Serialize;
use service::connect::MAX_MESSAGE_BYTES;
use tokio::{runtime::Runtime, task::JoinSet};
use tonic::transport::Channel;

use self::link::{Link, Speed};
use crate::{
    harness::{
        measure::{self, Cores, Measured, Subject},
        model,
        positions::Positions,
        report::{median_of, print},
        runtime,
    },
    inference::{
        Pair, network,
        served::{SIMULATED, Served},
    },
};

/// Time before a measurement in which its load runs already.
const LEAD: Duration = Duration::from_millis(200);
/// Largest difference between the values of the forms.
const TOLERANCE: f32 = 1e-4;
/// Largest batch of a server.
const MOST: u16 = 4096;
/// Positions that are compared before the measurement.
const COMPARED: usize = 8;

/// Arguments of `minuet bench dense`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench dense --games chess --network 2x32 --positions 1,64 --json")]
pub struct Arguments {
    /// Games whose positions are evaluated.
    #[arg(long, value_delimiter = ',', default_value = "paco-sako,chess,go", value_parser = PossibleValuesParser::new(registry::NAMES))]
    games: Vec<String>,
    /// Network of random weights, as BLOCKSxFILTERS.
    #[arg(long, default_value = "6x64", value_parser = network)]
    network: Pair,
    /// Positions of each request.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,256", value_parser = clap::value_parser!(u16).range(1..=1024))]
    positions: Vec<u16>,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
    /// Provider of the network, as in `inference.provider`, or `simulated` for a device as fast as a GPU (300 µs and 2 µs for each row).
    #[arg(long, default_value = "cpu")]
    provider: String,
    /// Megabits per second of the link.
    #[arg(long, default_value_t = 1000.0)]
    megabits: f64,
    /// Round-trip time of the link in milliseconds.
    #[arg(long, default_value_t = 0.5)]
    round_trip: f64,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Complete result of the benchmark.
#[derive(Serialize)]
struct Report {
    bench: &'static str,
    network: String,
    provider: String,
    streams: u16,
    megabits: f64,
    round_trip_ms: f64,
    rounds: u8,
    /// True if servers and clients were pinned to a core each.
    is_pinned: bool,
    figures: Vec<Figures>,
}

/// Figures of one form for one game and size of requests; medians over the rounds.
#[derive(Serialize)]
struct Figures {
    game: String,
    /// Positions of a request.
    positions: u16,
    form: Form,
    /// Positions per second on loopback.
    loopback: f64,
    /// Positions per second through the link.
    link: f64,
    /// Processor time of the server for a position on loopback, in microseconds.
    server_us: f64,
    /// Processor time of the clients for a position on loopback, in microseconds.
    client_us: f64,
    /// Bytes on the socket for a position, towards the server.
    request_bytes: f64,
    /// Bytes on the socket for a position, from the server.
    reply_bytes: f64,
}

/// Form of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Rows,
    RowsLogits,
    Planes,
}

impl Form {
    const ALL: [Self; 3] = [Self::Rows, Self::RowsLogits, Self::Planes];
}

/// Runs the benchmark and prints its result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cores = Cores::find()?;
    let mut figures = Vec::new();
    for game in &arguments.games {
        figures.extend(measure_game(&arguments, game, &cores)?);
    }
    let (blocks, filters) = arguments.network;
    let report = Report {
        bench: "dense",
        network: format!("{blocks}x{filters}"),
        provider: arguments.provider,
        streams: arguments.streams,
        megabits: arguments.megabits,
        round_trip_ms: arguments.round_trip,
        rounds: arguments.rounds,
        is_pinned: cores.are_two(),
        figures,
    };
    print(&report, arguments.json)
}

fn measure_game(arguments: &Arguments, game: &str, cores: &Cores) -> anyhow::Result<Vec<Figures>> {
    let positions = Arc::new(Positions::play(game)?);
    let folder = tempfile::tempdir()?;
    let (rows, _) = model::find(game, None, None, arguments.network)?;
    let planes = folder.path().join("planes.onnx");
    std::fs::write(&planes, model::planes(&rows.layout, arguments.network)?)?;
    let largest = arguments.positions.iter().max().copied().unwrap_or_default();
    let batch = largest
        .saturating_mul(arguments.streams)
        .clamp(COMPARED as u16, MOST);
    cores.use_first()?;
    let mut served = Served::start(
        (batch, 2 * u32::from(batch)),
        &arguments.provider,
        folder.path(),
        rows,
    )?;
    let dense = served::start(&planes, &arguments.provider, batch.into())?;
    cores.use_second()?;
    let runtime = runtime()?;
    served.wait(&runtime)?;
    let servers = [
        (served.address(), served.subject()),
        (dense.first_line.clone(), dense.pid().into()),
    ];
    let server_of = |form| &servers[usize::from(form == Form::Planes)];
    if arguments.provider != SIMULATED {
        compare(&runtime, &positions, |form| server_of(form).0.clone())?;
    }
    let speed = Speed {
        bits_per_second: arguments.megabits * 1e6,
        delay: Duration::from_secs_f64(arguments.round_trip / 2e3),
    };
    let mut figures = Vec::new();
    for &count in &arguments.positions {
        let mut rounds = Form::ALL.map(|_| Vec::new());
        for _ in 0..arguments.rounds {
            for (form, rounds) in Form::ALL.into_iter().zip(&mut rounds) {
                let (address, server) = server_of(form);
                let load = Load {
                    form,
                    positions: positions.clone(),
                    count: count.into(),
                    streams: arguments.streams.into(),
                    seconds: arguments.seconds,
                };
                rounds.push(Round::measure(&runtime, &load, (address, *server), speed)?);
            }
        }
        figures.extend(Form::ALL.into_iter().zip(rounds).map(|(form, rounds)| Figures {
            game: game.into(),
            positions: count,
            form,
            loopback: median_of(&rounds, |round| round.server.per_second()),
            link: median_of(&rounds, |round| round.link.per_second()),
            server_us: median_of(&rounds, |round| 1e6 / round.server.per_cpu_second()),
            client_us: median_of(&rounds, |round| 1e6 / round.client.per_cpu_second()),
            request_bytes: median_of(&rounds, |round| round.bytes[0]),
            reply_bytes: median_of(&rounds, |round| round.bytes[1]),
        }));
    }
    Ok(figures)
}

/// Checks that the forms have the same values.
fn compare(
    runtime: &Runtime,
    positions: &Arc<Positions>,
    address: impl Fn(Form) -> String,
) -> anyhow::Result<()> {
    let _inside = runtime.enter();
    let values = Form::ALL.map(|form| {
        let mut client = Client::connect(form, &address(form))?;
        runtime.block_on(client.call(positions, 0, COMPARED))
    });
    let [rows, logits, planes] = values;
    let (rows, logits, planes) = (rows?, logits?, planes?);
    for other in [&logits, &planes] {
        let is_near = |(one, other): (&f32, &f32)| (one - other).abs() <= TOLERANCE;
        let is_same =
            rows.len() == COMPARED && other.len() == COMPARED && rows.iter().zip(other).all(is_near);
        ensure!(
            is_same,
            "the forms have different values: {rows:?}, {logits:?}, {planes:?}"
        );
    }
    Ok(())
}

/// One round of a form.
struct Round {
    /// Server and clients on loopback.
    server: Measured,
    client: Measured,
    /// Clients through the link.
    link: Measured,
    /// Bytes for a position through the link, towards the server and back.
    bytes: [f64; 2],
}

impl Round {
    fn measure(
        runtime: &Runtime,
        load: &Load,
        (address, server): (&str, Subject),
        speed: Speed,
    ) -> anyhow::Result<Self> {
        let loopback = load.run(runtime, address, server)?;
        let link = Link::start(address.parse()?, speed)?;
        let through = load.run(runtime, &link.address.to_string(), server)?;
        // All connections have ended, so every byte belongs to an answered position.
        let positions = through.answered.max(1) as f64;
        Ok(Self {
            server: loopback.server,
            client: loopback.client,
            link: through.client,
            bytes: link.bytes().map(|bytes| bytes as f64 / positions),
        })
    }
}

/// A closed load of unary calls.
struct Load {
    form: Form,
    positions: Arc<Positions>,
    /// Positions of a request.
    count: usize,
    streams: usize,
    seconds: f64,
}

impl Load {
    /// Runs the load, and measures server and clients after [`LEAD`].
    fn run(&self, runtime: &Runtime, address: &str, server: Subject) -> anyhow::Result<Measurement> {
        let _inside = runtime.enter();
        let (is_over, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut streams: JoinSet<anyhow::Result<()>> = JoinSet::new();
        for stream in 0..self.streams {
            let mut client = Client::connect(self.form, address)?;
            let (is_over, answered) = (is_over.clone(), answered.clone());
            let (positions, count, apart) = (self.positions.clone(), self.count, self.streams);
            streams.spawn(async move {
                let mut number = stream;
                while !is_over.load(Ordering::Relaxed) {
                    client.call(&positions, number, count).await?;
                    answered.fetch_add(count as u64, Ordering::Relaxed);
                    number += apart;
                }
                Ok(())
            });
        }
        thread::sleep(LEAD);
        let mut client = None;
        let server = measure::measure(server, || {
            let measured = measure::measure(std::process::id(), || {
                let first = answered.load(Ordering::Relaxed);
                thread::sleep(Duration::from_secs_f64(self.seconds));
                Ok(answered.load(Ordering::Relaxed) - first)
            })?;
            Ok(client.insert(measured).positions)
        });
        is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = runtime.block_on(streams.join_next()) {
            ended?.context("a call failed")?;
        }
        let client = client.context("the server's process is gone")?;
        Ok(Measurement {
            server: server?,
            client,
            answered: answered.load(Ordering::Relaxed),
        })
    }
}

/// Figures of a load.
struct Measurement {
    server: Measured,
    client: Measured,
    /// Positions answered in all, before and after the measurement too.
    answered: u64,
}

/// A connection that asks in one form.
enum Client {
    Rows(EvaluatorClient<Channel>),
    Tensors(GrpcInferenceServiceClient<Channel>, Form),
}

impl Client {
    fn connect(form: Form, address: &str) -> anyhow::Result<Self> {
        let channel = service::connect::channel(address)?;
        Ok(match form {
            Form::Rows => Self::Rows(EvaluatorClient::new(channel)),
            form => {
                let client = GrpcInferenceServiceClient::new(channel);
                Self::Tensors(client.max_decoding_message_size(MAX_MESSAGE_BYTES), form)
            }
        })
    }

    /// Asks for `count` positions, which `number` selects. Returns their values.
    async fn call(&mut self, positions: &Positions, number: usize, count: usize) -> anyhow::Result<Vec<f32>> {
        match self {
            Self::Rows(client) => {
                let reply = client
                    .evaluate(positions.request(number, count))
                    .await?
                    .into_inner();
                Ok(reply.values)
            }
            Self::Tensors(client, form) => {
                let request = tensors(positions, *form, (number, count))?;
                let answer = client.model_infer(request).await?.into_inner();
                let place = answer.outputs.iter().position(|output| output.name == VALUE);
                let raw = place.and_then(|place| answer.raw_output_contents.get(place));
                let (values, _) = raw.context("an answer without values")?.as_chunks::<4>();
                Ok(values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
            }
        }
    }
}

/// Returns a request for `count` positions as one tensor.
fn tensors(
    positions: &Positions,
    form: Form,
    (number, count): (usize, usize),
) -> anyhow::Result<ModelInferRequest> {
    let stack = positions.layout.stack()?;
    let rows = positions.request(number, count).indices;
    let (name, datatype, dims, bytes): (_, _, Vec<usize>, Vec<u8>) = match form {
        Form::Planes => {
            let mut planes = vec![0.0; count * stack.tensor_len()];
            let boards = planes.chunks_mut(stack.tensor_len());
            for (row, board) in rows.chunks(stack.row_len()).zip(boards) {
                stack.expand(row, board)?;
            }
            let bytes = planes.iter().flat_map(|value| value.to_le_bytes());
            (PLANES, "FP32", stack.shape().to_vec(), bytes.collect())
        }
        Form::Rows | Form::RowsLogits => {
            let bytes = rows.iter().flat_map(|index| index.to_le_bytes());
            (ROWS, "UINT32", vec![stack.row_len()], bytes.collect())
        }
    };
    Ok(ModelInferRequest {
        model_name: checkpoints::LATEST.into(),
        inputs: vec![InferInputTensor {
            name: name.into(),
            datatype: datatype.into(),
            shape: [count].into_iter().chain(dims).map(|side| side as i64).collect(),
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![bytes.into()],
        ..ModelInferRequest::default()
    })
}
