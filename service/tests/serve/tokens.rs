//! Tests of tokens over real sockets: which calls they allow, and what happens when their files change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use config::SecurityConfig;
use service::connect::{self, Link, balance::SystemResolver};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use crate::{
    Behind, NAME, RENEWAL, TIMEOUT, behind, check, connector, pki::Authority, replace, until, until_ok,
};

const OLD: &str = "0123456789abcdef";
const NEW: &str = "fedcba9876543210";

fn services() -> ServerReflectionRequest {
    ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    }
}

/// Makes a call that needs a token.
async fn reflect(link: &Link) -> Result<(), Code> {
    let mut client = ServerReflectionClient::new(link.clone());
    let replies = client
        .server_reflection_info(tokio_stream::once(services()))
        .await;
    let reply = match replies {
        Ok(replies) => replies.into_inner().message().await,
        Err(status) => Err(status),
    };
    reply.map(drop).map_err(|status| status.code())
}

/// A stream of calls that stays open.
struct Open {
    requests: mpsc::Sender<ServerReflectionRequest>,
    replies: Streaming<ServerReflectionResponse>,
}

impl Open {
    async fn new(link: &Link) -> Result<Self, Status> {
        let (requests, outbound) = mpsc::channel(1);
        let mut client = ServerReflectionClient::new(link.clone());
        let replies = client
            .server_reflection_info(ReceiverStream::new(outbound))
            .await?
            .into_inner();
        Ok(Self { requests, replies })
    }

    async fn ask(&mut self) -> Result<(), Status> {
        self.requests.send(services()).await.unwrap();
        self.replies.message().await.map(drop)
    }

    /// Waits for the end of the stream, and of what the client sends.
    async fn end(mut self) -> Status {
        let ended = async {
            let status = self.replies.message().await.unwrap_err();
            self.requests.closed().await;
            status
        };
        tokio::time::timeout(TIMEOUT, ended).await.unwrap()
    }
}

/// A folder with a server's file of tokens, and with the files of clients.
struct Files(tempfile::TempDir);

impl Files {
    /// Makes a file of tokens with these lines.
    fn new(lines: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        replace(&files.tokens(), lines);
        files
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn tokens(&self) -> PathBuf {
        self.path().join("tokens")
    }

    async fn server(&self, security: SecurityConfig) -> Behind {
        let security = SecurityConfig {
            tokens: self.tokens(),
            ..security
        };
        behind(&security, NAME).await
    }

    /// Makes a client with a token in the file `name`, which it reads again for each call.
    fn client(&self, name: &str, token: &str, server: &Behind, security: SecurityConfig) -> Link {
        let file = self.path().join(name);
        replace(&file, token);
        let security = SecurityConfig {
            token: file,
            ..security
        };
        connector(&security, Arc::new(SystemResolver))
            .link(&server.address)
            .unwrap()
    }
}

#[tokio::test]
async fn a_token_from_a_file_is_accepted_until_it_is_removed() {
    let files = Files::new(&format!("actors evaluate {OLD}\n"));
    let server = files.server(SecurityConfig::default()).await;
    let client = |name, token: &str| files.client(name, token, &server, SecurityConfig::default());
    let right = client("right", &format!("{OLD}\n"));
    let wrong = client("wrong", NEW);
    let without = connect::link(&server.address, &SecurityConfig::default()).unwrap();
    assert_eq!(reflect(&right).await, Ok(()));
    assert_eq!(reflect(&wrong).await, Err(Code::Unauthenticated));
    assert_eq!(reflect(&without).await, Err(Code::Unauthenticated));
    for link in [&right, &wrong, &without] {
        check(link, NAME).await.unwrap();
    }
    replace(&files.tokens(), &format!("actors evaluate {NEW}\n"));
    until_ok(|| reflect(&wrong)).await;
    assert_eq!(reflect(&right).await, Err(Code::Unauthenticated));

    let two_words = SecurityConfig {
        token: files.path().join("two words"),
        ..SecurityConfig::default()
    };
    replace(&two_words.token, "two words");
    let refused = connect::link(&server.address, &two_words)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("one token and nothing else"), "{refused}");
}

#[tokio::test]
async fn a_file_of_tokens_that_cannot_be_used_locks_out_until_it_is_mended() {
    let lines = format!("actors evaluate {OLD}\n");
    let files = Files::new(&lines);
    let server = files.server(SecurityConfig::default()).await;
    let link = files.client("token", OLD, &server, SecurityConfig::default());
    for broken in [Some(""), Some("# nobody\n"), Some("actors evaluate\n"), None] {
        until_ok(|| reflect(&link)).await;
        match broken {
            Some(text) => replace(&files.tokens(), text),
            None => std::fs::remove_file(files.tokens()).unwrap(),
        }
        // A client would take UNAUTHENTICATED as final.
        let others = until(Err(Code::Unavailable), || reflect(&link)).await;
        assert!(others.iter().all(|ended| ended.is_ok()), "{broken:?}: {others:?}");
        check(&link, NAME).await.unwrap();
        replace(&files.tokens(), &lines);
    }
    until_ok(|| reflect(&link)).await;
}

#[tokio::test]
async fn tokens_are_read_again_while_the_certificate_cannot_be_read() {
    let files = Files::new(&format!("actors evaluate {OLD}\n"));
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(files.path(), "server", "127.0.0.1");
    let server = files
        .server(SecurityConfig {
            certificate: certificate.clone(),
            key,
            ..SecurityConfig::default()
        })
        .await;
    let trusting = SecurityConfig {
        ca: ours.write(files.path(), "ours.pem"),
        ..SecurityConfig::default()
    };
    let link = files.client("token", OLD, &server, trusting);
    until_ok(|| reflect(&link)).await;
    replace(&certificate, "no certificate");
    replace(&files.tokens(), &format!("actors evaluate {NEW}\n"));
    until(Err(Code::Unauthenticated), || reflect(&link)).await;
}

#[tokio::test]
async fn an_open_stream_ends_with_its_token_and_the_streams_of_others_do_not() {
    let learner_alone = format!("learner sample {NEW}\n");
    let files = Files::new(&format!("actors evaluate {OLD}\n{learner_alone}"));
    let server = files.server(SecurityConfig::default()).await;
    let client = |name, token| files.client(name, token, &server, SecurityConfig::default());
    let mut actor = Open::new(&client("actor", OLD)).await.unwrap();
    let mut learner = Open::new(&client("learner", NEW)).await.unwrap();
    actor.ask().await.unwrap();
    learner.ask().await.unwrap();

    replace(&files.tokens(), &learner_alone);
    let status = actor.end().await;
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status.message().contains("the token is not known here"),
        "{status:?}"
    );
    learner.ask().await.unwrap();
    replace(&files.tokens(), "");
    assert_eq!(learner.end().await.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_token_replaced_in_the_right_order_is_never_refused() {
    let files = Files::new(&format!("actors evaluate {OLD}\n"));
    let server = files.server(SecurityConfig::default()).await;
    let client = |name, token| files.client(name, token, &server, SecurityConfig::default());
    let actor = client("actor", OLD);
    let mut stream = Open::new(&actor).await.unwrap();
    stream.ask().await.unwrap();

    // First the server knows both.
    replace(
        &files.tokens(),
        &format!("actors evaluate {OLD}\nactors evaluate {NEW}\n"),
    );
    let other = client("other", NEW);
    until_ok(|| reflect(&other)).await;
    // Then the client changes.
    replace(&files.path().join("actor"), NEW);
    tokio::time::sleep(2 * RENEWAL).await;
    assert_eq!(reflect(&actor).await, Ok(()));
    stream.ask().await.unwrap();
    // Then the server forgets the old one, with which the stream was opened. Clients repeat a call that was UNAVAILABLE.
    replace(&files.tokens(), &format!("actors evaluate {NEW}\n"));
    assert_eq!(stream.end().await.code(), Code::Unavailable);
    Open::new(&actor).await.unwrap().ask().await.unwrap();
}

#[tokio::test]
async fn a_client_keeps_its_token_while_the_file_cannot_be_read() {
    let files = Files::new(&format!("actors evaluate {OLD}\n"));
    let server = files.server(SecurityConfig::default()).await;
    let link = files.client("actor", OLD, &server, SecurityConfig::default());
    replace(&files.path().join("actor"), "");
    tokio::time::sleep(2 * RENEWAL).await;
    assert_eq!(reflect(&link).await, Ok(()));
}
