//! The ledger: what was ever inserted and sampled, surviving every restart.
//!
//! It is kept twice. Every batch that is written to a volume carries it, so the counts of insertions
//! are transactional with the games. And a small file beside the volumes holds it in two checksummed
//! slots, written after each flush and before the acknowledgement: from outside the database it says up
//! to which sequence number games were acknowledged, so that a database that silently lost its newest
//! games (sled does, when the end of its file is damaged) is found out.
//!
//! Samples are counted ahead: a reservation is made durable before a batch leaves, and what is left of
//! it is given back when the store is closed. So after `kill -9` the count is never too low, and too high by less
//! than one reservation (1/128 of the count, at most 65,536 positions).

use std::{io, path::Path};

use crate::{
    log::files::{Files, OpenFile},
    log::frame::checksum,
};

/// The durable counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The next game's sequence number; the first game has 1.
    pub next_sequence: u64,
    /// Games ever inserted.
    pub games_inserted: u64,
    /// Trainable positions ever inserted.
    pub positions_inserted: u64,
    /// Positions ever sampled, with what is reserved.
    pub positions_sampled: u64,
    /// What counts against [`crate::window::uses_bound::Bounds::max_uses`]: positions sampled, and uses that were allowed of positions
    /// and not made while these were in the window; with what is reserved.
    pub positions_used: u64,
    /// Games that were sent again after they had been stored.
    pub duplicates: u64,
    /// Games that were acknowledged and could not be read back.
    pub damaged_games: u64,
}

const MAGIC: [u8; 4] = *b"MnL2";
/// Ledgers without uses had eight bytes for each of the last two counts.
const MAGIC_WITHOUT_USES: [u8; 4] = *b"MnL1";
/// Bytes of a packed ledger: magic, generation, five counts of eight bytes and two of four, crc32.
pub const LEDGER_BYTES: usize = 64;
/// Each slot has a sector of its own.
const SLOT: u64 = 4096;

impl Ledger {
    /// The ledger of an empty store.
    pub fn new() -> Self {
        Self {
            next_sequence: 1,
            ..Self::default()
        }
    }

    /// Packs the ledger; `generation` says which of two is the newer.
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

    /// Unpacks a ledger and its generation; `None` where the bytes are none.
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

    /// What two copies say together: counts only ever rise, so the higher is the later. The counts of
    /// samples and uses are this copy's, if it has them, for giving back a reservation lowers them.
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

/// The file with the ledger's second copy.
#[derive(Debug)]
pub struct LedgerFile {
    file: Box<dyn OpenFile>,
    generation: u64,
    /// The slot that was synced last. It is written over only by what is synced too, or a loss of power could take both.
    synced: u64,
}

/// How a ledger file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is new.
    Nothing,
    /// It holds this.
    Ledger(Ledger),
    /// It is there, and neither slot can be read.
    Damaged,
}

impl LedgerFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn open(files: &dyn Files, path: &Path) -> io::Result<(Self, Found)> {
        let is_new = !files.exists(path);
        let bytes = if is_new { Vec::new() } else { files.read(path)? };
        let file = files.open(path, true)?;
        let slots = [0, SLOT].map(|offset| Ledger::unpack(bytes.get(offset as usize..)?));
        let newest = (0..)
            .zip(slots)
            .filter_map(|(slot, found)| found.map(|(ledger, generation)| (ledger, generation, slot)))
            .max_by_key(|&(_, generation, _)| generation);
        let is_new = is_new || bytes.is_empty();
        let (found, generation, synced) = match newest {
            Some((ledger, generation, slot)) => (Found::Ledger(ledger), generation, slot),
            None if is_new => (Found::Nothing, 0, 1),
            None => (Found::Damaged, 0, 1),
        };
        let ledger = Self {
            file,
            generation,
            // What was read may not be on the disk yet: its keeper begins with a synced write.
            synced,
        };
        Ok((ledger, found))
    }

    /// Writes the ledger into a slot; with `sync` it survives a loss of power too.
    ///
    /// # Errors
    /// What the file system reports; the newer slot is still whole then.
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

/// Most positions of one reservation.
const MAX_RESERVATION: u64 = 65_536;

/// The ledger in use: one copy in memory, the file behind it.
#[derive(Debug)]
pub struct Keeper {
    file: LedgerFile,
    durable: Ledger,
    sampled: u64,
    used: u64,
    is_dirty: bool,
}

impl Keeper {
    /// Takes over from a ledger that was read and merged.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn new(mut file: LedgerFile, ledger: Ledger) -> io::Result<Self> {
        // Both slots, so that a disk that is full later has room for either.
        file.write(&ledger, true)?;
        file.write(&ledger, true)?;
        Ok(Self {
            file,
            durable: ledger,
            sampled: ledger.positions_sampled,
            used: ledger.positions_used,
            is_dirty: false,
        })
    }

    /// The counts as they are, without what is only reserved.
    pub fn now(&self) -> Ledger {
        Ledger {
            positions_sampled: self.sampled,
            positions_used: self.used,
            ..self.durable
        }
    }

    /// The counts as they are to be written, reservations included.
    pub fn durable(&self) -> Ledger {
        self.durable
    }

    /// Takes the counts of insertions from `ledger`, which a volume has just made durable.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn inserted(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.durable = self.durable.merged(*ledger);
        self.file.write(&self.durable, false)
    }

    /// Counts a game that was sent again; [`Keeper::save`] writes it down.
    pub fn duplicate(&mut self) {
        self.durable.duplicates += 1;
        self.is_dirty = true;
    }

    /// Writes down what is not yet.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn save(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.file.write(&self.durable, false)?;
        }
        Ok(())
    }

    /// Counts `positions` as sampled and used, of which `forgone` uses were lost before; durable when this returns.
    ///
    /// # Errors
    /// What the file system reports; nothing may be sent then.
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

    /// Gives back what is left of the reservation; the last act of a store that is closed in order.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn close(&mut self) -> io::Result<()> {
        self.durable = self.now();
        self.file.write(&self.durable, true)
    }
}

#[cfg(test)]
mod tests {
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
        fn packed_ledgers_come_back_and_damage_is_found(ledger in any_ledger(), generation: u64, at in 0..LEDGER_BYTES, bit in 0u8..8) {
            let mut bytes = ledger.pack(generation);
            prop_assert_eq!(Ledger::unpack(&bytes), Some((ledger, generation)));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Ledger::unpack(&bytes), None);
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let (mut file, found) = LedgerFile::open(&Real, &path).unwrap();
        assert_eq!(found, Found::Nothing);
        let numbered = |next_sequence| Ledger {
            next_sequence,
            ..Ledger::new()
        };
        file.write(&numbered(4), true).unwrap();
        let synced = std::fs::read(&path).unwrap();
        file.write(&numbered(5), false).unwrap();
        file.write(&numbered(6), false).unwrap();
        // However often it is written without a sync, the synced slot is left alone.
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..64], synced[..64]);
        assert_eq!(
            LedgerFile::open(&Real, &path).unwrap().1,
            Found::Ledger(numbered(6))
        );
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096 + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            LedgerFile::open(&Real, &path).unwrap().1,
            Found::Ledger(numbered(4))
        );
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(LedgerFile::open(&Real, &path).unwrap().1, Found::Damaged);
    }

    #[test]
    fn samples_are_never_counted_too_low_after_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let reopen = || {
            let (file, found) = LedgerFile::open(&Real, &path).unwrap();
            match found {
                Found::Ledger(ledger) => Keeper::new(file, ledger).unwrap(),
                _ => Keeper::new(file, Ledger::new()).unwrap(),
            }
        };
        let mut keeper = reopen();
        let (mut sampled, mut used) = (0, 0);
        for round in 0..300 {
            keeper.sampled(256, 44).unwrap();
            sampled += 256;
            used += 300;
            assert_eq!(keeper.now().positions_sampled, sampled);
            assert_eq!(keeper.now().positions_used, used);
            if round % 50 == 49 {
                let killed = reopen();
                let counted = killed.now().positions_sampled;
                assert!(counted >= sampled && counted <= sampled + sampled / 128);
                sampled = counted;
                let counted = killed.now().positions_used;
                assert!(counted >= used && counted <= used + used / 128);
                used = counted;
                keeper = killed;
            }
        }
        keeper.close().unwrap();
        let now = reopen().now();
        assert_eq!((now.positions_sampled, now.positions_used), (sampled, used));
    }

    #[test]
    fn ledgers_without_uses_are_read() {
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
