//! A server of a plain dense model: it takes planes as tensors and hands them to ONNX Runtime as they are. A process of its own, with
//! one thread that runs the model and one that serves, like a server of index rows on one core.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::Context as _;
use config::Provider;
use network::{ModelFile, batch::Batch, loader::Loader, model::Model, provider::ProviderSettings};
use onnx::model::{POLICY, VALUE, metadata_of};
use prost::bytes::Bytes;
use proto::inference::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse, ModelStreamInferResponse,
    RepositoryIndexRequest, RepositoryIndexResponse, ServerLiveRequest, ServerLiveResponse,
    ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
    grpc_inference_service_server::{GrpcInferenceService, GrpcInferenceServiceServer},
    model_infer_response::InferOutputTensor,
};
use service::connect::MAX_MESSAGE_BYTES;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Empty;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    harness::{child::DrivenChild, runtime},
    inference::served::SIMULATED,
    selfplay::device,
};

/// Flow-control windows, in bytes: larger than a request, so that they delay none.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Arguments of the server's process.
#[derive(clap::Args)]
pub struct Arguments {
    model: PathBuf,
    provider: String,
    /// Largest batch.
    batch: usize,
}

/// Starts the process on the core of this thread. Its first line is its address.
pub fn start(model: &Path, provider: &str, batch: usize) -> anyhow::Result<DrivenChild> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .arg("dense-server")
        .arg(model)
        .args([provider, &batch.to_string()]);
    DrivenChild::start(command)
}

/// Serves until the process is killed.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let is_simulated = arguments.provider == SIMULATED;
    let provider = match is_simulated {
        true => Provider::Auto,
        false => serde_json::from_value(arguments.provider.into())?,
    };
    let bytes = std::fs::read(&arguments.model)?;
    let metadata = metadata_of(&bytes)?;
    let settings = config::load_with(None, &[])?.inference;
    let loader = Loader::new(ProviderSettings::from(&settings), arguments.batch, provider)?;
    let loader = match is_simulated {
        true => loader.simulated(device::simulate),
        false => loader,
    };
    let model = loader.load(&ModelFile {
        bytes: bytes.into(),
        version: "dense".into(),
        step: metadata.step,
        layout: metadata.layout,
        search: None,
    })?;
    let (jobs, queue) = mpsc::channel(1024);
    thread::Builder::new()
        .name("device".into())
        .spawn(move || answer_all(&model, queue, arguments.batch))?;
    runtime()?.block_on(async {
        let listener = service::serve::listen("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let planes =
            GrpcInferenceServiceServer::new(Planes { jobs }).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .add_service(planes)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await?;
        Ok(())
    })
}

/// Planes of a request.
struct Job {
    planes: Vec<f32>,
    positions: usize,
    reply: oneshot::Sender<Result<[Bytes; 2], String>>,
}

/// Answers requests in batches of all that wait, up to `largest` positions.
fn answer_all(model: &Model, mut queue: mpsc::Receiver<Job>, largest: usize) {
    let mut waiting = None;
    while let Some(first) = waiting.take().or_else(|| queue.blocking_recv()) {
        let mut size = first.positions;
        let mut jobs = vec![first];
        while let Ok(job) = queue.try_recv() {
            if size + job.positions > largest {
                waiting = Some(job);
                break;
            }
            size += job.positions;
            jobs.push(job);
        }
        let planes = match &mut jobs[..] {
            [one] => std::mem::take(&mut one.planes),
            several => several.iter().flat_map(|job| &job.planes).copied().collect(),
        };
        let actions = model.info.layout.actions as usize;
        let outputs = model.run(Batch::of_planes(planes, size));
        let mut start = 0;
        for job in jobs {
            let end = start + job.positions;
            let answer = match &outputs {
                Ok(outputs) => {
                    let logits = &outputs.logits()[start * actions..end * actions];
                    Ok([logits, &outputs.values()[start..end]].map(bytes_of))
                }
                Err(error) => Err(error.to_string()),
            };
            // A client that is gone needs no answer.
            let _ = job.reply.send(answer);
            start = end;
        }
    }
}

fn bytes_of(numbers: &[f32]) -> Bytes {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

struct Planes {
    jobs: mpsc::Sender<Job>,
}

fn unused<T>() -> Result<T, Status> {
    Err(Status::unimplemented("this server answers ModelInfer only"))
}

#[tonic::async_trait]
impl GrpcInferenceService for Planes {
    type ModelStreamInferStream = Empty<Result<ModelStreamInferResponse, Status>>;

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let request = request.into_inner();
        let [raw] = &request.raw_input_contents[..] else {
            return Err(Status::invalid_argument(
                "one tensor in raw_input_contents is needed",
            ));
        };
        let positions = request.inputs.first().and_then(|input| input.shape.first());
        let positions = positions.and_then(|&positions| usize::try_from(positions).ok());
        let (numbers, _) = raw.as_chunks::<4>();
        let (reply, answer) = oneshot::channel();
        let job = Job {
            planes: numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            positions: positions.ok_or_else(|| Status::invalid_argument("the input has no shape"))?,
            reply,
        };
        let stopped = |_| Status::unavailable("the thread that runs the model has ended");
        self.jobs.send(job).await.map_err(|_| stopped(()))?;
        let answered = answer.await.map_err(|_| stopped(()))?;
        let [logits, values] = answered.map_err(Status::internal)?;
        let positions = values.len() / size_of::<f32>();
        let tensor = |name: &str, bytes: &Bytes| InferOutputTensor {
            name: name.into(),
            datatype: "FP32".into(),
            shape: vec![positions as i64, (bytes.len() / values.len().max(1)) as i64],
            ..InferOutputTensor::default()
        };
        Ok(Response::new(ModelInferResponse {
            model_name: request.model_name,
            id: request.id,
            outputs: vec![tensor(POLICY, &logits), tensor(VALUE, &values)],
            raw_output_contents: vec![logits, values],
            ..ModelInferResponse::default()
        }))
    }

    async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        unused()
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        unused()
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        unused()
    }

    async fn model_ready(
        &self,
        _: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        unused()
    }

    async fn model_metadata(
        &self,
        _: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        unused()
    }

    async fn model_config(
        &self,
        _: Request<ModelConfigRequest>,
    ) -> Result<Response<ModelConfigResponse>, Status> {
        unused()
    }

    async fn model_stream_infer(
        &self,
        _: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Self::ModelStreamInferStream>, Status> {
        unused()
    }

    async fn repository_index(
        &self,
        _: Request<RepositoryIndexRequest>,
    ) -> Result<Response<RepositoryIndexResponse>, Status> {
        unused()
    }
}
