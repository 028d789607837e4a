//! The ledger: durable counts of all games and positions ever inserted and sampled.
//!
//! There are two copies. Each commit to a volume contains the ledger, so that the counts of insertions and the games are written in one
//! transaction. A small file beside the volumes holds the ledger in two checksummed slots; it is written after the flush of a commit
//! and before its games are acknowledged. The file therefore names the last acknowledged sequence number, and a volume that lost its
//! newest games is detected.
//!
//! Samples are reserved in advance: a reservation is made durable before a batch is sent, and the unused rest is returned when the store
//! is closed. After `kill -9` the count is therefore never too low, and too high by less than one reservation (1/128 of the count, at
//! most 65,536 positions).

use std::{io, path::Path};

use parking_lot::Mutex;

use crate::{
    log::files::{Files, OpenFile},
    log::frame::{self, LEDGER_BYTES, Magic, checksum},
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

const MAGIC: [u8; 4] = *b"MnL2";
/// Magic of the older format without uses, which has eight bytes for each of the last two counts.
const MAGIC_WITHOUT_USES: [u8; 4] = *b"MnL1";
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

    /// Packs the ledger. Of two ledgers, the one with the higher `generation` is newer.
    pub fn pack(&self, generation: u64) -> [u8; LEDGER_BYTES] {
        let mut bytes = [0; LEDGER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let numbers = [
            generation,
            self.next_sequence,
            self.games_inserted,
            self.positions_inserted,
            self.positions_sampled,
            self.positions_used,
            u64::from(saturated(self.duplicates)) | u64::from(saturated(self.damaged_games)) << 32,
        ];
        for (slot, number) in bytes[4..60].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(&bytes[..60], &[]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Unpacks a ledger and its generation. Returns `None` if the bytes are not an intact ledger.
    pub fn unpack(bytes: &[u8]) -> Option<(Self, u64)> {
        let bytes = bytes.first_chunk::<LEDGER_BYTES>()?;
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        let has_uses = body[..4] == MAGIC;
        if !(has_uses || body[..4] == MAGIC_WITHOUT_USES) || checksum(body, &[]) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut numbers = [0u64; 7];
        for (number, chunk) in numbers.iter_mut().zip(body[4..].chunks_exact(8)) {
            *number = u64::from_le_bytes(chunk.try_into().ok()?);
        }
        let [
            generation,
            next_sequence,
            games_inserted,
            positions_inserted,
            positions_sampled,
            sixth,
            seventh,
        ] = numbers;
        let (positions_used, duplicates, damaged_games) = match has_uses {
            true => (sixth, seventh & u64::from(u32::MAX), seventh >> 32),
            false => (positions_sampled, sixth, seventh),
        };
        let ledger = Self {
            next_sequence,
            games_inserted,
            positions_inserted,
            positions_sampled,
            positions_used,
            duplicates,
            damaged_games,
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

fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The ledger file, which holds the second copy.
#[derive(Debug)]
pub struct LedgerFile {
    file: Box<dyn OpenFile>,
    generation: u64,
    /// The slot that was synced last. Writes go to the other slot until that one is synced, so that a loss of power leaves one intact.
    synced: u64,
}

/// Returns the newest intact ledger of a ledger file, its generation and its slot.
fn newest(bytes: &[u8]) -> Option<(Ledger, u64, u64)> {
    let slots = [0, SLOT].map(|offset| Ledger::unpack(bytes.get(offset as usize..)?));
    (0..)
        .zip(slots)
        .filter_map(|(slot, found)| found.map(|(ledger, generation)| (ledger, generation, slot)))
        .max_by_key(|&(_, generation, _)| generation)
}

/// Contents of a ledger file when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRead {
    /// The file is new.
    New,
    /// The newest intact ledger.
    Valid(Ledger),
    /// Neither slot is intact.
    Damaged,
    /// A newer build wrote a slot, which is intact.
    Newer(Magic),
}

impl LedgerFile {
    /// Reads the file without changing anything. `known` are the frames that the build reads.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn read(files: &dyn Files, path: &Path, known: &[Magic]) -> io::Result<LedgerRead> {
        if !files.exists(path) {
            return Ok(LedgerRead::New);
        }
        let bytes = files.read(path)?;
        let slots = [0, SLOT].map(|offset| bytes.get(offset as usize..).unwrap_or_default());
        if let Some(magic) = slots.iter().find_map(|slot| frame::unknown(slot, known)) {
            return Ok(LedgerRead::Newer(magic));
        }
        Ok(match newest(&bytes) {
            Some((ledger, ..)) => LedgerRead::Valid(ledger),
            None if bytes.is_empty() => LedgerRead::New,
            None => LedgerRead::Damaged,
        })
    }

    /// Opens the file for writing, or creates it.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(files: &dyn Files, path: &Path) -> io::Result<Self> {
        let bytes = if files.exists(path) {
            files.read(path)?
        } else {
            Vec::new()
        };
        let (generation, synced) = newest(&bytes).map_or((0, 1), |(_, generation, slot)| (generation, slot));
        Ok(Self {
            file: files.open(path, true)?,
            generation,
            // The slot may not be synced yet; `LiveLedger::new` begins with synced writes.
            synced,
        })
    }

    /// Writes the ledger to a slot. With `sync` the write also survives a loss of power.
    ///
    /// # Errors
    /// The error of the file system. The slot that was synced last is then still intact.
    pub fn write(&mut self, ledger: &Ledger, sync: bool) -> io::Result<()> {
        self.generation += 1;
        let slot = 1 - self.synced;
        self.file.write_at(&ledger.pack(self.generation), SLOT * slot)?;
        if sync {
            self.file.sync()?;
            self.synced = slot;
        }
        Ok(())
    }
}

/// Maximum number of positions of one reservation.
const MAX_RESERVATION: u64 = 65_536;

/// The ledger of an open store: the counts in memory and the ledger file.
#[derive(Debug)]
pub struct LiveLedger {
    file: LedgerFile,
    durable: Ledger,
    sampled: u64,
    used: u64,
    is_dirty: bool,
}

impl LiveLedger {
    /// Starts from the merged ledger and writes it to both slots.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn new(mut file: LedgerFile, ledger: Ledger) -> io::Result<Self> {
        // Both slots are allocated now, so that they can be written when the disk is full.
        file.write(&ledger, true)?;
        file.write(&ledger, true)?;
        Ok(Self::to_read(file, ledger))
    }

    /// Takes the ledger of a store that is only read. Nothing is written to the file.
    pub fn to_read(file: LedgerFile, ledger: Ledger) -> Self {
        Self {
            file,
            durable: ledger,
            sampled: ledger.positions_sampled,
            used: ledger.positions_used,
            is_dirty: false,
        }
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
        self.file.write(&self.durable, false)
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
            self.file.write(&self.durable, false)?;
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
            self.file.write(&reserved, true)?;
            self.durable = reserved;
        }
        (self.sampled, self.used) = (sampled, used);
        Ok(())
    }

    /// Returns the unused rest of the reservation and writes the file. Called last when a store is closed.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn close(&mut self) -> io::Result<()> {
        self.durable = self.now();
        self.file.write(&self.durable, true)
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

    use proptest::prelude::*;

    use super::*;
    use crate::log::files::Real;

    fn any_ledger() -> impl Strategy<Value = Ledger> {
        any::<([u64; 5], [u32; 2])>().prop_map(|(numbers, small)| Ledger {
            next_sequence: numbers[0],
            games_inserted: numbers[1],
            positions_inserted: numbers[2],
            positions_sampled: numbers[3],
            positions_used: numbers[4],
            duplicates: small[0].into(),
            damaged_games: small[1].into(),
        })
    }

    proptest! {
        #[test]
        fn packed_ledgers_unpack_unless_damaged(ledger in any_ledger(), generation: u64, at in 0..LEDGER_BYTES, bit in 0u8..8) {
            let mut bytes = ledger.pack(generation);
            prop_assert_eq!(Ledger::unpack(&bytes), Some((ledger, generation)));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Ledger::unpack(&bytes), None);
        }
    }

    #[test]
    fn if_a_slot_is_damaged_the_synced_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let read = || LedgerFile::read(&Real, &path, frame::KNOWN).unwrap();
        assert_eq!(read(), LedgerRead::New);
        assert!(!path.exists());
        let mut file = LedgerFile::open(&Real, &path).unwrap();
        assert_eq!(read(), LedgerRead::New);
        let numbered = |next_sequence| Ledger {
            next_sequence,
            ..Ledger::new()
        };
        file.write(&numbered(4), true).unwrap();
        let synced = std::fs::read(&path).unwrap();
        file.write(&numbered(5), false).unwrap();
        file.write(&numbered(6), false).unwrap();
        // Writes without a sync never touch the synced slot.
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..64], synced[..64]);
        assert_eq!(read(), LedgerRead::Valid(numbered(6)));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096 + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(), LedgerRead::Valid(numbered(4)));
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(), LedgerRead::Damaged);
    }

    #[test]
    fn a_ledger_of_a_newer_build_is_not_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let older: Vec<Magic> = frame::KNOWN
            .iter()
            .copied()
            .filter(|magic| magic != b"MnL2")
            .collect();
        let mut file = LedgerFile::open(&Real, &path).unwrap();
        file.write(&Ledger::new(), true).unwrap();
        let read = |known: &[Magic]| LedgerFile::read(&Real, &path, known).unwrap();
        assert_eq!(read(&older), LedgerRead::Newer(*b"MnL2"));
        assert_eq!(read(frame::KNOWN), LedgerRead::Valid(Ledger::new()));
        // A wrong checksum is damage, whatever the version says.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&older), LedgerRead::Damaged);
    }

    #[test]
    fn after_a_kill_samples_are_not_undercounted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let reopen = || {
            let found = LedgerFile::read(&Real, &path, frame::KNOWN).unwrap();
            let file = LedgerFile::open(&Real, &path).unwrap();
            match found {
                LedgerRead::Valid(ledger) => LiveLedger::new(file, ledger).unwrap(),
                _ => LiveLedger::new(file, Ledger::new()).unwrap(),
            }
        };
        let mut live = reopen();
        let (mut sampled, mut used) = (0, 0);
        for round in 0..300 {
            live.sampled(256, 44).unwrap();
            sampled += 256;
            used += 300;
            assert_eq!(live.now().positions_sampled, sampled);
            assert_eq!(live.now().positions_used, used);
            if round % 50 == 49 {
                let killed = reopen();
                let counted = killed.now().positions_sampled;
                assert!(counted >= sampled && counted <= sampled + sampled / 128);
                sampled = counted;
                let counted = killed.now().positions_used;
                assert!(counted >= used && counted <= used + used / 128);
                used = counted;
                live = killed;
            }
        }
        live.close().unwrap();
        let now = reopen().now();
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
        let file = LedgerFile {
            file: Box::new(SlowFile {
                begun,
                permitted: Mutex::new(permitted),
            }),
            generation: 0,
            synced: 1,
        };
        let ledger = Arc::new(SharedLedger::new(LiveLedger::to_read(file, Ledger::new())));
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

    #[test]
    fn ledgers_of_the_format_without_uses_are_read() {
        let mut bytes = [0; LEDGER_BYTES];
        bytes[..4].copy_from_slice(b"MnL1");
        for (number, slot) in (1u64..).zip(bytes[4..60].chunks_exact_mut(8)) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(&bytes[..60], &[]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        let expected = Ledger {
            next_sequence: 2,
            games_inserted: 3,
            positions_inserted: 4,
            positions_sampled: 5,
            positions_used: 5,
            duplicates: 6,
            damaged_games: 7,
        };
        assert_eq!(Ledger::unpack(&bytes), Some((expected, 1)));
    }
}
