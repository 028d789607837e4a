//! Files of the spool on the disk.
//!
//! `<number>.games` files contain games in the order in which they finished. `<number>.tmp` is a file that was being written
//! when the actor died. `lock` keeps a second actor out.

use std::{
    fs::{self, File, TryLockError},
    io::{Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, bail};
use durable::frame;
use prost::Message as _;
use proto::v1::Game;

use super::{GAME, index::Index};
use crate::GameId;

const GAMES: &str = "games";
const UNFINISHED: &str = "tmp";
const REFUSED: &str = "refused";
const DAMAGED: &str = "damaged";
/// Assumed block size of the file system in bytes; a small file takes a whole block.
const BLOCK: u64 = 4096;

/// Contents of the spool at start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Games that will be sent.
    pub games: u64,
    /// Descriptions of the byte ranges that are not intact games.
    pub damage: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    set_aside: AtomicU64,
    /// Lock of the folder, held while the spool is open.
    _lock: File,
}

impl Folder {
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&path).with_context(at("cannot make", &path))?;
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).with_context(at("cannot make", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{} is the spool of another running actor; give each actor a spool folder of its own",
                path.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(at("cannot lock", &lock_path)),
        }
        let folder = Self {
            path,
            set_aside: AtomicU64::new(0),
            _lock: lock,
        };
        folder.measure_set_aside();
        Ok(folder)
    }

    pub(super) fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:016}.{GAMES}"))
    }

    /// Returns a number above those of all files, damaged ones included.
    pub(super) fn first_free_number(&self) -> anyhow::Result<u64> {
        let mut numbers = self.numbers(&self.path, GAMES)?;
        numbers.extend(self.numbers(&self.path, UNFINISHED)?);
        let damaged = self.path.join(DAMAGED);
        if damaged.exists() {
            numbers.extend(self.numbers(&damaged, GAMES)?);
        }
        Ok(numbers.into_iter().max().unwrap_or(0) + 1)
    }

    /// Checks that no newer build wrote games into the folder. Changes nothing.
    ///
    /// # Errors
    /// A file has an intact frame that this build does not know.
    pub(super) fn check_versions(&self) -> anyhow::Result<()> {
        for extension in [GAMES, UNFINISHED] {
            for number in self.numbers(&self.path, extension)? {
                let path = self.path.join(format!("{number:016}.{extension}"));
                let bytes = fs::read(&path).with_context(at("cannot read", &path))?;
                let mut intact = frame::ranges(&bytes).filter_map(|(_, found)| found.ok());
                if let Some(newer) = intact.find(|found| found.of_kind(GAME).is_none()) {
                    bail!(
                        "{} holds frame {}, which this build does not know; nothing was changed. \
                         Start the build that wrote them, or a newer one, to send them",
                        path.display(),
                        newer.name()
                    );
                }
            }
        }
        Ok(())
    }

    /// Adds the games of an earlier process to `index`. The intact games of an incomplete file are kept.
    pub(super) fn recover(&self, index: &mut Index) -> anyhow::Result<Recovered> {
        for number in self.numbers(&self.path, UNFINISHED)? {
            self.finish(number)?;
        }
        let mut recovered = Recovered::default();
        for number in self.numbers(&self.path, GAMES)? {
            let path = self.file(number);
            let bytes = fs::read(&path).with_context(at("cannot read", &path))?;
            let (mut games, mut damage) = (Vec::new(), Vec::new());
            for (range, found) in frame::ranges(&bytes) {
                let id = found.map_err(str::to_owned).and_then(|_| {
                    let game = game(&bytes[range.clone()])?;
                    GameId::from_bytes(&game.id)
                        .ok_or_else(|| format!("a game id of {} bytes", game.id.len()))
                });
                match id {
                    Ok(id) => games.push((id, range)),
                    Err(reason) => damage.push(format!("bytes {range:?} ({reason})")),
                }
            }
            let is_damaged = !damage.is_empty();
            let listed = damage
                .into_iter()
                .map(|what| format!("{}: {what}", path.display()));
            recovered.damage.extend(listed);
            if games.iter().all(|(id, _)| index.place(*id).is_some()) {
                // All of its games are known already.
                if is_damaged {
                    self.keep_damaged(number)?;
                } else {
                    self.remove(number)?;
                }
                continue;
            }
            let added = index.add(number, space(bytes.len() as u64), games, is_damaged);
            recovered.games += added as u64;
        }
        Ok(recovered)
    }

    fn finish(&self, number: u64) -> anyhow::Result<()> {
        let path = self.path.join(format!("{number:016}.{UNFINISHED}"));
        let bytes = fs::read(&path).with_context(at("cannot read", &path))?;
        let intact = frame::ranges(&bytes).filter(|(_, found)| found.is_ok());
        let whole: Vec<u8> = intact.flat_map(|(range, _)| &bytes[range]).copied().collect();
        if !whole.is_empty() && !self.file(number).exists() {
            // Replaces the temporary file by one that contains the intact games only.
            return self.write(number, &whole);
        }
        fs::remove_file(&path).with_context(at("cannot remove", &path))
    }

    pub(super) fn write(&self, number: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.file(number);
        durable::write(&path, bytes).with_context(at("cannot write", &path))
    }

    pub(super) fn read(&self, number: u64, range: Range<usize>) -> anyhow::Result<Vec<u8>> {
        let path = self.file(number);
        let read = || -> std::io::Result<_> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(range.start as u64))?;
            let mut bytes = vec![0; range.len()];
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        read().with_context(at("cannot read", &path))
    }

    pub(super) fn remove(&self, number: u64) -> anyhow::Result<()> {
        let path = self.file(number);
        // Not forced to the disk: if the file reappears after a power failure, its games are sent again.
        fs::remove_file(&path).with_context(at("cannot remove", &path))
    }

    pub(super) fn keep_damaged(&self, number: u64) -> anyhow::Result<()> {
        let path = self.file(number);
        let folder = self.path.join(DAMAGED);
        let target = folder.join(format!("{number:016}.{GAMES}"));
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        fs::create_dir_all(&folder)
            .and_then(|()| durable::rename(&path, &target))
            .with_context(at("cannot set aside", &path))?;
        self.set_aside.fetch_add(space(bytes), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps a refused game as `refused/<id>.games` and `refused/<id>.txt`.
    pub(super) fn keep_refused(&self, id: GameId, bytes: &[u8], reason: &str) -> anyhow::Result<PathBuf> {
        let folder = self.path.join(REFUSED);
        let path = folder.join(format!("{id}.{GAMES}"));
        let text = folder.join(format!("{id}.txt"));
        fs::create_dir_all(&folder)
            .and_then(|()| durable::write(&text, reason.as_bytes()))
            .and_then(|()| durable::write(&path, bytes))
            .with_context(at("cannot write", &path))?;
        let taken = space(bytes.len() as u64) + space(reason.len() as u64);
        self.set_aside.fetch_add(taken, Ordering::Relaxed);
        Ok(path)
    }

    /// Returns the number of bytes in `refused/` and `damaged/`.
    pub(super) fn set_aside(&self) -> u64 {
        self.set_aside.load(Ordering::Relaxed)
    }

    /// Measures `refused/` and `damaged/` again, because a user may have removed files.
    pub(super) fn measure_set_aside(&self) {
        let taken = |name: &str| -> u64 {
            let Ok(files) = fs::read_dir(self.path.join(name)) else {
                return 0;
            };
            files
                .filter_map(|file| file.ok()?.metadata().ok())
                .map(|file| space(file.len()))
                .sum()
        };
        self.set_aside
            .store(taken(REFUSED) + taken(DAMAGED), Ordering::Relaxed);
    }

    /// Returns the numbers of the files with this extension, ascending.
    fn numbers(&self, folder: &Path, extension: &str) -> anyhow::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for file in fs::read_dir(folder).with_context(at("cannot list", folder))? {
            let path = file.with_context(at("cannot list", folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if path.extension().is_some_and(|found| found == extension) {
                numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Returns the space on the disk of a file of this length, in bytes.
pub(super) fn space(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).max(1) * BLOCK
}

/// Returns the game in a frame, or the reason why there is none.
pub(super) fn game(bytes: &[u8]) -> Result<Game, String> {
    let found = frame::read(bytes)?;
    let payload = found.of_kind(GAME).ok_or("not a game")?;
    Game::decode(payload).map_err(|error| error.to_string())
}

/// Returns the text in front of an error of the file system: what was tried, and the file or folder.
fn at(action: &'static str, path: &Path) -> impl FnOnce() -> String {
    move || format!("{action} {}", path.display())
}
