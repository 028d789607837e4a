//! Unique names of actors and games.
//!
//! The id of a game is ten bytes of the SHA-256 of (run seed, actor name, incarnation), followed by the number of the game within
//! the actor (six bytes, big-endian). The *incarnation* is 16 random bytes, drawn at each start and kept in memory only. So two
//! actors of the same name, an actor that lost its folder, and one whose folder was copied or restored from a backup, never give the
//! same id to two games. Numbers are reserved in blocks, durably, before the first number of a block is used. An actor that is killed
//! skips the rest of its block, but never gives one number to two games.
//!
//! An identity file may name an incarnation ([`Naming::fix_incarnation`]). With it, tests and the laboratory play the
//! same games twice. An actor does not write one.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use parking_lot::Mutex;
use search::GameKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Numbers that one write reserves.
const BLOCK: u64 = 256;
/// Number of different game numbers: an id has six bytes for it.
const NUMBERS: u64 = 1 << 48;
const FILE: &str = "identity.json";

/// Version of the identity file.
const FORMAT: u32 = 2;

/// The identity of the actor that owns a spool folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Identity {
    /// Version of the file.
    format: u32,
    /// Name of the actor if the configuration gives none.
    name: String,
    /// First number that is not reserved.
    next_number: u64,
    /// Incarnation of a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    incarnation: Option<String>,
}

/// Unique id of a game, 16 bytes. The top of this file describes its parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GameId(pub [u8; 16]);

impl GameId {
    /// Reads an id from the bytes of a message. `None` unless there are 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the key of the game's random draws: the first eight bytes (little-endian) of the SHA-256 of the id. So the
    /// record of a game is enough to play the game again.
    pub fn key(&self, run_seed: u64) -> GameKey {
        let digest = Sha256::digest(self.0);
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        GameKey {
            run_seed,
            game: u64::from_le_bytes(first),
        }
    }
}

impl fmt::Display for GameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for GameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// An identity that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Reason.
    pub reason: String,
    /// True if a newer build wrote the file, which is not damaged then.
    pub is_newer: bool,
}

/// Names the games of one actor process.
#[derive(Debug)]
pub struct Naming {
    path: PathBuf,
    /// Name of the actor.
    pub name: String,
    prefix: [u8; 10],
    numbers: Mutex<Numbers>,
}

#[derive(Debug)]
struct Numbers {
    next: u64,
    identity: Identity,
}

impl Naming {
    /// Opens the identity in `folder`, or creates one. `name` is the configured name, which may be empty.
    ///
    /// # Errors
    /// The folder cannot be written, or the identity file is damaged.
    pub fn open(folder: &Path, name: &str, run_seed: u64) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let identity = match fs::read(&path) {
            Ok(bytes) => parse(&bytes)
                .context("stop the run, then `minuet doctor --run DIR --repair` sets this file aside")
                .with_context(at(&path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Identity {
                format: FORMAT,
                name: format!("actor-{:08x}", rand::random::<u32>()),
                next_number: 0,
                incarnation: None,
            },
            Err(error) => return Err(error).with_context(at(&path)),
        };
        let name = if name.is_empty() { &identity.name } else { name };
        let mut hash = Sha256::new();
        hash.update(b"minuet game id\0");
        hash.update(run_seed.to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(b"\0");
        match &identity.incarnation {
            Some(incarnation) => hash.update(incarnation),
            None => hash.update(rand::random::<[u8; 16]>()),
        }
        let mut prefix = [0; 10];
        prefix.copy_from_slice(&hash.finalize()[..10]);
        let naming = Self {
            path,
            name: name.to_owned(),
            prefix,
            numbers: Mutex::new(Numbers {
                next: identity.next_number,
                identity,
            }),
        };
        naming.reserve(&mut naming.numbers.lock())?;
        Ok(naming)
    }

    /// Returns the damage of the identity in `folder`, with which no actor starts.
    pub fn damage(folder: &Path) -> Option<Damage> {
        let path = folder.join(FILE);
        let (read, is_newer) = match fs::read(&path) {
            Ok(bytes) => {
                let format = serde_json::from_slice::<Format>(&bytes);
                let is_newer = format.is_ok_and(|found| found.format > FORMAT);
                (parse(&bytes).map(drop), is_newer)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Ok(()), false),
            Err(error) => (Err(error.into()), false),
        };
        let reason = format!("{:#}", read.err()?);
        Some(Damage {
            path,
            reason,
            is_newer,
        })
    }

    /// Writes an identity with a given incarnation into a folder that has none, so that the actor of this folder gives its games the
    /// same ids whenever they are played again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn fix_incarnation(folder: &Path, name: &str, incarnation: &str) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        if path.try_exists().with_context(at(&path))? {
            return Ok(());
        }
        let identity = Identity {
            format: FORMAT,
            name: name.into(),
            next_number: 0,
            incarnation: Some(incarnation.into()),
        };
        write(&path, &identity)
    }

    /// Returns a number that no game of this actor has had, before or after a restart, and the id with that number.
    ///
    /// # Errors
    /// A new block must be reserved and cannot be written, or all numbers are used. The caller may try again later.
    pub fn next_game(&self) -> anyhow::Result<(u64, GameId)> {
        let mut numbers = self.numbers.lock();
        if numbers.next == numbers.identity.next_number {
            self.reserve(&mut numbers)?;
        }
        let number = numbers.next;
        numbers.next += 1;
        Ok((number, self.id(number)))
    }

    fn id(&self, number: u64) -> GameId {
        let mut id = [0; 16];
        id[..10].copy_from_slice(&self.prefix);
        id[10..].copy_from_slice(&number.to_be_bytes()[2..]);
        GameId(id)
    }

    fn reserve(&self, numbers: &mut Numbers) -> anyhow::Result<()> {
        if numbers.identity.next_number > NUMBERS - BLOCK {
            let path = self.path.display();
            bail!("all game numbers of {path} are used; start with a new spool folder");
        }
        let mut identity = numbers.identity.clone();
        identity.next_number += BLOCK;
        write(&self.path, &identity)?;
        numbers.identity = identity;
        Ok(())
    }
}

fn write(path: &Path, identity: &Identity) -> anyhow::Result<()> {
    let bytes = serde_json::to_vec_pretty(identity)?;
    durable::write(path, &bytes).with_context(at(path))
}

#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    format: u32,
}

fn parse(bytes: &[u8]) -> anyhow::Result<Identity> {
    let read = || -> anyhow::Result<Identity> {
        let Format { format } = serde_json::from_slice(bytes)?;
        ensure!(
            format == FORMAT,
            "it has format {format}, and this build reads format {FORMAT}"
        );
        Ok(serde_json::from_slice(bytes)?)
    };
    read().context(
        "it is not the identity of an actor; if all games of the folder are sent, remove the file and a new one is made",
    )
}

/// Returns the text in front of an error of a file.
fn at(path: &Path) -> impl FnOnce() -> String {
    move || format!("cannot use {}", path.display())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_restarted_actor_never_uses_an_id_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = HashSet::new();
        let mut names = HashSet::new();
        for games in [0, 1, 255, 256, 257, 700] {
            let naming = Naming::open(folder.path(), "", 7).unwrap();
            names.insert(naming.name.clone());
            for _ in 0..games {
                assert!(seen.insert(naming.next_game().unwrap()));
            }
        }
        assert_eq!(
            names.len(),
            1,
            "an unnamed actor keeps the name that was made for it"
        );
    }

    #[test]
    fn two_actors_of_the_same_name_and_seed_do_not_collide() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let one = Naming::open(one.path(), "same", 7).unwrap();
        let other = Naming::open(other.path(), "same", 7).unwrap();
        let (number, id) = one.next_game().unwrap();
        let (other_number, other_id) = other.next_game().unwrap();
        assert_eq!(number, other_number);
        assert_ne!(id, other_id);
        assert_ne!(id.key(7), other_id.key(7));
    }

    /// A backup of the folder is restored, or a copy of it is used by another actor.
    #[test]
    fn a_copied_or_restored_folder_never_gives_an_id_again() {
        let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(Naming::open(folder.path(), "", 7).unwrap());
        fs::copy(folder.path().join(FILE), copy.path().join(FILE)).unwrap();
        let mut seen = HashSet::new();
        for place in [&folder, &copy, &copy] {
            let naming = Naming::open(place.path(), "", 7).unwrap();
            for _ in 0..300 {
                let (_, id) = naming.next_game().unwrap();
                assert!(seen.insert(id), "{id} is given twice");
            }
        }
    }

    #[test]
    fn numbers_are_on_the_disk_before_they_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let naming = Naming::open(folder.path(), "a", 7).unwrap();
        for _ in 0..1000 {
            let (number, _) = naming.next_game().unwrap();
            let kept = parse(&fs::read(folder.path().join(FILE)).unwrap());
            assert!(number < kept.unwrap().next_number);
        }
    }

    #[test]
    fn a_disk_that_takes_no_reservation_gives_no_number_until_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        fs::create_dir(&path).unwrap();
        let naming = Naming::open(&path, "a", 7).unwrap();
        for _ in 0..BLOCK {
            naming.next_game().unwrap();
        }
        durable::rename(&path, folder.path().join("away")).unwrap();
        assert!(naming.next_game().is_err());
        durable::rename(folder.path().join("away"), &path).unwrap();
        assert_eq!(naming.next_game().unwrap().0, BLOCK);
    }

    #[test]
    fn a_damaged_identity_or_one_of_another_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let other_format = r#"{"format":3,"name":{"actor":1}}"#;
        for text in [
            "",
            "{}",
            other_format,
            r#"{"format":2,"name":"a","next_number":-1}"#,
        ] {
            fs::write(&path, text).unwrap();
            let error = Naming::open(folder.path(), "a", 7).unwrap_err();
            let reason = format!("{error:#}");
            assert!(reason.contains("not the identity of an actor"), "{reason}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "the file is left alone");
        }
    }
}
