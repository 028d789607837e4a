//! S3-compatible server as a child process, and a connection to it that can be cut.
#![allow(dead_code, missing_docs)]

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

use checkpoints::Repository;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub const BUCKET: &str = "checkpoints";

/// Returns the interpreter that has the server's package. If there is none, prints a message and returns `None`.
pub fn python() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| test_support::python("objects")).as_deref()
}

pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    pub fn start(python: &Path, arguments: &[&str]) -> Self {
        // Tests of other crates use this file as well.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/tests/common/s3_server.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            port: line.trim().parse().unwrap(),
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the port of one server for all tests of a process, which ends with the process. Returns `None` if there is no server.
pub fn shared() -> Option<u16> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED
        .get_or_init(|| python().map(|python| Server::start(python, &[])))
        .as_ref()
        .map(|server| server.port)
}

/// Returns the repository below `prefix` of the server at this port.
pub fn repository(port: u16, prefix: &str) -> Repository {
    let url = format!("s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{port}&allow_http=true");
    Repository::open_with(&url, credentials()).unwrap()
}

pub fn credentials() -> Vec<(String, String)> {
    [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// Proxy to the server. After a given number of bytes towards the server it cuts all connections, and refuses new ones.
pub struct Line {
    pub port: u16,
    left: Arc<AtomicI64>,
    accepting: JoinHandle<()>,
}

impl Line {
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let accepting = tokio::spawn({
            let left = left.clone();
            async move {
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    if left.load(Ordering::SeqCst) > 0 {
                        tokio::spawn(carry(client, server, left.clone()));
                    }
                }
            }
        });
        Self {
            port,
            left,
            accepting,
        }
    }

    pub fn cut_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    pub fn repair(&self) {
        self.left.store(i64::MAX, Ordering::SeqCst);
    }

    pub fn is_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, server: u16, left: Arc<AtomicI64>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    let (mut from_server, mut to_server) = server.split();
    let (mut from_client, mut to_client) = client.split();
    let there = async {
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let before = left.fetch_sub(count as i64, Ordering::SeqCst);
            let passing = usize::try_from(before).unwrap_or(0).min(count);
            if to_server.write_all(&buffer[..passing]).await.is_err() || passing < count {
                return;
            }
        }
    };
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! {
        () = there => {}
        _ = back => {}
    }
}
