//! A studio served in the test's own process, and a client that sends exactly what a test writes.

use std::{net::SocketAddr, path::Path};

use launcher::run::folder::RunFolder;
use studio::{app::App, run::Run, server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// A served run.
pub struct Site {
    pub address: SocketAddr,
    pub ending: CancellationToken,
    pub serving: JoinHandle<anyhow::Result<()>>,
    folder: tempfile::TempDir,
}

/// A reply: status, head in lower case, body.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Site {
    /// Serves a new run of Connect Four.
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(RunFolder::open(folder.path(), Some("connect-four"), &[]).unwrap());
        Self::of(folder).await
    }

    /// Serves the run in `folder`.
    pub async fn of(folder: tempfile::TempDir) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ending = CancellationToken::new();
        let app = App::new(Run::open(folder.path()).unwrap(), ending.clone());
        Self {
            address,
            ending,
            serving: tokio::spawn(server::serve(listener, app)),
            folder,
        }
    }

    /// Folder of the run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a connection and writes `head`, which lacks only the empty line at its end.
    pub async fn open(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("{}\r\n\r\n", head.trim().replace('\n', "\r\n"));
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Sends `head` and reads the reply to its end.
    pub async fn send(&self, head: &str) -> Reply {
        self.send_with(head, "").await
    }

    /// Sends `head` and `body`, and reads the reply to its end.
    pub async fn send_with(&self, head: &str, body: &str) -> Reply {
        let mut stream = self.open(&format!("{}\nConnection: close", head.trim())).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            body: body.into(),
        }
    }

    /// Fetches a path as a browser on this machine does.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1\nHost: {}", self.address))
            .await
    }
}
