//! Tests of spans: a role runs as a process, and this process is its collector.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    trace::v1::{Span, span::SpanKind},
};
use service::{connect, serve};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;

use crate::{TIMEOUT, about};

struct Receiver(mpsc::UnboundedSender<(String, Span)>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let who = format!("{:?}", resource.resource);
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                self.0.send((who.clone(), span)).unwrap();
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Returns an address with a port that was free just now.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_the_span_of_a_call_within_the_callers_trace() {
    let listener = serve::listen("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut spans) = mpsc::unbounded_channel();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let receiving = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(Receiver(sender)))
        .serve_with_incoming(incoming);
    let receiving = tokio::spawn(receiving);

    let health = free();
    let tests = std::env::current_exe().unwrap();
    let mut role = Command::new(PathBuf::from(tests.ancestors().nth(2).unwrap()).join("examples/role"))
        .args(["--trace-to", &collector, "--trace-share", "0"])
        .args(["--set", &format!("actor.health={health}"), "--supervised"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env_remove("MINUET_CONFIG")
        .spawn()
        .unwrap();
    let mut line = String::new();
    // Kept open to the end, because the role would fail if its output could not be written.
    let mut stdout = BufReader::new(role.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");

    let mut client = HealthClient::new(connect::channel(&health).unwrap());
    // Traces begun by the role are not collected; the caller's trace is, because its header requests it.
    client.check(about("")).await.unwrap();
    let mut request = Request::new(about(""));
    let trace = "00-0123456789abcdef0123456789abcdef-0011223344556677-01";
    request
        .metadata_mut()
        .insert("traceparent", trace.parse().unwrap());
    client.check(request).await.unwrap();
    // Spans that are still queued are sent when the role ends.
    drop(role.stdin.take());
    let ended = tokio::task::spawn_blocking(move || role.wait().unwrap())
        .await
        .unwrap();
    assert!(ended.success());

    let (who, span) = tokio::time::timeout(TIMEOUT, spans.recv())
        .await
        .unwrap()
        .unwrap();
    assert!(who.contains("minuet-actor"), "{who}");
    assert_eq!(span.name, "grpc.health.v1.Health/Check");
    assert_eq!(span.kind(), SpanKind::Server);
    assert_eq!(
        span.trace_id,
        0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128.to_be_bytes()
    );
    assert_eq!(span.parent_span_id, 0x0011_2233_4455_6677_u64.to_be_bytes());
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    receiving.abort();
    assert!(spans.try_recv().is_err(), "more than one call was collected");
}
