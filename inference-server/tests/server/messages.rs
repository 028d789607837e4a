//! Messages that are too large or malformed: the stream ends with the reason, after answers to the earlier requests.

use bytes::{Buf as _, BufMut as _, Bytes};
use proto::{
    inference::{ModelInferRequest, model_infer_request::InferInputTensor},
    v1::EvaluateRequest,
};
use service::connect;
use tonic::{
    Code, Request, Response, Status, Streaming,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
};

use crate::common::{Served, clients, code, next, request, within};

const LIMIT_MIB: usize = 1;

/// A codec that sends raw bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Returns the status with which a stream ends. It may come in place of the stream.
async fn end<T>(opened: Result<Response<Streaming<T>>, Status>) -> Status {
    match opened {
        Err(status) => status,
        Ok(replies) => within(replies.into_inner().message())
            .await
            .map(drop)
            .unwrap_err(),
    }
}

async fn served() -> Served {
    Served::start_with(|config| config.inference.max_message_mib = LIMIT_MIB).await
}

/// Returns a text longer than the limit.
fn too_long() -> String {
    "x".repeat(LIMIT_MIB << 20)
}

#[tokio::test]
async fn a_message_above_the_limit_ends_a_stream_with_the_reason() {
    let Served { layout, server, .. } = served().await;
    let mut stream = server.stream().await;
    stream.send(request(&layout, 7, 2, 3)).await;
    let large = EvaluateRequest {
        model: too_long(),
        ..EvaluateRequest::default()
    };
    stream.send(large.clone()).await;
    let reply = stream.reply().await;
    assert_eq!((reply.id, reply.error), (7, None));
    let ended = within(stream.replies.message()).await;
    assert_eq!(ended.unwrap_err().code(), Code::OutOfRange);
    let refused = server.evaluate(large).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");

    let (_, mut standard) = clients(&server.address);
    let unknown = ModelInferRequest {
        model_name: "nobody".into(),
        ..ModelInferRequest::default()
    };
    let large = ModelInferRequest {
        model_name: too_long(),
        ..ModelInferRequest::default()
    };
    let asked = tokio_stream::iter([unknown, large.clone()]);
    let mut replies = standard.model_stream_infer(asked).await.unwrap().into_inner();
    let reply = next(&mut replies).await;
    assert!(
        reply.error_message.contains("'nobody'"),
        "{}",
        reply.error_message
    );
    let ended = within(replies.message()).await;
    assert_eq!(ended.unwrap_err().code(), Code::OutOfRange);
    let refused = standard.model_infer(large).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    // Fields of two bytes each on the wire, and hundreds in memory.
    let many = ModelInferRequest {
        inputs: vec![InferInputTensor::default(); 65_536],
        ..ModelInferRequest::default()
    };
    let refused = standard.model_infer(many.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("unpacked"), "{refused:?}");
    let asked = tokio_stream::iter([many]);
    let ended = end(standard.model_stream_infer(asked).await).await;
    assert_eq!(ended.code(), Code::InvalidArgument, "{ended:?}");
    // Other clients are served.
    assert!(server.evaluate(request(&layout, 8, 2, 3)).await.is_ok());
    drop((stream, replies, standard));
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_message_ends_a_stream_with_the_reason() {
    let Served { server, .. } = served().await;
    for path in [
        "/minuet.v1.Evaluator/EvaluateStream",
        "/inference.GRPCInferenceService/ModelStreamInfer",
    ] {
        let mut grpc = Grpc::new(connect::channel(&server.address).unwrap());
        grpc.ready().await.unwrap();
        // Field 1 as a fixed64 that is cut short.
        let rubbish = tokio_stream::iter([Bytes::from_static(&[0x09, 1, 2])]);
        let path = PathAndQuery::from_static(path);
        let asked = grpc.streaming(Request::new(rubbish), path.clone(), Raw).await;
        let ended = end(asked).await;
        assert_eq!(ended.code(), Code::Internal, "{path}: {ended:?}");
    }
    let refused = server.evaluate(EvaluateRequest::default()).await;
    assert_eq!(code(refused), Code::InvalidArgument);
    server.stop().await;
}
