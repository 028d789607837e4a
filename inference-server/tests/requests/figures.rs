//! Tests of the metrics page after requests of every kind.

use std::collections::HashMap;

use proto::{
    inference::{InferParameter, ModelInferRequest, infer_parameter::ParameterChoice},
    v1::EvaluateRequest,
};
use tonic::Code;

use crate::{
    common::{clients, infer_request, published, request},
    process::Process,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_counted_by_its_result() {
    let (store, layout, _, _) = published().await;
    let folder = tempfile::tempdir().unwrap();
    let broken = "game='othello'\nfile='nothing.onnx'";
    std::fs::write(folder.path().join("broken.toml"), broken).unwrap();
    let models = format!("inference.models={}", folder.path().display());
    let server = Process::start(&store, &["--set", &models]);
    server.ready().await;
    server.has_tried("broken").await;
    let (mut client, mut standard) = clients(&server.address);

    // Computed the first time, in the cache the second time.
    let asked = request(&layout, 1, 3, 5);
    for _ in 0..2 {
        client.evaluate(asked.clone()).await.unwrap();
    }
    let mut refused: HashMap<Code, u32> = HashMap::new();
    let mut count = |code: Code, expected: Code| {
        assert_eq!(code, expected);
        *refused.entry(code).or_default() += 1;
    };
    // Refusals are counted by status code, in both protocols.
    let of_model = |model: &str| EvaluateRequest {
        model: model.into(),
        ..asked.clone()
    };
    for (request, code) in [
        (EvaluateRequest::default(), Code::InvalidArgument),
        (of_model("nobody"), Code::NotFound),
        (of_model("broken"), Code::FailedPrecondition),
    ] {
        count(client.evaluate(request).await.unwrap_err().code(), code);
    }
    let timeout = InferParameter {
        parameter_choice: Some(ParameterChoice::Uint64Param(1)),
    };
    let mut late = infer_request(&layout, "latest", 2, 3);
    late.parameters.insert("timeout".into(), timeout);
    count(
        standard.model_infer(late).await.unwrap_err().code(),
        Code::Unavailable,
    );
    let nobody = ModelInferRequest {
        model_name: "nobody".into(),
        ..ModelInferRequest::default()
    };
    count(
        standard.model_infer(nobody).await.unwrap_err().code(),
        Code::NotFound,
    );
    // Refusals on a stream are counted too, although they are not statuses of a call.
    let asked = tokio_stream::iter([EvaluateRequest::default()]);
    let mut replies = client.evaluate_stream(asked).await.unwrap().into_inner();
    let error = replies.message().await.unwrap().unwrap().error.unwrap();
    count(Code::from(error.code), Code::InvalidArgument);
    assert!(replies.message().await.unwrap().is_none());
    drop(replies);

    let page = server.page().await;
    let figure = |name: &str| {
        let found = page.get(&format!("minuet_inference_{name}")).copied();
        found.unwrap_or_else(|| panic!("no {name} in {page:#?}"))
    };
    for (code, count) in refused {
        assert_eq!(
            figure(&format!("refused_total{{code=\"{code:?}\"}}")),
            f64::from(count)
        );
    }
    for code in ["Internal", "ResourceExhausted", "DeadlineExceeded"] {
        assert_eq!(figure(&format!("refused_total{{code=\"{code}\"}}")), 0.0);
    }
    for (name, expected) in [
        ("requests_total", 2.0),
        ("positions_total", 6.0),
        ("batches_total", 1.0),
        ("batch_positions_total", 3.0),
        ("device_seconds_count", 1.0),
        ("queue_seconds_count", 1.0),
        ("not_finite_total", 0.0),
        ("device_failures_total", 0.0),
        ("queue_positions", 0.0),
        ("unread_bytes", 0.0),
        ("cache_positions_total{model=\"latest\",result=\"hit\"}", 3.0),
        // Requests for logits are not looked up in the cache.
        ("cache_positions_total{model=\"latest\",result=\"miss\"}", 3.0),
        ("model_loads_total{result=\"served\"}", 1.0),
        ("model_loads_total{result=\"refused\"}", 1.0),
        ("model_step", 5.0),
        ("provider_info{provider=\"cpu\"}", 1.0),
    ] {
        assert_eq!(figure(name), expected, "{name} in {page:#?}");
    }
    assert!(figure("batch_slots_total") >= 3.0 && figure("device_seconds_sum") > 0.0);
    drop((client, standard));
    server.stop().await;
}
