//! [`RogueClient`]: a client that misbehaves in many ways, chosen by its seed.

use std::time::Duration;

use bytes::Bytes;
use games::RowLayout;
use proto::{
    inference::{
        ModelInferRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
        model_infer_request::InferInputTensor,
    },
    v1::{EvaluateRequest, evaluator_client::EvaluatorClient},
};
use rand::{Rng as _, RngCore as _, SeedableRng as _, rngs::StdRng};
use service::connect;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::{
    common::{infer_request, request},
    half_sent,
};

/// Connection preface of HTTP/2, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A client that misbehaves.
pub struct RogueClient {
    generator: StdRng,
    address: String,
    layout: RowLayout,
}

impl RogueClient {
    pub fn new(seed: u64, address: &str, layout: &RowLayout) -> Self {
        Self {
            generator: StdRng::seed_from_u64(seed),
            address: address.into(),
            layout: layout.clone(),
        }
    }

    /// Misbehaves `times` times. Failures of its requests are ignored.
    pub async fn misbehave(mut self, times: usize) {
        for _ in 0..times {
            match self.generator.random_range(0..11) {
                0 => self.send_random_bytes(b"").await,
                1 => self.send_random_bytes(PREFACE).await,
                2 => self.stall().await,
                3 => self.wrong_request().await,
                4 => self.wrong_tensor().await,
                5 => self.call_and_cancel().await,
                6 => self.stream_and_vanish(false).await,
                7 => self.never_read().await,
                8 => self.half_send("/grpc.health.v1.Health/Check").await,
                9 => self.half_send("/minuet.v1.Evaluator/Evaluate").await,
                _ => self.stream_and_vanish(true).await,
            }
        }
    }

    fn channel(&self) -> Channel {
        connect::channel(&self.address).unwrap()
    }

    fn soon(&mut self) -> Duration {
        Duration::from_micros(self.generator.random_range(0..20_000))
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.generator.random_range(1..=most)];
        self.generator.fill_bytes(&mut bytes);
        bytes
    }

    /// Sends random bytes.
    async fn send_random_bytes(&mut self, before: &[u8]) {
        let rubbish = self.bytes(4096);
        if let Ok(mut stream) = TcpStream::connect(&self.address).await {
            let _ = stream.write_all(before).await;
            let _ = stream.write_all(&rubbish).await;
            tokio::time::sleep(self.soon()).await;
        }
    }

    /// Sends half of a message, then disconnects.
    async fn stall(&mut self) {
        let length = self.generator.random_range(0..PREFACE.len());
        if let Ok(mut stream) = TcpStream::connect(&self.address).await {
            let _ = stream.write_all(&PREFACE[..length]).await;
            tokio::time::sleep(self.soon()).await;
        }
    }

    /// Sends numbers that do not fit each other or the model.
    async fn wrong_request(&mut self) {
        let mut numbers = |most: usize| -> Vec<u32> {
            let length = self.generator.random_range(0..most);
            (0..length)
                .map(|_| self.generator.next_u32() >> self.generator.random_range(0..32))
                .collect()
        };
        let request = EvaluateRequest {
            indices: numbers(200),
            row_lengths: numbers(3),
            legal_actions: numbers(50),
            legal_counts: numbers(8),
            ..EvaluateRequest::default()
        };
        let mut client = EvaluatorClient::new(self.channel());
        let answered = timeout(Duration::from_secs(5), client.evaluate(request)).await;
        assert!(
            !matches!(answered, Ok(Ok(_))),
            "random numbers were accepted as positions"
        );
    }

    /// Sends malformed tensors.
    async fn wrong_tensor(&mut self) {
        let datatypes = ["UINT32", "INT32", "FP32", "BYTES", ""];
        let names = ["indices", "planes", "legal_actions", "x"];
        let mut request = ModelInferRequest {
            model_name: ["latest", "latest_dense", "nobody", ""][self.generator.random_range(0..4)].into(),
            ..ModelInferRequest::default()
        };
        for _ in 0..self.generator.random_range(0..3) {
            let sides = self.generator.random_range(0..5);
            request.inputs.push(InferInputTensor {
                name: names[self.generator.random_range(0..names.len())].into(),
                datatype: datatypes[self.generator.random_range(0..datatypes.len())].into(),
                shape: (0..sides).map(|_| self.generator.random_range(-2..70)).collect(),
                ..InferInputTensor::default()
            });
            let contents = self.bytes(100_000);
            request.raw_input_contents.push(Bytes::from(contents));
        }
        let mut client = GrpcInferenceServiceClient::new(self.channel());
        let _ = timeout(Duration::from_secs(5), client.model_infer(request)).await;
    }

    /// Sends a valid request, and does not wait for the answer.
    async fn call_and_cancel(&mut self) {
        let asked = request(&self.layout, self.generator.next_u64(), 64, 3);
        let mut client = EvaluatorClient::new(self.channel());
        let limit = self.soon();
        let _ = timeout(limit, client.evaluate(asked)).await;
    }

    /// Requests as many logits as possible, repeatedly, and reads none.
    async fn never_read(&mut self) {
        let asked = infer_request(&self.layout, "latest", self.generator.next_u64(), 256);
        let mut client = GrpcInferenceServiceClient::new(self.channel());
        let asked = tokio_stream::iter(std::iter::repeat_n(asked, 64));
        let opened = timeout(Duration::from_secs(5), client.model_stream_infer(asked)).await;
        tokio::time::sleep(self.soon()).await;
        drop(opened);
    }

    /// Sends a part of a message of 4 MiB, and disconnects.
    async fn half_send(&mut self, path: &str) {
        let sent = self.generator.random_range(0..1 << 20);
        let limit = self.soon();
        let sending = half_sent::send(self.channel(), path, 4 << 20, sent);
        let _ = timeout(limit, sending).await;
    }

    /// Sends many requests on a stream, reads some answers or none, and disconnects.
    async fn stream_and_vanish(&mut self, reads: bool) {
        let (requests, receiver) = mpsc::channel(64);
        let mut client = EvaluatorClient::new(self.channel());
        let count = self.generator.random_range(1..64);
        for _ in 0..count {
            let positions = self.generator.random_range(1..16);
            let asked = request(&self.layout, self.generator.next_u64(), positions, 3);
            let _ = requests.try_send(asked);
        }
        let opened = timeout(
            Duration::from_secs(5),
            client.evaluate_stream(ReceiverStream::new(receiver)),
        )
        .await;
        if let Ok(Ok(replies)) = opened {
            let mut replies = replies.into_inner();
            if reads {
                let limit = self.soon();
                let _ = timeout(limit, replies.message()).await;
            } else {
                tokio::time::sleep(self.soon()).await;
            }
        }
    }
}
