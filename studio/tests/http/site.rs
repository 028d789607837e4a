//! A studio served in the test's own process, and a client that sends exactly what a test writes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
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
        Self::of_new("connect-four", &[]).await
    }

    /// Serves a new run of a game with these settings.
    pub async fn of_new(game: &str, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        new_run(folder.path(), game, settings);
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
        let door = Door::at(bound, &app.run.config.security, &[]).unwrap();
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

    /// Opens a stream of events.
    pub async fn events(&self, path: &str) -> Events {
        Events {
            stream: self
                .open(&format!("GET {path} HTTP/1.1\nHost: {}", self.address))
                .await,
            text: String::new(),
        }
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
        self.post_as(path, "", body).await
    }

    /// Posts JSON with the header `cookie`.
    pub async fn post_as(&self, path: &str, cookie: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\nHost: {}\nSec-Fetch-Site: same-origin\nContent-Type: application/json\nContent-Length: {}\n{cookie}",
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

/// Makes a new run of a game with these settings.
pub fn new_run(folder: &Path, game: &str, settings: &[&str]) {
    let settings: Vec<config::Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
    drop(RunFolder::open(folder, Some(game), &settings).unwrap());
}

/// A stream of events.
pub struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// Reads the next event.
    pub async fn next(&mut self) -> Value {
        let Self { stream, text } = self;
        loop {
            if let Some(at) = text.find("data: ") {
                let rest = text[at + 6..].to_owned();
                if let Some((data, after)) = rest.split_once("\n\n") {
                    // A chunk of the body may end within an event; its length is on a line of its own.
                    let data: String = data.split("\r\n").step_by(2).collect();
                    *text = after.to_owned();
                    return serde_json::from_str(&data).unwrap();
                }
            }
            // A read may end within a letter of several bytes.
            let mut bytes = Vec::new();
            while bytes.is_empty() || std::str::from_utf8(&bytes).is_err() {
                let length = stream.read_buf(&mut bytes).await.unwrap();
                assert!(length > 0, "the stream ended: {text}");
            }
            text.push_str(&String::from_utf8(bytes).unwrap());
        }
    }

    /// Reads events until the text of a slot has these words, for a minute at most.
    pub async fn says(&mut self, slot: &str, words: &str) -> Value {
        self.find(|event| event[slot].as_str().is_some_and(|text| text.contains(words)))
            .await
    }

    /// Reads events until one is as `is_wanted` says, for a minute at most.
    pub async fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                last = self.next().await;
                if is_wanted(&last) {
                    return last.clone();
                }
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("no such event came within a minute; the last one: {last}"),
        }
    }
}
