//! Tests of requests that wait for a busy device. The test blocks the device, so that no result depends on speed.

use std::time::Duration;

use proto::{
    inference::{InferParameter, ModelInferRequest, infer_parameter::ParameterChoice},
    v1::{EvaluateReply, EvaluateRequest, Priority},
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt as _;

use crate::common::{
    Stream,
    blocked_server::{BATCH, BlockedServer, QUEUE},
    clients, infer_request, next, request, within,
};

fn asked(server: &BlockedServer, id: u64, positions: usize) -> EvaluateRequest {
    request(&server.layout, id, positions, 2)
}

/// Starts a call on a connection of its own.
fn call(
    server: &BlockedServer,
    request: impl tonic::IntoRequest<EvaluateRequest>,
) -> JoinHandle<Result<EvaluateReply, Status>> {
    let mut client = server.server.client();
    let request = request.into_request();
    tokio::spawn(async move { client.evaluate(request).await.map(Response::into_inner) })
}

async fn answer<T>(call: JoinHandle<T>) -> T {
    within(call).await.unwrap()
}

/// Sends a request of the other protocol, which must be refused.
async fn refused_infer(server: &BlockedServer, request: ModelInferRequest) -> Status {
    let (_, mut standard) = clients(&server.server.address);
    within(standard.model_infer(request)).await.unwrap_err()
}

fn infer(server: &BlockedServer, positions: usize) -> ModelInferRequest {
    infer_request(&server.layout, "latest", 0, positions)
}

fn retry_delay(status: &Status) -> Option<Duration> {
    status.get_error_details().retry_info()?.retry_delay
}

/// Number of queued positions after [`filled`].
const WAITING: usize = 3 * BATCH - 1;

/// Opens a stream with a batch at the device, a second one that is formed, and three waiting requests: no more self-play fits.
async fn filled(server: &BlockedServer) -> Stream {
    let stream = server.server.stream().await;
    stream.send(asked(server, 0, BATCH)).await;
    server.until(1, 0).await;
    // A largest batch is formed while another is computed.
    stream.send(asked(server, 1, BATCH)).await;
    stream.send(asked(server, 2, BATCH - 1)).await;
    server.until(1, BATCH - 1).await;
    stream.send(asked(server, 3, BATCH)).await;
    stream.send(asked(server, 4, BATCH)).await;
    server.until(1, WAITING).await;
    stream
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_retry_delay_in_both_protocols() {
    let server = BlockedServer::start().await;
    let mut filled = filled(&server).await;
    let least = Duration::from_millis(1);

    filled.send(asked(&server, 5, BATCH)).await;
    let refused = filled.reply().await;
    let error = refused.error.unwrap();
    assert_eq!((refused.id, error.code), (5, Code::ResourceExhausted as i32));
    assert!(error.retry_after_ms.unwrap() >= 1);

    let status = answer(call(&server, asked(&server, 6, BATCH))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(retry_delay(&status).unwrap() >= least, "{status:?}");

    // Play is admitted until the queue is full.
    let status = refused_infer(&server, infer(&server, QUEUE - WAITING + 1)).await;
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status.message().starts_with("Exceeds maximum queue size"),
        "{status:?}"
    );
    assert!(retry_delay(&status).unwrap() >= least, "{status:?}");

    server.gate.release_all();
    for id in 0..5 {
        assert_eq!(filled.reply().await.id, id);
    }
    drop(filled);
    server.server.stop().await;
}

#[tokio::test]
async fn a_request_that_never_fits_is_refused_without_a_retry_delay() {
    let server = BlockedServer::start().await;
    server.gate.release_all();
    let self_play = QUEUE - QUEUE / 8;
    for (priority, most) in [(Priority::Unspecified, self_play), (Priority::Play, QUEUE)] {
        let asked = |positions| EvaluateRequest {
            priority: priority as i32,
            ..asked(&server, 1, positions)
        };
        let status = answer(call(&server, asked(most + 1))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(
            status.message().contains(&format!("at most {most} ")),
            "{status:?}"
        );
        assert_eq!(
            answer(call(&server, asked(most))).await.unwrap().values.len(),
            most
        );
    }
    let status = refused_infer(&server, infer(&server, QUEUE + 1)).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    server.server.stop().await;
}

#[tokio::test]
async fn late_requests_are_refused_and_not_computed() {
    let server = BlockedServer::start().await;
    let mut open = server.server.stream().await;
    open.send(asked(&server, 0, BATCH)).await;
    server.until(1, 0).await;
    let timed = |id| EvaluateRequest {
        timeout_ms: 1,
        ..asked(&server, id, 3)
    };
    // Calls are answered at their deadlines, whatever the device does.
    let status = answer(call(&server, timed(1))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    let mut late = infer(&server, 3);
    let micros = InferParameter {
        parameter_choice: Some(ParameterChoice::Uint64Param(1_000)),
    };
    late.parameters.insert("timeout".into(), micros);
    let status = refused_infer(&server, late).await;
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(
        status.message().starts_with("Request timeout expired"),
        "{status:?}"
    );
    // The deadline of the call. Its client may give up before the answer, with a message of its own.
    let mut own = Request::new(asked(&server, 2, 3));
    own.set_timeout(Duration::from_millis(50));
    let status = answer(call(&server, own)).await.unwrap_err();
    assert!(
        matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{status:?}"
    );
    server.until(1, 0).await;

    // Requests on a stream are refused in their turn.
    open.send(timed(3)).await;
    server.until(1, 3).await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    server.gate.release_all();
    let mut replies = [open.reply().await, open.reply().await];
    replies.sort_by_key(|reply| reply.id);
    let errors = replies.map(|reply| (reply.id, reply.error.map(|error| error.code)));
    assert_eq!(errors, [(0, None), (3, Some(Code::DeadlineExceeded as i32))]);
    assert_eq!(server.gate.batches(), 1);
    drop(open);
    server.server.stop().await;
}

#[tokio::test]
async fn draining_answers_all_accepted_requests_and_ends_the_streams() {
    let server = BlockedServer::start().await;
    let mut open = filled(&server).await;
    // A stream of the other protocol without a request yet.
    let (sender, receiver) = mpsc::channel(4);
    let (_, mut client) = clients(&server.server.address);
    let asking = client.model_stream_infer(ReceiverStream::new(receiver)).await;
    let mut standard = asking.unwrap().into_inner();
    sender.send(infer(&server, 3)).await.unwrap();
    server.until(1, WAITING + 3).await;

    server.server.shutdown.cancel();
    let refused = answer(call(&server, asked(&server, 9, 1))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    server.gate.release_all();
    for id in 0..5 {
        let reply = open.reply().await;
        assert_eq!((reply.id, reply.error), (id, None));
    }
    let ended = within(open.replies.message()).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    assert_eq!(next(&mut standard).await.error_message, "");
    let ended = within(standard.message()).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    server.server.stop().await;
}
