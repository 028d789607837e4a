//! Tests of requests that wait for a busy device. The test blocks the device, so that no result depends on speed.

use std::time::Duration;

use proto::{
    inference::{
        InferParameter, ModelInferRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
        infer_parameter::ParameterChoice,
    },
    v1::{EvaluateReply, EvaluateRequest, Priority, evaluator_client::EvaluatorClient},
};
use service::connect;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::common::{
    PATIENCE, Stream,
    held::{BATCH, Held, QUEUE},
    question, request,
};

fn asked(held: &Held, id: u64, positions: usize) -> EvaluateRequest {
    request(&held.layout, id, positions, 2)
}

async fn stream(held: &Held) -> Stream {
    Stream::open(&held.address).await
}

/// A call on a connection of its own.
fn call(
    held: &Held,
    request: impl tonic::IntoRequest<EvaluateRequest>,
) -> JoinHandle<Result<EvaluateReply, Status>> {
    let mut client = EvaluatorClient::new(connect::channel(&held.address).unwrap());
    let request = request.into_request();
    tokio::spawn(async move { client.evaluate(request).await.map(tonic::Response::into_inner) })
}

async fn answer<T>(call: JoinHandle<T>) -> T {
    timeout(PATIENCE, call).await.unwrap().unwrap()
}

fn kserve(held: &Held) -> GrpcInferenceServiceClient<tonic::transport::Channel> {
    GrpcInferenceServiceClient::new(connect::channel(&held.address).unwrap())
}

fn infer(held: &Held, positions: usize) -> ModelInferRequest {
    question(&held.layout, "latest", 0, positions)
}

fn retry_delay(status: &Status) -> Option<Duration> {
    status.get_error_details().retry_info()?.retry_delay
}

/// Number of queued positions after [`filled`].
const WAITING: usize = 3 * BATCH - 1;

/// A stream that has a batch at the device, one beside it, and three requests that wait: no more self-play fits.
async fn filled(held: &Held) -> Stream {
    let stream = stream(held).await;
    stream.send(asked(held, 0, BATCH)).await;
    held.until(1, 0).await;
    // A whole batch is formed beside the one that is computed.
    stream.send(asked(held, 1, BATCH)).await;
    stream.send(asked(held, 2, BATCH - 1)).await;
    held.until(1, BATCH - 1).await;
    stream.send(asked(held, 3, BATCH)).await;
    stream.send(asked(held, 4, BATCH)).await;
    held.until(1, WAITING).await;
    stream
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_again_in_the_words_of_each_protocol() {
    let held = Held::start().await;
    let mut filled = filled(&held).await;
    let least = Duration::from_millis(1);

    filled.send(asked(&held, 5, BATCH)).await;
    let refused = filled.reply().await;
    let error = refused.error.unwrap();
    assert_eq!((refused.id, error.code), (5, Code::ResourceExhausted as i32));
    assert!(error.retry_after_ms.unwrap() >= 1);

    let status = answer(call(&held, asked(&held, 6, BATCH))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(retry_delay(&status).unwrap() >= least, "{status:?}");

    // Play is let in until nothing at all fits.
    let status = kserve(&held)
        .model_infer(infer(&held, QUEUE - WAITING + 1))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status.message().starts_with("Exceeds maximum queue size"),
        "{status:?}"
    );
    assert!(retry_delay(&status).unwrap() >= least, "{status:?}");

    held.gate.open();
    for id in 0..5 {
        assert_eq!(filled.reply().await.id, id);
    }
    drop(filled);
    held.stop().await;
}

#[tokio::test]
async fn what_can_never_fit_is_not_told_to_come_again() {
    let held = Held::start().await;
    held.gate.open();
    let self_play = QUEUE - QUEUE / 8;
    for (priority, most) in [(Priority::Unspecified, self_play), (Priority::Play, QUEUE)] {
        let asked = |positions| EvaluateRequest {
            priority: priority as i32,
            ..asked(&held, 1, positions)
        };
        let status = answer(call(&held, asked(most + 1))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(
            status.message().contains(&format!("at most {most} ")),
            "{status:?}"
        );
        assert_eq!(answer(call(&held, asked(most))).await.unwrap().values.len(), most);
    }
    let status = kserve(&held)
        .model_infer(infer(&held, QUEUE + 1))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    held.stop().await;
}

#[tokio::test]
async fn play_is_let_into_a_queue_full_of_self_play_and_answered_first() {
    let held = Held::start().await;
    let mut filled = filled(&held).await;
    let play = EvaluateRequest {
        priority: Priority::Play as i32,
        ..asked(&held, 9, BATCH)
    };
    let playing = call(&held, play);
    held.until(1, WAITING + BATCH).await;
    // The one at the device, and the one that was formed before it came.
    held.gate.pass(2);
    for id in 0..2 {
        assert_eq!(filled.reply().await.id, id);
    }
    held.until(3, 2 * BATCH).await;
    held.gate.pass(1);
    assert_eq!(answer(playing).await.unwrap().values.len(), BATCH);
    held.gate.open();
    for id in 2..5 {
        assert_eq!(filled.reply().await.id, id);
    }
    drop(filled);
    held.stop().await;
}

#[tokio::test]
async fn what_is_late_is_not_computed_and_said_to_be() {
    let held = Held::start().await;
    let mut open = stream(&held).await;
    open.send(asked(&held, 0, BATCH)).await;
    held.until(1, 0).await;
    let timed = |id| EvaluateRequest {
        timeout_ms: 1,
        ..asked(&held, id, 3)
    };
    // Calls are answered when it is time, whatever the device does.
    let status = answer(call(&held, timed(1))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    let mut late = infer(&held, 3);
    let micros = InferParameter {
        parameter_choice: Some(ParameterChoice::Uint64Param(1_000)),
    };
    late.parameters.insert("timeout".into(), micros);
    let status = timeout(PATIENCE, kserve(&held).model_infer(late))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(
        status.message().starts_with("Request timeout expired"),
        "{status:?}"
    );
    // A call's own deadline too. Its client may have given up before it is told, and says so in its own words.
    let mut own = Request::new(asked(&held, 2, 3));
    own.set_timeout(Duration::from_millis(50));
    let status = answer(call(&held, own)).await.unwrap_err();
    assert!(
        matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{status:?}"
    );
    held.until(1, 0).await;

    // On a stream when it would be its turn.
    open.send(timed(3)).await;
    held.until(1, 3).await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    held.gate.open();
    let mut replies = [open.reply().await, open.reply().await];
    replies.sort_by_key(|reply| reply.id);
    let errors = replies.map(|reply| (reply.id, reply.error.map(|error| error.code)));
    assert_eq!(errors, [(0, None), (3, Some(Code::DeadlineExceeded as i32))]);
    assert_eq!(held.gate.came(), 1);
    drop(open);
    held.stop().await;
}

#[tokio::test]
async fn draining_answers_all_that_was_taken_and_ends_the_streams() {
    let held = Held::start().await;
    let mut open = filled(&held).await;
    // Another protocol's stream, of which nothing has come yet.
    let (sender, receiver) = mpsc::channel(4);
    let asking = kserve(&held)
        .model_stream_infer(ReceiverStream::new(receiver))
        .await;
    let mut standard = asking.unwrap().into_inner();
    sender.send(infer(&held, 3)).await.unwrap();
    held.until(1, WAITING + 3).await;

    held.shutdown.cancel();
    let refused = answer(call(&held, asked(&held, 9, 1))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    held.gate.open();
    for id in 0..5 {
        let reply = open.reply().await;
        assert_eq!((reply.id, reply.error), (id, None));
    }
    let ended = timeout(PATIENCE, open.replies.message())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    let reply = timeout(PATIENCE, standard.message())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(reply.error_message, "");
    let ended = timeout(PATIENCE, standard.message()).await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    held.stop().await;
}
