//! [`Process`]: the server as a process of its own, with its own memory and arguments.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::common::{Store, described};

/// A server process, killed when dropped.
pub struct Process {
    child: Child,
    pub address: String,
    metrics: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts the server on free ports, with the plain CPU provider and more `arguments`.
    pub fn start(store: &Store, arguments: &[&str]) -> Self {
        let [address, metrics] = [(); 2].map(|()| {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().to_string()
        });
        let settings = [
            format!("inference.address={address}"),
            format!("inference.metrics={metrics}"),
            format!("checkpoints.store={}", store.folder.path().display()),
            "game.options=0".into(),
            "inference.provider=cpu".into(),
            "inference.max_batch=16".into(),
            "inference.max_queue=512".into(),
        ];
        let child = Command::new(env!("CARGO_BIN_EXE_minuet-inference-server"))
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .args(arguments)
            .arg("--supervised")
            .env_remove("MINUET_CONFIG")
            // Freed memory returns to the system at once, so that the process is not larger than what it holds.
            .env("MALLOC_ARENA_MAX", "1")
            .env("MALLOC_MMAP_THRESHOLD_", "65536")
            .env("MALLOC_TRIM_THRESHOLD_", "65536")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            metrics,
        }
    }

    /// Returns the resident memory, in bytes.
    pub fn memory(&self) -> f64 {
        service::process::usage(self.child.id()).unwrap().resident_bytes as f64
    }

    /// Returns the values of the metrics page, without labels.
    pub async fn page(&self) -> BTreeMap<String, f64> {
        let mut stream = TcpStream::connect(&self.metrics).await.unwrap();
        let asked = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        let figures = page.lines().filter_map(|line| line.split_once(' '));
        figures
            .filter_map(|(name, figure)| Some((name.to_owned(), figure.trim().parse().ok()?)))
            .collect()
    }

    /// Waits until the server has a model.
    pub async fn ready(&self) {
        self.has_tried("").await;
    }

    /// Waits until the server has loaded or refused the model of a name.
    pub async fn has_tried(&self, name: &str) {
        let _ = described(&self.address, name).await;
    }

    /// Sends SIGTERM to the server.
    pub fn terminate(&self) {
        let mut kill = Command::new("kill");
        kill.arg("-TERM").arg(self.child.id().to_string());
        assert!(kill.status().unwrap().success());
    }

    /// Stops the server and waits for its end.
    pub async fn stop(mut self) {
        drop(self.child.stdin.take());
        self.end().await;
    }

    /// Waits for the end of the server. Panics if it fails.
    pub async fn end(mut self) {
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap());
        assert!(ended.await.unwrap().success());
    }
}
