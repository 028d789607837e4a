//! Ids of all stored games and of retired games, for the detection of duplicates.
//!
//! An actor sends a game again if the acknowledgement was lost, possibly long after the game was retired, because its spool survives
//! restarts. Such a game must not be stored twice. When a volume is removed, the ids of its games are therefore kept in memory and in a
//! small file, `retired/<first sequence>.ids`. At least the newest `min_remembered` games are known; older files are removed, oldest
//! first. Memory: about 50 bytes for each game.
//!
//! ```text
//! ids file = "MnR1" · first sequence u64 · (sequence u64 · id [16]) … · crc32 u32
//! ```

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    log::files::{Files, lacks_descriptor},
    log::frame::{Id, Magic, checksum},
};

const MAGIC: Magic = *b"MnR1";

/// Files that this build reads.
pub const KNOWN: &[Magic] = &[MAGIC];

const ENTRY: usize = 24;

/// A file of retired ids.
#[derive(Debug)]
struct IdFile {
    path: PathBuf,
    ids: u64,
}

/// Known ids, and the files of the retired ones.
#[derive(Debug)]
pub struct KnownIds {
    sequences: HashMap<Id, u64>,
    id_files: VecDeque<IdFile>,
    files: Arc<dyn Files>,
    folder: PathBuf,
    min_remembered: u64,
}

/// Files of retired ids that could not be read.
#[derive(Debug, Default)]
pub struct Unread {
    /// Damaged files. Games with their ids would be stored again.
    pub damaged: Vec<PathBuf>,
    /// Intact files of a newer build, with their magics.
    pub newer: Vec<(PathBuf, Magic)>,
}

impl KnownIds {
    /// Reads the retired ids in `folder`, and changes nothing. `formats` are the magics of the files that the build reads.
    ///
    /// # Errors
    /// The error of the file system for the folder.
    pub fn read(
        files: &Arc<dyn Files>,
        folder: &Path,
        min_remembered: u64,
        formats: &[Magic],
    ) -> io::Result<(Self, Unread)> {
        let entries = if files.exists(folder) {
            files.list(folder)?
        } else {
            Vec::new()
        };
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "ids"));
        paths.sort();
        let mut known = Self {
            sequences: HashMap::new(),
            id_files: VecDeque::new(),
            files: Arc::clone(files),
            folder: folder.into(),
            min_remembered,
        };
        let mut unread = Unread::default();
        for path in paths {
            let bytes = files.read(&path).unwrap_or_default();
            if let Some(magic) = intact_magic(&bytes).filter(|magic| !formats.contains(magic)) {
                unread.newer.push((path, magic));
                continue;
            }
            match unpack(&bytes) {
                Some(ids) => {
                    known.id_files.push_back(IdFile {
                        path,
                        ids: ids.len() as u64,
                    });
                    known
                        .sequences
                        .extend(ids.into_iter().map(|(sequence, id)| (id, sequence)));
                }
                None => unread.damaged.push(path),
            }
        }
        Ok((known, unread))
    }

    /// Prepares the folder for writing: creates it, and removes the oldest files beyond the limit.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn make_writable(&mut self) -> io::Result<()> {
        self.files.create_folder(&self.folder)?;
        self.remove_oldest()
    }

    /// Returns the sequence number of the game with this id; `None` if the id is not known.
    pub fn sequence(&self, id: &Id) -> Option<u64> {
        self.sequences.get(id).copied()
    }

    /// Adds a game.
    pub fn insert(&mut self, id: Id, sequence: u64) {
        self.sequences.insert(id, sequence);
    }

    /// Returns the number of known ids.
    pub fn count(&self) -> usize {
        self.sequences.len()
    }

    /// Writes the ids of a volume that is about to be removed, then removes the oldest files beyond the limit.
    ///
    /// # Errors
    /// The error of the file system. The volume must then not be removed.
    pub fn retire(&mut self, first: u64, ids: &[(u64, Id)]) -> io::Result<()> {
        let path = self.folder.join(format!("{first:020}.ids"));
        self.files.replace(&path, &pack(first, ids))?;
        // After a crash before the removal, the volume is retired again and its file replaced.
        self.id_files.retain(|file| file.path != path);
        self.id_files.push_back(IdFile {
            path,
            ids: ids.len() as u64,
        });
        self.remove_oldest()
    }

    fn remove_oldest(&mut self) -> io::Result<()> {
        while let Some(oldest) = self.id_files.front()
            && self.sequences.len() as u64 >= self.min_remembered.saturating_add(oldest.ids)
        {
            let bytes = match self.files.read(&oldest.path) {
                Err(error) if lacks_descriptor(&error) => return Err(error),
                read => read.ok(),
            };
            for (sequence, id) in bytes.as_deref().and_then(unpack).unwrap_or_default() {
                if self.sequences.get(&id) == Some(&sequence) {
                    self.sequences.remove(&id);
                }
            }
            self.files.remove_file(&oldest.path)?;
            self.id_files.pop_front();
            self.files.sync_folder(&self.folder)?;
        }
        Ok(())
    }
}

fn pack(first: u64, ids: &[(u64, Id)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + ENTRY * ids.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&first.to_le_bytes());
    for (sequence, id) in ids {
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(id);
    }
    let crc = checksum(&bytes, &[]);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// Returns the magic of a file of ids of any version whose checksum, the last four bytes, is correct.
fn intact_magic(bytes: &[u8]) -> Option<Magic> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let magic = *body.first_chunk::<4>()?;
    (magic[..3] == MAGIC[..3] && checksum(body, &[]) == u32::from_le_bytes(*crc)).then_some(magic)
}

fn unpack(bytes: &[u8]) -> Option<Vec<(u64, Id)>> {
    let magic = intact_magic(bytes)?;
    let (body, _) = bytes.split_last_chunk::<4>()?;
    let entries = body.get(12..)?;
    if magic != MAGIC || !entries.len().is_multiple_of(ENTRY) {
        return None;
    }
    entries
        .chunks_exact(ENTRY)
        .map(|entry| {
            let (sequence, id) = entry.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*sequence), id.try_into().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::log::files::Real;

    fn open(folder: &Path, min_remembered: u64) -> (KnownIds, Vec<PathBuf>) {
        let files: Arc<dyn Files> = Arc::new(Real);
        let (mut known, unread) = KnownIds::read(&files, folder, min_remembered, KNOWN).unwrap();
        assert_eq!(unread.newer, []);
        known.make_writable().unwrap();
        (known, unread.damaged)
    }

    fn id(number: u64) -> Id {
        u128::from(number * 31).to_be_bytes()
    }

    proptest! {
        #[test]
        fn packed_ids_unpack_unless_damaged(ids in prop::collection::vec(any::<(u64, Id)>(), 0..20), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = pack(1, &ids);
            prop_assert_eq!(unpack(&bytes), Some(ids));
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(unpack(&bytes), None);
        }
    }

    #[test]
    fn intact_ids_of_a_newer_build_are_not_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = pack(1, &[(1, id(1))]);
        bytes[3] = b'2';
        let end = bytes.len() - 4;
        let crc = checksum(&bytes[..end], &[]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        let path = folder.path().join("00000000000000000001.ids");
        fs::write(&path, &bytes).unwrap();
        let read = || {
            let files: Arc<dyn Files> = Arc::new(Real);
            KnownIds::read(&files, folder.path(), 25, KNOWN).unwrap().1
        };
        assert_eq!(read().newer, [(path.clone(), *b"MnR2")]);
        bytes[3] = b'1';
        fs::write(&path, &bytes).unwrap();
        assert_eq!((read().newer.len(), read().damaged), (0, vec![path]));
    }

    #[test]
    fn the_newest_ids_are_known_and_at_most_one_file_more() {
        let folder = tempfile::tempdir().unwrap();
        let (mut known, _) = open(folder.path(), 25);
        for volume in 0..10 {
            let ids: Vec<(u64, Id)> = (volume * 10..volume * 10 + 10)
                .map(|sequence| (sequence, id(sequence)))
                .collect();
            for (sequence, id) in &ids {
                known.insert(*id, *sequence);
            }
            known.retire(volume * 10, &ids).unwrap();
        }
        let check = |known: &KnownIds| {
            assert!((25..35).contains(&known.count()), "{}", known.count());
            assert_eq!(known.sequence(&id(99)), Some(99));
            assert_eq!(known.sequence(&id(75)), Some(75));
            assert_eq!(known.sequence(&id(60)), None);
        };
        check(&known);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let (known, damaged) = open(folder.path(), 25);
        check(&known);
        assert!(damaged.is_empty());
        fs::write(folder.path().join("00000000000000000090.ids"), "?").unwrap();
        let (known, damaged) = open(folder.path(), 25);
        assert_eq!(known.sequence(&id(85)), Some(85));
        assert_eq!(damaged.len(), 1);
    }
}
