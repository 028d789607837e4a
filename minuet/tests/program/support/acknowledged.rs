//! [`Acknowledged`]: the games that the actors of a run wrote down as acknowledged, and [`Stored`]: the games in the store of the
//! stopped run.
//!
//! A kept promise means that every acknowledged game is stored exactly once, with the contents that the actor sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use prost::Message as _;
use proto::{ids::hex, v1::Game};
use replay_store::{error::Loss, record::filter::Filter, settings::Settings, store::Store};
use sha2::{Digest as _, Sha256};

/// Variable of a run whose actors log the ids and digests of the games that they send, and the ids of acknowledged games.
pub const LOGGING: (&str, &str) = ("MINUET_LOG", "info,actor::spool::sender=debug");

/// Longest wait for an acknowledgement.
#[allow(dead_code, reason = "each test uses some of it")]
const TIMEOUT: Duration = Duration::from_secs(300);

/// The games in the logs of a run's actors. Ids and digests are hexadecimal digits.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// SHA-256 of each game that was sent.
    sent: BTreeMap<String, String>,
    /// Games that the store has acknowledged.
    pub ids: BTreeSet<String>,
}

#[allow(dead_code, reason = "each test uses some of it")]
impl Acknowledged {
    /// Adds the games in the logs of all actors in the run's folder.
    pub fn read(&mut self, folder: &Path) {
        for log in fs::read_dir(folder.join("logs")).unwrap().flatten() {
            if !log.file_name().to_string_lossy().starts_with("actor") {
                continue;
            }
            let text = fs::read(log.path()).unwrap();
            // A line without its end is still being written.
            let lines = text.split_inclusive(|&byte| byte == b'\n');
            for line in lines.filter(|line| line.ends_with(b"\n")) {
                self.read_line(&String::from_utf8_lossy(line));
            }
        }
    }

    fn read_line(&mut self, line: &str) {
        let field = |name: &str| {
            let (_, value) = line.split_once(&format!(" {name}="))?;
            value.split_whitespace().next().map(str::to_owned)
        };
        if line.contains(" a game is sent ") {
            let (id, digest) = (field("game").unwrap(), field("sha256").unwrap());
            let same = self.sent.entry(id.clone()).or_insert_with(|| digest.clone());
            assert_eq!(*same, digest, "game {id} was sent with two contents");
        } else if line.contains(" a game is acknowledged ") {
            self.ids.insert(field("game").unwrap());
        }
    }

    /// Waits until more games are acknowledged than were read so far.
    pub fn wait_for_more(&mut self, folder: &Path) {
        let (before, deadline) = (self.ids.len(), Instant::now() + TIMEOUT);
        while self.ids.len() == before {
            assert!(Instant::now() < deadline, "no game is acknowledged");
            std::thread::sleep(Duration::from_millis(1));
            self.read(folder);
        }
    }

    /// Returns the acknowledged games that are not among the ids of `stored` games.
    pub fn missing(&self, stored: &BTreeSet<Vec<u8>>) -> Vec<String> {
        let stored: BTreeSet<String> = stored.iter().map(|id| hex(id)).collect();
        self.ids.difference(&stored).cloned().collect()
    }

    /// Returns the acknowledged games that `stored` does not have. Panics if it has one with other contents than the actor sent.
    pub fn missing_in(&self, stored: &Stored) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for id in &self.ids {
            match stored.digests.get(id) {
                Some(digest) => assert_eq!(Some(digest), self.sent.get(id), "game {id} was changed"),
                None => {
                    missing.insert(id.clone());
                }
            }
        }
        missing
    }
}

/// The contents of the store of a stopped run.
#[derive(Debug)]
#[allow(dead_code, reason = "each test uses some of it")]
pub struct Stored {
    /// SHA-256 of each game, by id.
    pub digests: BTreeMap<String, String>,
    /// Ids in the order in which the store took the games.
    pub in_order: Vec<String>,
    /// Versions of the models that evaluated positions of each game, in the order of `in_order`.
    pub versions: Vec<Vec<String>>,
    /// Number of positions that can be trained on.
    pub trainable: u64,
    /// Number of trainable positions in the store's own count of insertions.
    pub inserted: u64,
    /// Ids of the games that the store reports as damaged; `None` for a game whose id is not known.
    pub damaged: Vec<Option<String>>,
}

impl Stored {
    /// Reads the store in a run's folder. Panics if a game is stored twice.
    pub fn read(folder: &Path) -> Self {
        let config = config::load(&folder.join("run.toml")).unwrap();
        let settings = Settings {
            folder: folder.join("replay"),
            ..Settings::from_config(&config)
        };
        let store = Store::open_to_read(settings).unwrap();
        let (mut digests, mut trainable) = (BTreeMap::new(), 0);
        let (mut in_order, mut versions) = (Vec::new(), Vec::new());
        for summary in store.list(0, usize::MAX, false, &Filter::default()) {
            let id: [u8; 16] = summary.id.as_ref().try_into().unwrap();
            let game = store.get(&id).unwrap();
            trainable += game.visit_counts.iter().filter(|&&count| count > 0).count() as u64;
            versions.push(game.model_versions.clone());
            in_order.push(hex(&id));
            let before = digests.insert(hex(&id), digest(&game));
            assert_eq!(before, None, "game {} is stored twice", hex(&id));
        }
        let id = |loss: &Loss| loss.id.map(|id| hex(&id));
        Self {
            digests,
            in_order,
            versions,
            trainable,
            inserted: store.stats().positions_inserted,
            damaged: store.losses().iter().map(id).collect(),
        }
    }
}

fn digest(game: &Game) -> String {
    format!("{:x}", Sha256::digest(game.encode_to_vec()))
}
