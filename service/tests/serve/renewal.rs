//! Tests of certificates and authorities that are replaced while servers and clients run.

use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use config::SecurityConfig;
use parking_lot::Mutex;
use service::{
    connect::{Link, balance::SystemResolver},
    listener::ConnectionPolicy,
    serve,
};
use tonic::Code;
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    Behind, NAME, RENEWAL, TIMEOUT, about, any_token, behind, check, connector, pki::Authority, replace,
    serve_on, until_ok,
};

/// Host name in the certificates of servers.
const HOST: &str = "server.test";

/// Files of a server and of a client with mutual TLS, in one folder.
struct Files {
    folder: tempfile::TempDir,
    server: SecurityConfig,
    client: SecurityConfig,
}

impl Files {
    /// Makes certificates that `authority` signed; that of the client ends with `year`.
    fn new(authority: &Authority, year: i32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (certificate, key) = authority.sign(path, "server", HOST);
        let (client_certificate, client_key) = authority.sign_until(path, "client", "actor", year);
        let server = SecurityConfig {
            certificate,
            key,
            client_ca: authority.write(path, "client_ca.pem"),
            ..SecurityConfig::default()
        };
        let client = SecurityConfig {
            ca: authority.write(path, "ca.pem"),
            client_certificate,
            client_key,
            server_name: HOST.into(),
            ..SecurityConfig::default()
        };
        Self {
            folder,
            server,
            client,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn link(&self, address: &str) -> Link {
        connector(&self.client, Arc::new(SystemResolver))
            .link(address)
            .unwrap()
    }
}

async fn call(link: &Link) -> Result<(), Code> {
    check(link, NAME).await.map_err(|status| status.code())
}

/// Returns the server's address, and a name for it.
fn addresses(server: &Behind) -> [String; 2] {
    let port = server.address.rsplit(':').next().unwrap();
    [server.address.clone(), format!("localhost:{port}")]
}

#[tokio::test]
async fn a_client_goes_on_with_a_renewed_certificate() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours, 2020);
    let server = behind(&files.server, NAME).await;
    let links = addresses(&server).map(|address| files.link(&address));
    for link in &links {
        assert!(call(link).await.is_err());
    }
    // The certificate is replaced before its key, so for a moment they do not belong together.
    let other = tempfile::tempdir().unwrap();
    let (certificate, key) = ours.sign(other.path(), "client", "actor");
    for (file, replaced) in [
        (&certificate, &files.client.client_certificate),
        (&key, &files.client.client_key),
    ] {
        replace(replaced, &std::fs::read_to_string(file).unwrap());
        tokio::time::sleep(2 * RENEWAL).await;
    }
    for link in &links {
        until_ok(|| call(link)).await;
    }
}

#[tokio::test]
async fn server_and_client_go_on_when_the_authority_is_replaced() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = Files::new(&ours, 2999);
    let server = behind(&files.server, NAME).await;
    let links = addresses(&server).map(|address| files.link(&address));
    let mut open = Vec::new();
    for link in &links {
        until_ok(|| call(link)).await;
        let mut watched = HealthClient::new(link.clone())
            .watch(about(NAME))
            .await
            .unwrap()
            .into_inner();
        let first = watched.message().await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::Serving);
        open.push(watched);
    }

    theirs.sign(files.path(), "server", HOST);
    theirs.sign(files.path(), "client", "actor");
    theirs.write(files.path(), "client_ca.pem");
    theirs.write(files.path(), "ca.pem");
    // A client that trusts the new authority alone shows that the server uses it.
    let fresh = files.link(&server.address);
    until_ok(|| call(&fresh)).await;
    // Open calls continue on the old connections.
    server.health.set_serving(false).await;
    for mut watched in open {
        let second = tokio::time::timeout(TIMEOUT, watched.message()).await.unwrap();
        assert_eq!(second.unwrap().unwrap().status(), ServingStatus::NotServing);
    }
    // Without those connections, only a client that trusts the new authority reaches the server.
    server.shutdown.cancel();
    let policy = ConnectionPolicy::new(&files.server, any_token).unwrap();
    let again = async {
        loop {
            match serve::listen(&server.address).await {
                Ok(listener) => return listener,
                Err(_) => tokio::time::sleep(RENEWAL).await,
            }
        }
    };
    let listener = tokio::time::timeout(TIMEOUT, again).await.unwrap();
    let _server = serve_on(listener, policy, NAME, Duration::ZERO).await;
    for link in &links {
        until_ok(|| call(link)).await;
    }
}

/// Log lines of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn count(&self, text: &str) -> usize {
        let bytes = self.0.lock();
        let log = String::from_utf8_lossy(&bytes);
        log.lines().filter(|line| line.contains(text)).count()
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing_and_are_logged_once_a_minute() {
    const LINE: &str = "cannot renew certificates";
    let ours = Authority::new("ours");
    let files = Files::new(&ours, 2999);
    let server = behind(
        &SecurityConfig {
            client_ca: ours.write(files.path(), "other_ca.pem"),
            ..files.server.clone()
        },
        NAME,
    )
    .await;
    let link = files.link(&server.address);
    until_ok(|| call(&link)).await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    let _subscribed = tracing::subscriber::set_default(subscriber);
    let began = Instant::now();
    replace(&files.client.ca, "no certificate");
    let logged = async {
        while log.count(LINE) == 0 {
            tokio::time::sleep(RENEWAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, logged).await.unwrap();
    // Time for further lines.
    tokio::time::sleep(20 * RENEWAL).await;
    assert_eq!(call(&link).await, Ok(()));
    let allowed = 1 + began.elapsed().as_secs() as usize / 60;
    assert!(log.count(LINE) <= allowed, "{}", log.count(LINE));
    assert_eq!(log.count("renewed"), 0);
    ours.write(files.path(), "ca.pem");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(call(&link).await, Ok(()));
}

#[tokio::test]
async fn a_server_goes_on_with_a_renewed_certificate() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours, 2999);
    ours.sign_until(files.path(), "server", HOST, 2020);
    let server = behind(&files.server, NAME).await;
    let link = files.link(&server.address);
    assert_eq!(call(&link).await, Err(Code::Unavailable));
    ours.sign(files.path(), "server", HOST);
    until_ok(|| call(&link)).await;
}

#[tokio::test]
async fn an_expired_certificate_does_not_replace_a_valid_one() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours, 2999);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    // The server's log lines come from other threads.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let server = behind(&files.server, NAME).await;
    let link = files.link(&server.address);
    until_ok(|| call(&link)).await;
    ours.sign_until(files.path(), "server", HOST, 2020);
    ours.sign_until(files.path(), "client", "actor", 2020);
    let logged = async {
        while ["server.pem", "client.pem"]
            .iter()
            .any(|file| log.count(&format!("{file} (")) == 0)
        {
            tokio::time::sleep(RENEWAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, logged).await.unwrap();
    assert_eq!(log.count("the certificate expired on 2020-01-01"), 2);
    let (client_certificate, client_key) = ours.sign(files.path(), "fresh", "actor");
    let fresh = SecurityConfig {
        client_certificate,
        client_key,
        ..files.client.clone()
    };
    let fresh = connector(&fresh, Arc::new(SystemResolver)).link(&server.address);
    until_ok(|| call(fresh.as_ref().unwrap())).await;
    assert_eq!(call(&link).await, Ok(()));
}
