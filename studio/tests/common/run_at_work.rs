//! The folder of a run that is at work, as `minuet up` leaves it: lock, addresses and figures. The processes are metrics pages, whose
//! text a test sets.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime},
};

use launcher::{
    run::{
        addresses::{Addresses, Member},
        folder::RunFolder,
    },
    watch::{Checkpoint, Summary},
};
use service::role::Role;

/// Processes of the run.
const PROCESSES: [(&str, Role); 4] = [
    ("inference-server", Role::InferenceServer),
    ("replay-store", Role::ReplayStore),
    ("learner", Role::Learner),
    ("actor-1", Role::Actor),
];

/// A run that is at work while the value lives.
pub struct RunAtWork {
    pages: Vec<(&'static str, MetricsPage)>,
    lock: RunFolder,
}

/// A metrics page. `None`: nothing listens any more.
struct MetricsPage {
    address: SocketAddr,
    text: Arc<Mutex<Option<String>>>,
}

impl RunAtWork {
    /// Makes a run of Connect Four in `folder`, which was started two hours ago. Its store is at `replay`.
    pub fn new(folder: &Path, replay: SocketAddr) -> Self {
        Self::serving(folder, replay, "127.0.0.1:1")
    }

    /// Makes such a run whose inference server is at `inference`.
    pub fn serving(folder: &Path, replay: SocketAddr, inference: &str) -> Self {
        let lock = RunFolder::open(folder, Some("connect-four"), &[]).unwrap();
        let pages: Vec<_> = PROCESSES.map(|(name, _)| (name, MetricsPage::new())).into();
        let members = PROCESSES.iter().zip(&pages);
        let addresses = Addresses {
            inference: inference.into(),
            replay: replay.to_string(),
            members: members
                .map(|(&(name, role), (_, page))| Member {
                    name: name.into(),
                    role,
                    metrics: Some(page.address),
                })
                .collect(),
            started_at_ms: now_ms() - 2 * 3_600_000,
        };
        addresses.write(folder).unwrap();
        let run = Self { pages, lock };
        run.record(60.0);
        run
    }

    /// Records figures with a checkpoint of step 200, published `age_seconds` ago.
    pub fn record(&self, age_seconds: f64) {
        let summary = Summary {
            checkpoint: Some(Checkpoint {
                version: "000000000200-8c1f0e2d".into(),
                step: 200,
                age_seconds,
            }),
            ..Summary::default()
        };
        let mut line = serde_json::to_value(summary).unwrap();
        line["event"] = "summary".into();
        line["at_ms"] = now_ms().into();
        let up = self.lock.path().join("up");
        fs::create_dir_all(&up).unwrap();
        fs::write(up.join("now.json"), line.to_string()).unwrap();
    }

    /// Sets the metrics page of a process.
    pub fn set(&self, process: &str, text: &str) {
        *self.page(process).text.lock().unwrap() = Some(text.into());
    }

    /// Ends a process: its page does not answer any more.
    pub fn kill(&self, process: &str) {
        let page = self.page(process);
        *page.text.lock().unwrap() = None;
        // The thread reads the text after each connection.
        drop(TcpStream::connect(page.address));
    }

    fn page(&self, process: &str) -> &MetricsPage {
        let found = self.pages.iter().find(|(name, _)| *name == process);
        &found.expect("a process of the run").1
    }
}

impl MetricsPage {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = Self {
            address: listener.local_addr().unwrap(),
            text: Arc::new(Mutex::new(Some(String::new()))),
        };
        let text = Arc::clone(&page.text);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(text) = text.lock().unwrap().clone() else {
                    return;
                };
                answer(stream.unwrap(), &text);
            }
        });
        page
    }
}

/// Answers one request with the page. A client that has gone is not a fault.
fn answer(mut stream: TcpStream, text: &str) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        request.push(byte[0]);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    drop(stream.write_all(format!("{head}{text}").as_bytes()));
}

/// Present time in milliseconds since the Unix epoch.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_millis() as u64
}
