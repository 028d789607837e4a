//! A bare tonic server, which answers each request at once and without a model: what gRPC itself costs on this machine.

use std::{io::Read as _, pin::Pin, process::Command};

use anyhow::Context as _;
use proto::v1::{
    DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription,
    evaluator_server::{Evaluator, EvaluatorServer},
};
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use crate::harness::child::DrivenChild;

/// Starts the server as a child process on the core of this thread. Its first line is its address.
pub fn start() -> anyhow::Result<DrivenChild> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.arg("bare");
    DrivenChild::start(command)
}

/// Does the work of the child process: serves until its standard input is closed.
pub fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let closed = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = Server::builder().add_service(EvaluatorServer::new(Bare));
        tokio::select! {
            served = server.serve_with_incoming(incoming) => served.context("the bare server failed"),
            _ = closed => Ok(()),
        }
    });
    runtime.shutdown_background();
    served
}

/// Answers with zeros.
struct Bare;

/// Returns a reply of the size that a model's reply has.
fn answer(request: EvaluateRequest) -> EvaluateReply {
    EvaluateReply {
        id: request.id,
        version: "bare".into(),
        values: vec![0.0; request.legal_counts.len()],
        priors: vec![0; 2 * request.legal_actions.len()].into(),
        error: None,
    }
}

#[tonic::async_trait]
impl Evaluator for Bare {
    type EvaluateStreamStream = Pin<Box<dyn Stream<Item = Result<EvaluateReply, Status>> + Send>>;

    async fn evaluate_stream(
        &self,
        requests: Request<Streaming<EvaluateRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let replies = requests.into_inner().map(|request| request.map(answer));
        Ok(Response::new(Box::pin(replies)))
    }

    async fn evaluate(&self, request: Request<EvaluateRequest>) -> Result<Response<EvaluateReply>, Status> {
        Ok(Response::new(answer(request.into_inner())))
    }

    async fn describe_model(
        &self,
        _: Request<DescribeModelRequest>,
    ) -> Result<Response<ModelDescription>, Status> {
        Err(Status::unimplemented("the bare server has no model"))
    }
}
