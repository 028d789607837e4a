//! The ledger: durable counts of all games and positions ever inserted and sampled.
//!
//! There are two copies. Each commit to a volume contains the ledger, so that the counts of insertions and the games are written in one
//! transaction. A small file next to the volumes holds the ledger in two checksummed slots; it is written after the flush of a commit
//! and before its games are acknowledged. The file therefore names the last acknowledged sequence number, and a volume that lost its
//! newest games is detected.
//!
//! Samples are reserved in advance: a reservation is made durable before a batch is sent, and the unused rest is returned when the store
//! is closed. After `kill -9` the count is therefore never too low, and too high by less than one reservation (1/128 of the count, at
//! most 65,536 positions).

use std::{io, path::Path};

use durable::frame;
use parking_lot::Mutex;

use crate::{
    error::OpenError,
    log::{
        files::{Files, OpenFile},
        frame::LEDGER_BYTES,
    },
};

/// The durable counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Sequence number of the next game. The first game has number 1.
    pub next_sequence: u64,
    /// Number of games ever inserted.
    pub games_inserted: u64,
    /// Number of trainable positions ever inserted.
    pub positions_inserted: u64,
    /// Number of positions ever sampled, including the reservation.
    pub positions_sampled: u64,
    /// Number of uses that count against [`crate::window::uses_bound::Bounds::max_uses`]: positions sampled and uses forgone, including
    /// the reservation.
    pub positions_used: u64,
    /// Number of games that were received again after they had been stored.
    pub duplicates: u64,
    /// Number of acknowledged games that could not be read back.
    pub damaged_games: u64,
}

/// Distance between the slots in bytes. Each slot has a disk sector of its own.
const SLOT: u64 = 4096;

impl Ledger {
    /// Returns the ledger of an empty store.
    pub fn new() -> Self {
        Self {
            next_sequence: 1,
            ..Self::default()
        }
    }

    /// Length of a packed ledger in bytes.
    pub const BYTES: usize = 64;

    /// Packs the ledger. Of two ledgers, the one with the higher `generation` is newer.
    pub fn pack(&self, generation: u64) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let numbers = [
            generation,
            self.next_sequence,
            self.games_inserted,
            self.positions_inserted,
            self.positions_sampled,
            self.positions_used,
            self.duplicates,
            self.damaged_games,
        ];
        for (slot, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Unpacks a ledger and its generation. Returns `None` if the bytes have another length.
    pub fn unpack(bytes: &[u8]) -> Option<(Self, u64)> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|number| number.try_into().map_or(0, u64::from_le_bytes));
        let mut next = || numbers.next().unwrap_or_default();
        let generation = next();
        let ledger = Self {
            next_sequence: next(),
            games_inserted: next(),
            positions_inserted: next(),
            positions_sampled: next(),
            positions_used: next(),
            duplicates: next(),
            damaged_games: next(),
        };
        Some((ledger, generation))
    }

    /// Merges two copies. Counts of insertions only increase, so that the higher one is the newer one. Returning a reservation lowers
    /// the counts of samples and uses; these are taken from `self` unless they are 0 there.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            next_sequence: self.next_sequence.max(other.next_sequence),
            games_inserted: self.games_inserted.max(other.games_inserted),
            positions_inserted: self.positions_inserted.max(other.positions_inserted),
            positions_sampled: match self.positions_sampled {
                0 => other.positions_sampled,
                sampled => sampled,
            },
            positions_used: match self.positions_used {
                0 => other.positions_used,
                used => used,
            },
            duplicates: self.duplicates.max(other.duplicates),
            damaged_games: self.damaged_games.max(other.damaged_games),
        }
    }
}

/// Contents of a ledger file when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRead {
    /// The newest intact ledger; that of an empty store if there is none.
    pub ledger: Ledger,
    /// True if the file has contents and neither slot is intact.
    pub is_damaged: bool,
    generation: u64,
    /// Number of the ledger's slot: 0 or 1.
    slot: u64,
}

impl LedgerRead {
    /// Reads the file without changing anything. A missing file is that of an empty store.
    ///
    /// # Errors
    /// [`OpenError::Io`], and [`OpenError::Newer`] if a newer build wrote a slot.
    pub fn read(files: &dyn Files, path: &Path) -> Result<Self, OpenError> {
        let bytes = match files.exists(path) {
            true => files.read(path).map_err(OpenError::io(path))?,
            false => Vec::new(),
        };
        let mut newest = Self {
            ledger: Ledger::new(),
            is_damaged: !bytes.is_empty(),
            generation: 0,
            slot: 1,
        };
        for slot in 0..2 {
            let Ok(found) = frame::read(bytes.get((slot * SLOT) as usize..).unwrap_or_default()) else {
                continue;
            };
            let Some((ledger, generation)) = found.of_kind(b'L').and_then(Ledger::unpack) else {
                return Err(OpenError::newer_frame(path, &found));
            };
            if newest.is_damaged || generation >= newest.generation {
                newest = Self {
                    ledger,
                    is_damaged: false,
                    generation,
                    slot,
                };
            }
        }
        Ok(newest)
    }
}

/// Maximum number of positions of one reservation.
const MAX_RESERVATION: u64 = 65_536;

/// The ledger of an open store: the counts in memory and the ledger file.
#[derive(Debug)]
pub struct LiveLedger {
    /// `None` in a store that is open for reading, which writes no ledger.
    file: Option<Box<dyn OpenFile>>,
    generation: u64,
    /// The slot that was synced last. Writes go to the other slot until that one is synced, so that a loss of power leaves one intact.
    synced: u64,
    durable: Ledger,
    sampled: u64,
    used: u64,
    is_dirty: bool,
}

impl LiveLedger {
    /// Opens the file for writing, or creates it, and writes the merged ledger to both slots. `found` are the contents of the file.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(files: &dyn Files, path: &Path, found: &LedgerRead, ledger: Ledger) -> io::Result<Self> {
        let mut live = Self {
            file: Some(files.open(path, true)?),
            generation: found.generation,
            synced: found.slot,
            ..Self::to_read(ledger)
        };
        // Both slots are allocated now, so that they can be written when the disk is full.
        live.write(ledger, true)?;
        live.write(ledger, true)?;
        Ok(live)
    }

    /// Takes the ledger of a store that is only read. Changes of it fail.
    pub fn to_read(ledger: Ledger) -> Self {
        Self {
            file: None,
            generation: 0,
            synced: 1,
            durable: ledger,
            sampled: ledger.positions_sampled,
            used: ledger.positions_used,
            is_dirty: false,
        }
    }

    /// Writes the ledger to a slot. With `sync` the write also survives a loss of power.
    ///
    /// # Errors
    /// The error of the file system. The slot that was synced last is then still intact.
    fn write(&mut self, ledger: Ledger, sync: bool) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        };
        self.generation += 1;
        let slot = 1 - self.synced;
        let mut bytes = Vec::with_capacity(LEDGER_BYTES);
        frame::append(b'L', &[&ledger.pack(self.generation)], &mut bytes);
        file.write_at(&bytes, SLOT * slot)?;
        if sync {
            file.sync()?;
            self.synced = slot;
        }
        self.durable = ledger;
        Ok(())
    }

    /// Returns the counts without the reservation.
    pub fn now(&self) -> Ledger {
        Ledger {
            positions_sampled: self.sampled,
            positions_used: self.used,
            ..self.durable
        }
    }

    /// Returns the counts including the reservation, as they are written to the disk.
    pub fn durable(&self) -> Ledger {
        self.durable
    }

    /// Takes over the counts of insertions from `ledger`, which was just committed to a volume, and writes the file.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn inserted(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.durable = self.durable.merged(*ledger);
        self.write(self.durable, false)
    }

    /// Counts a duplicate in memory; [`LiveLedger::save`] writes it.
    pub fn duplicate(&mut self) {
        self.durable.duplicates += 1;
        self.is_dirty = true;
    }

    /// Writes counted duplicates that are not written yet.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn save(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.write(self.durable, false)?;
        }
        Ok(())
    }

    /// Counts `positions` as sampled and used, and `forgone` more uses as forgone. The counts are durable on return.
    ///
    /// # Errors
    /// The error of the file system. The batch must then not be sent.
    pub fn sampled(&mut self, positions: u64, forgone: u64) -> io::Result<()> {
        let sampled = self.sampled + positions;
        let used = self.used + forgone + positions;
        if sampled > self.durable.positions_sampled || used > self.durable.positions_used {
            let ahead = |count: u64| count + (count / 128).min(MAX_RESERVATION);
            let reserved = Ledger {
                positions_sampled: ahead(sampled),
                positions_used: ahead(used),
                ..self.durable
            };
            self.write(reserved, true)?;
        }
        (self.sampled, self.used) = (sampled, used);
        Ok(())
    }

    /// Returns the unused rest of the reservation and writes the file. Called last when a store is closed.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn close(&mut self) -> io::Result<()> {
        self.write(self.now(), true)
    }
}

/// The ledger of an open store, for all its threads. Reading the counts never waits for the disk.
#[derive(Debug)]
pub struct SharedLedger {
    live: Mutex<LiveLedger>,
    now: Mutex<Ledger>,
}

impl SharedLedger {
    /// Shares a ledger.
    pub fn new(live: LiveLedger) -> Self {
        Self {
            now: Mutex::new(live.now()),
            live: Mutex::new(live),
        }
    }

    /// Returns the counts without the reservation, as they are after the last change that has ended.
    pub fn now(&self) -> Ledger {
        *self.now.lock()
    }

    /// Changes the ledger. Waits for other changes, and for the disk if the change writes.
    pub fn change<T>(&self, change: impl FnOnce(&mut LiveLedger) -> T) -> T {
        let mut live = self.live.lock();
        let done = change(&mut live);
        *self.now.lock() = live.now();
        done
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, mpsc},
        time::Duration,
    };

    use super::*;
    use crate::log::files::Real;

    fn read(path: &Path) -> LedgerRead {
        LedgerRead::read(&Real, path).unwrap()
    }

    fn reopen(path: &Path) -> LiveLedger {
        let found = read(path);
        LiveLedger::open(&Real, path, &found, found.ledger).unwrap()
    }

    #[test]
    fn if_a_slot_is_damaged_the_synced_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let new = read(&path);
        assert!(new.ledger == Ledger::new() && !new.is_damaged && !path.exists());
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path), new);
        let numbered = |next_sequence| Ledger {
            next_sequence,
            ..Ledger::new()
        };
        let mut live = reopen(&path);
        live.write(numbered(4), true).unwrap();
        let synced = read(&path).slot as usize * 4096;
        let before = std::fs::read(&path).unwrap();
        live.write(numbered(5), false).unwrap();
        live.write(numbered(6), false).unwrap();
        // Writes without a sync never touch the synced slot.
        let mut bytes = std::fs::read(&path).unwrap();
        let slot = synced..synced + LEDGER_BYTES;
        assert_eq!(bytes[slot.clone()], before[slot]);
        assert_eq!(read(&path).ledger, numbered(6));
        bytes[4096 - synced + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).ledger, numbered(4));
        bytes[synced + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&path).is_damaged);
    }

    #[test]
    fn after_a_kill_samples_are_not_undercounted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut live = reopen(&path);
        let (mut sampled, mut used) = (0, 0);
        for round in 0..300 {
            live.sampled(256, 44).unwrap();
            sampled += 256;
            used += 300;
            assert_eq!(
                (live.now().positions_sampled, live.now().positions_used),
                (sampled, used)
            );
            if round % 50 == 49 {
                live = reopen(&path);
                for (exact, counted) in [
                    (&mut sampled, live.now().positions_sampled),
                    (&mut used, live.now().positions_used),
                ] {
                    assert!((*exact..=*exact + *exact / 128).contains(&counted));
                    *exact = counted;
                }
            }
        }
        live.close().unwrap();
        let now = reopen(&path).now();
        assert_eq!((now.positions_sampled, now.positions_used), (sampled, used));
    }

    /// A file whose syncs wait for permission.
    #[derive(Debug)]
    struct SlowFile {
        begun: mpsc::SyncSender<()>,
        permitted: Mutex<mpsc::Receiver<()>>,
    }

    impl OpenFile for SlowFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn sync(&self) -> io::Result<()> {
            self.begun.send(()).unwrap();
            self.permitted.lock().recv().unwrap();
            Ok(())
        }
    }

    #[test]
    fn counts_are_read_while_the_disk_is_slow() {
        let (begun, begins) = mpsc::sync_channel(1);
        let (permit, permitted) = mpsc::channel();
        let permitted = Mutex::new(permitted);
        let ledger = Arc::new(SharedLedger::new(LiveLedger {
            file: Some(Box::new(SlowFile { begun, permitted })),
            ..LiveLedger::to_read(Ledger::new())
        }));
        let sampling = std::thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || ledger.change(|live| live.sampled(100, 0)).unwrap()
        });
        begins.recv().unwrap();
        let (tell, told) = mpsc::channel();
        let reading = std::thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || tell.send(ledger.now().positions_sampled).unwrap()
        });
        let read = told.recv_timeout(Duration::from_secs(60));
        permit.send(()).unwrap();
        sampling.join().unwrap();
        reading.join().unwrap();
        assert_eq!(read, Ok(0), "the counts before the change");
        assert_eq!(ledger.now().positions_sampled, 100);
    }
}
