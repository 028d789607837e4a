//! Tests of the spans of batches: the server runs as a process, and this process is its collector.

use std::collections::HashSet;

use games::RowLayout;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value,
    trace::v1::{Span, span::SpanKind},
};
use proto::v1::{EvaluateRequest, evaluator_client::EvaluatorClient};
use service::{connect, serve};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::{
    common::{published, request},
    process::Process,
};

/// Traces of callers: one that is collected, one that is not.
const COLLECTED: &str = "00-0123456789abcdef0123456789abcdef-0011223344556677-01";
const NOT_COLLECTED: &str = "00-fedcba9876543210fedcba9876543210-7766554433221100-00";

struct Collector(mpsc::UnboundedSender<Span>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        for scope in resources.flat_map(|resource| resource.scope_spans) {
            for span in scope.spans {
                self.0.send(span).unwrap();
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn traced<T>(message: T, trace: &str) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("traceparent", trace.parse().unwrap());
    request
}

/// Sends a call, a stream of three requests, and a call that is not collected. All positions differ.
async fn send_requests(address: &str, layout: &RowLayout) {
    let asked = |id| request(layout, id, 4, 3);
    let mut client = EvaluatorClient::new(connect::channel(address).unwrap());
    client.evaluate(traced(asked(1), COLLECTED)).await.unwrap();
    let requests: Vec<EvaluateRequest> = (2..5).map(asked).collect();
    let streaming = client.evaluate_stream(traced(tokio_stream::iter(requests), COLLECTED));
    let mut replies = streaming.await.unwrap().into_inner();
    for _ in 0..3 {
        assert_eq!(replies.message().await.unwrap().unwrap().error, None);
    }
    assert!(replies.message().await.unwrap().is_none());
    client.evaluate(traced(asked(5), NOT_COLLECTED)).await.unwrap();
}

/// Returns all spans of a server with `--trace-share` `share`.
async fn spans_of_a_server(share: &str) -> Vec<Span> {
    let listener = serve::listen("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut received) = mpsc::unbounded_channel();
    let receiving = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(Collector(sender)))
        .serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener));
    let receiving = tokio::spawn(receiving);
    let (store, layout, _, _) = published().await;
    let server = Process::start(&store, &["--trace-to", &collector, "--trace-share", share]);
    server.ready().await;
    send_requests(&server.address, &layout).await;
    // The server sends its remaining spans when it ends.
    server.stop().await;
    receiving.abort();
    let mut spans = Vec::new();
    while let Ok(span) = received.try_recv() {
        spans.push(span);
    }
    spans
}

fn number(span: &Span, name: &str) -> i64 {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == name);
    let value = attribute.and_then(|attribute| attribute.value.clone()?.value);
    match value {
        Some(any_value::Value::IntValue(number)) => number,
        other => panic!("{name} is {other:?} in {span:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_has_a_span_with_its_steps_and_links_to_its_calls() {
    let spans = spans_of_a_server("1").await;
    let calls: HashSet<&[u8]> = spans
        .iter()
        .filter(|span| span.kind() == SpanKind::Server && span.trace_id.starts_with(&[0x01, 0x23, 0x45]))
        .map(|span| span.span_id.as_slice())
        .collect();
    assert_eq!(calls.len(), 2, "a call and a stream");
    let batches: Vec<&Span> = spans.iter().filter(|span| span.name == "batch").collect();
    assert!((3..=5).contains(&batches.len()), "{batches:?}");
    let (mut positions, mut requests, mut linked) = (0, 0, HashSet::new());
    for batch in &batches {
        assert!(batch.parent_span_id.is_empty());
        positions += number(batch, "minuet.batch.positions");
        requests += number(batch, "minuet.batch.requests");
        // The requests of a stream share one link.
        assert!(batch.links.len() <= 1, "{batch:?}");
        for link in &batch.links {
            assert!(calls.contains(link.span_id.as_slice()), "{link:?}");
            linked.insert(link.span_id.as_slice());
        }
        let mut steps: Vec<&Span> = spans
            .iter()
            .filter(|span| span.parent_span_id == batch.span_id)
            .collect();
        steps.sort_by_key(|step| (step.start_time_unix_nano, step.end_time_unix_nano));
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["queue", "assemble", "device", "reply"]);
        assert!(steps.iter().all(|step| step.trace_id == batch.trace_id));
        // Each step begins when the previous one ends, and together they are the batch's time.
        let times = |step: &Span| (step.start_time_unix_nano, step.end_time_unix_nano);
        assert!(steps.windows(2).all(|pair| times(pair[0]).1 == times(pair[1]).0));
        assert_eq!((times(steps[0]).0, times(steps[3]).1), times(batch));
        assert!(times(steps[2]).0 < times(steps[2]).1, "the device took no time");
    }
    assert_eq!((positions, requests), (20, 5));
    assert_eq!(linked, calls);
    // One batch is for a call that is not collected.
    assert_eq!(batches.iter().filter(|batch| batch.links.is_empty()).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_own_traces_batches_have_no_spans() {
    let spans = spans_of_a_server("0").await;
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    // The caller decided that its calls are collected.
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.iter().all(|name| name.starts_with("minuet.v1.Evaluator/")),
        "{names:?}"
    );
}
