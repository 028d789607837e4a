//! A studio served in the test's own process, and a client that sends exactly what a test writes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use launcher::run::folder::RunFolder;
use serde_json::Value;
use studio::{app::App, run::Run, security::door::Door, server};
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

    /// Serves a new run of the generator game.
    pub async fn with_problems() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(RunFolder::open(folder.path(), Some("generator"), &[]).unwrap());
        Self::of(folder).await
    }

    /// Serves the run in `folder`.
    pub async fn of(folder: tempfile::TempDir) -> Self {
        let run = folder.path().to_owned();
        Self::serve(Ipv4Addr::LOCALHOST, folder, &run).await
    }

    /// Serves the run in the folder `run`, which is within `folder`.
    pub async fn within(folder: tempfile::TempDir, run: &Path) -> Self {
        Self::serve(Ipv4Addr::LOCALHOST, folder, run).await
    }

    /// Serves the run in `folder` on an address, and asks it from this machine.
    pub async fn at(listen: Ipv4Addr, folder: tempfile::TempDir) -> Self {
        let run = folder.path().to_owned();
        Self::serve(listen, folder, &run).await
    }

    async fn serve(listen: Ipv4Addr, folder: tempfile::TempDir, run: &Path) -> Self {
        let listener = TcpListener::bind((listen, 0)).await.unwrap();
        let bound = listener.local_addr().unwrap();
        let ending = CancellationToken::new();
        let app = App::new(Run::open(run).unwrap(), ending.clone());
        let door = Door::at(bound, &app.run().config.security, &[]).unwrap();
        Self {
            address: (Ipv4Addr::LOCALHOST, bound.port()).into(),
            ending,
            serving: tokio::spawn(server::serve(listener, app, door)),
            folder,
        }
    }

    /// Folder of the run, or of all runs.
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

    /// Posts the fields of a form as a browser does.
    pub async fn submit(&self, path: &str, fields: &str) -> Reply {
        let head = format!(
            "POST {path} HTTP/1.1\nHost: {0}\nOrigin: http://{0}\nContent-Type: application/x-www-form-urlencoded\nContent-Length: {1}",
            self.address,
            fields.len()
        );
        self.send_with(&head, fields).await
    }

    /// Posts JSON as a script of a page does.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\nHost: {}\nSec-Fetch-Site: same-origin\nContent-Type: application/json\nContent-Length: {}",
            self.address,
            body.len()
        );
        self.send_with(&head, &body).await
    }

    /// Begins a game and returns the id of its table.
    pub async fn table(&self, game: &Value) -> String {
        let reply = self.post("/play/tables", game).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        answer["table"].as_str().unwrap().into()
    }

    /// Fetches a path as a browser on this machine does.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1\nHost: {}", self.address))
            .await
    }
}

/// Address that a reply leads to, in lower case.
pub fn location(reply: &Reply) -> String {
    assert_eq!(reply.status, 303, "{}", reply.body);
    let line = reply
        .head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    line.unwrap().trim().to_owned()
}
