//! SIGTERM is sent to a server process while requests are in flight.

use onnx::{Input, TowerShape, TowerWeights};
use proto::v1::EvaluateRequest;
use tonic::Code;

use crate::{
    common::{Store, Stream, file, request, small, within},
    process::Process,
};

/// Requests of a round, each of a largest batch; fewer than the queue's limit.
const REQUESTS: u64 = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_accepted_before_sigterm_are_answered() {
    let (store, layout) = (Store::new(), small());
    // A slow model.
    let weights = TowerWeights::random(&TowerShape::new(&layout, 10, 64), 1);
    store
        .publish_latest(file(&weights, &layout, Input::Rows), &layout, 5)
        .await;
    let server = Process::start(&store, &[]);
    server.ready().await;
    let mut stream = Stream::open(&server.address).await;
    let (mut sent, mut answered) = (0, 0);
    // Repeated if all requests were answered before the signal was sent.
    while answered == sent {
        for _ in 0..REQUESTS {
            stream.send(request(&layout, sent, 16, 3)).await;
            sent += 1;
        }
        // An invalid request is refused as soon as it is read, so all requests before it have been read by then.
        let nothing = EvaluateRequest {
            id: u64::MAX,
            ..EvaluateRequest::default()
        };
        stream.send(nothing).await;
        loop {
            let reply = stream.reply().await;
            if reply.id == u64::MAX {
                assert_eq!(reply.error.unwrap().code, Code::InvalidArgument as i32);
                break;
            }
            assert_eq!(reply.error, None);
            answered += 1;
        }
    }
    server.terminate();
    println!("{} of {sent} requests in flight", sent - answered);
    while answered < sent {
        assert_eq!(stream.reply().await.error, None, "after {answered} of {sent}");
        answered += 1;
    }
    let ended = within(stream.replies.message()).await;
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
    drop(stream);
    server.end().await;
}
