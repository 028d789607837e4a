//! Tokens and their rights at both protocols, and reflection of both.

use std::path::{Path, PathBuf};

use config::SecurityConfig;
use proto::{
    inference::{
        ModelInferRequest, RepositoryIndexRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
    },
    v1::{DescribeModelRequest, evaluator_client::EvaluatorClient},
};
use service::connect::{self, Link};
use tonic::Code;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::common::{Server, Store, published, request, until};

const TOKENS: &str = "\
actor    evaluate,append  actor-0123456789abcdef
learner  sample           learner-0123456789abcdef
person   administer       person-0123456789abcdef
";

/// Connects with the token of `who`.
fn link(server: &Server, folder: &Path, who: &str) -> Link {
    let token = folder.join(who);
    std::fs::write(&token, format!("{who}-0123456789abcdef\n")).unwrap();
    let security = SecurityConfig {
        token: if who == "nobody" { PathBuf::new() } else { token },
        ..SecurityConfig::default()
    };
    connect::link(&server.address, &security).unwrap()
}

#[tokio::test]
async fn each_right_admits_its_methods_and_no_others() {
    let (store, layout, _, version) = published().await;
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, TOKENS).unwrap();
    let server = Server::start(&store, |config| config.security.tokens = tokens).await;
    let mut client = EvaluatorClient::new(link(&server, folder.path(), "person"));
    until(async || {
        client
            .describe_model(DescribeModelRequest::default())
            .await
            .is_ok()
    })
    .await;
    drop(client);

    let (ok, denied, unknown) = (Code::Ok, Code::PermissionDenied, Code::Unauthenticated);
    for (who, expected) in [
        ("actor", ok),
        ("learner", denied),
        ("person", ok),
        ("stranger", unknown),
        ("nobody", unknown),
    ] {
        let link = link(&server, folder.path(), who);
        let code = |status: Result<(), tonic::Status>| status.map_or_else(|status| status.code(), |()| ok);
        let mut evaluator = EvaluatorClient::new(link.clone());
        let answered = evaluator.evaluate(request(&layout, 1, 2, 3)).await.map(|reply| {
            assert_eq!(reply.into_inner().version, version.as_str());
        });
        assert_eq!(code(answered), expected, "{who}");
        let mut kserve = GrpcInferenceServiceClient::new(link);
        let refused = kserve
            .model_infer(ModelInferRequest::default())
            .await
            .unwrap_err()
            .code();
        let open = if expected == ok {
            Code::InvalidArgument
        } else {
            expected
        };
        assert_eq!(refused, open, "{who}");
        let listed = kserve
            .repository_index(RepositoryIndexRequest::default())
            .await
            .map(drop);
        assert_eq!(code(listed), expected, "{who}");
    }
    server.stop().await;
}

#[tokio::test]
async fn reflection_lists_the_services_of_this_role() {
    let server = Server::start(&Store::new(), |_| {}).await;
    let mut client = ServerReflectionClient::new(connect::channel(&server.address).unwrap());
    let ask = |message| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message),
    };
    let asked = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(
            "inference.GRPCInferenceService".into(),
        )),
    ];
    let replies = client.server_reflection_info(tokio_stream::iter(asked)).await;
    let mut replies = replies.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) =
        replies.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list");
    };
    let mut names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    let expected = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "inference.GRPCInferenceService",
        "minuet.v1.Evaluator",
    ];
    assert_eq!(names, expected);
    let described = replies.message().await.unwrap().unwrap().message_response;
    assert!(
        matches!(&described, Some(MessageResponse::FileDescriptorResponse(files)) if !files.file_descriptor_proto.is_empty()),
        "{described:?}"
    );
    drop((client, replies));
    server.stop().await;
}
