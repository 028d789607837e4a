//! Tests of tokens over real sockets.

use config::SecurityConfig;
use service::connect::{self, Link};
use tonic::Code;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use crate::{NAME, behind, check};

/// A call that needs a token.
async fn reflect(link: &Link) -> Result<(), Code> {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(link.clone());
    let replies = client.server_reflection_info(tokio_stream::once(request)).await;
    let reply = match replies {
        Ok(replies) => replies.into_inner().message().await,
        Err(status) => Err(status),
    };
    reply.map(drop).map_err(|status| status.code())
}

#[tokio::test]
async fn a_token_from_a_file_is_accepted_until_it_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "actors evaluate 0123456789abcdef\n").unwrap();
    let server = SecurityConfig {
        tokens: tokens.clone(),
        ..SecurityConfig::default()
    };
    let server = behind(&server, NAME).await;
    let holding = |token: &str| {
        let file = folder.path().join(format!("token {}", token.trim()));
        std::fs::write(&file, token).unwrap();
        let client = SecurityConfig {
            token: file,
            ..SecurityConfig::default()
        };
        connect::link(&server.address, &client)
    };
    let right = holding("0123456789abcdef\n").unwrap();
    let wrong = holding("fedcba9876543210").unwrap();
    let without = connect::link(&server.address, &SecurityConfig::default()).unwrap();
    assert_eq!(reflect(&right).await, Ok(()));
    assert_eq!(reflect(&wrong).await, Err(Code::Unauthenticated));
    assert_eq!(reflect(&without).await, Err(Code::Unauthenticated));
    for link in [&right, &wrong, &without] {
        check(link, NAME).await.unwrap();
    }

    std::fs::write(&tokens, "actors evaluate\n").unwrap();
    let refused = server.policy.read_again().unwrap_err().to_string();
    assert!(refused.contains("line 1: 2 words"), "{refused}");
    assert_eq!(reflect(&right).await, Ok(()));
    std::fs::write(&tokens, "actors evaluate fedcba9876543210\n").unwrap();
    server.policy.read_again().unwrap();
    assert_eq!(reflect(&right).await, Err(Code::Unauthenticated));
    assert_eq!(reflect(&wrong).await, Ok(()));

    let refused = holding("two words").unwrap_err().to_string();
    assert!(refused.contains("one token and nothing else"), "{refused}");
}
