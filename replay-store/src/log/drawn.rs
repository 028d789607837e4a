//! Training batches that were drawn, so that a learner that is killed and resumes gets equal batches again.
//!
//! Each batch of a line of training is appended to the newest file in the folder `drawn` before it is sent. A file is not synced: it
//! survives the end of the process, and a loss of power may cost its newest batches. When a file is full, another one is started and
//! the oldest one is removed, so that the two newest remain.
//!
//! ```text
//! batch = frame of kind B: seed u64 · line u64 · number u64 · (sequence number of the game u64 · trainable position of the game u32) …
//! ```
//! Numbers are little-endian. The form around the payload is that of [`durable::frame`].

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use durable::frame::{self, HEAD};

use crate::{
    error::OpenError,
    log::files::{Files, OpenFile},
};

/// Length of seed, line and number.
const KEY: usize = 24;
/// Length of a drawn position.
const POSITION: usize = 12;
/// Length of a file after which another one is started.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Number of files that are kept.
const FILES: usize = 2;
const ENDING: &str = "batches";

/// Identifies a training batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchKey {
    /// Seed of the draws.
    pub seed: u64,
    /// Line of training; 0 for batches that are not remembered.
    pub line: u64,
    /// Number of the batch.
    pub number: u64,
}

/// A drawn position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Sequence number of the game.
    pub sequence: u64,
    /// Number of the trainable position in the game.
    pub position: u32,
}

#[derive(Debug)]
struct DrawnFile {
    number: u64,
    path: PathBuf,
    file: Option<Box<dyn OpenFile>>,
    /// End of the last whole batch.
    end: u64,
}

/// Remembered batches.
#[derive(Debug)]
pub struct DrawnBatches {
    files: Arc<dyn Files>,
    folder: PathBuf,
    max_file_bytes: u64,
    /// Oldest first.
    kept: VecDeque<DrawnFile>,
    /// Number of the file, offset and length of each batch's payload.
    places: HashMap<BatchKey, (u64, u64, usize)>,
}

impl DrawnBatches {
    /// Reads the batches in `folder`, and changes nothing.
    ///
    /// # Errors
    /// [`OpenError::Io`], and [`OpenError::Newer`] if a newer build wrote a batch.
    pub fn read(files: &Arc<dyn Files>, folder: &Path) -> Result<Self, OpenError> {
        let mut drawn = Self {
            files: Arc::clone(files),
            folder: folder.into(),
            max_file_bytes: MAX_FILE_BYTES,
            kept: VecDeque::new(),
            places: HashMap::new(),
        };
        if !files.exists(folder) {
            return Ok(drawn);
        }
        for entry in files.list(folder).map_err(OpenError::io(folder))? {
            let Some(number) = number(&entry.path) else {
                continue;
            };
            let bytes = files.read(&entry.path).map_err(OpenError::io(&entry.path))?;
            let mut end = 0;
            for (range, found) in frame::ranges(&bytes) {
                let Ok(found) = found else {
                    tracing::warn!(
                        file = %entry.path.display(),
                        bytes = range.len(),
                        "a part of a file of drawn batches is damaged; a learner that resumes may get other batches"
                    );
                    continue;
                };
                let Some(key) = found.of_kind(b'B').and_then(key) else {
                    return Err(OpenError::newer_frame(entry.path, &found));
                };
                let place = (number, (range.start + HEAD) as u64, found.payload.len());
                drawn.places.insert(key, place);
                end = range.end as u64;
            }
            drawn.kept.push_back(DrawnFile {
                number,
                path: entry.path,
                file: None,
                end,
            });
        }
        Ok(drawn)
    }

    /// Returns the positions of a batch that was drawn before; `None` if it is not remembered or cannot be read.
    pub fn find(&mut self, key: &BatchKey) -> Option<Vec<Pick>> {
        let &(number, offset, length) = self.places.get(key)?;
        let kept = self.kept.iter_mut().find(|kept| kept.number == number)?;
        let read =
            open(self.files.as_ref(), kept).and_then(|file| file.read_range(offset, offset + length as u64));
        let payload = read
            .inspect_err(|error| tracing::warn!(%error, "a file of drawn batches cannot be read"))
            .ok()?;
        let positions = payload.get(KEY..)?;
        if payload.len() != length {
            return None;
        }
        positions.chunks_exact(POSITION).map(position).collect()
    }

    /// Remembers a batch.
    ///
    /// # Errors
    /// The error of the file system. The batch is not remembered then.
    pub fn remember(&mut self, key: BatchKey, picks: &[Pick]) -> io::Result<()> {
        let length = KEY + POSITION * picks.len();
        let mut payload = Vec::with_capacity(length);
        for word in [key.seed, key.line, key.number] {
            payload.extend_from_slice(&word.to_le_bytes());
        }
        for Pick { sequence, position } in picks {
            payload.extend_from_slice(&sequence.to_le_bytes());
            payload.extend_from_slice(&position.to_le_bytes());
        }
        let mut bytes = Vec::with_capacity(HEAD + length);
        frame::append(b'B', &[&payload], &mut bytes);

        let is_full = |kept: &DrawnFile| kept.end > 0 && kept.end + bytes.len() as u64 > self.max_file_bytes;
        if self.kept.back().is_none_or(is_full) {
            self.start_file()?;
        }
        let Some(newest) = self.kept.back_mut() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let end = newest.end;
        open(self.files.as_ref(), newest)?.write_at(&bytes, end)?;
        newest.end += bytes.len() as u64;
        self.places
            .insert(key, (newest.number, end + HEAD as u64, length));
        Ok(())
    }

    fn start_file(&mut self) -> io::Result<()> {
        self.files.create_folder(&self.folder)?;
        while self.kept.len() >= FILES
            && let Some(oldest) = self.kept.front()
        {
            self.files.remove_file(&oldest.path)?;
            let gone = oldest.number;
            self.places.retain(|_, (number, ..)| *number != gone);
            self.kept.pop_front();
        }
        let number = self.kept.back().map_or(1, |kept| kept.number + 1);
        let path = self.folder.join(format!("{number:016}.{ENDING}"));
        self.kept.push_back(DrawnFile {
            number,
            path,
            file: None,
            end: 0,
        });
        Ok(())
    }
}

/// Opens a file, and removes what follows its last whole batch.
fn open<'a>(files: &dyn Files, kept: &'a mut DrawnFile) -> io::Result<&'a dyn OpenFile> {
    let file = match kept.file.take() {
        Some(file) => file,
        None => {
            let file = files.open(&kept.path, true)?;
            file.set_len(kept.end)?;
            file
        }
    };
    let file = kept.file.insert(file);
    Ok(&**file)
}

/// Returns the number in the name of a file.
fn number(path: &Path) -> Option<u64> {
    let is_one = path.extension().is_some_and(|ending| ending == ENDING);
    path.file_stem()?.to_str()?.parse().ok().filter(|_| is_one)
}

/// Returns the key at the beginning of a batch's payload.
fn key(payload: &[u8]) -> Option<BatchKey> {
    let (key, positions) = payload.split_first_chunk::<KEY>()?;
    let mut words = key
        .chunks_exact(8)
        .map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let mut next = || words.next().unwrap_or_default();
    positions.len().is_multiple_of(POSITION).then(|| BatchKey {
        seed: next(),
        line: next(),
        number: next(),
    })
}

fn position(bytes: &[u8]) -> Option<Pick> {
    let (sequence, rest) = bytes.split_first_chunk::<8>()?;
    Some(Pick {
        sequence: u64::from_le_bytes(*sequence),
        position: u32::from_le_bytes(rest.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::log::files::Real;

    fn opened(folder: &Path) -> DrawnBatches {
        let files: Arc<dyn Files> = Arc::new(Real);
        DrawnBatches::read(&files, folder).unwrap()
    }

    fn key(number: u64) -> BatchKey {
        BatchKey {
            seed: 7,
            line: 9,
            number,
        }
    }

    fn positions(number: u64) -> Vec<Pick> {
        (0..5 + number % 3)
            .map(|at| Pick {
                sequence: number * 100 + at,
                position: at as u32,
            })
            .collect()
    }

    #[test]
    fn the_newest_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut drawn = opened(folder.path());
        drawn.max_file_bytes = 1_000;
        for number in 0..100 {
            drawn.remember(key(number), &positions(number)).unwrap();
            let files: Vec<u64> = fs::read_dir(folder.path())
                .unwrap()
                .map(|file| file.unwrap().metadata().unwrap().len())
                .collect();
            assert!(
                files.len() <= FILES && files.iter().all(|&bytes| bytes <= 1_000),
                "{files:?}"
            );
        }
        let kept = (0..100).filter(|&number| drawn.find(&key(number)).is_some());
        let kept: Vec<u64> = kept.collect();
        assert!((10..30).contains(&kept.len()), "{kept:?}");
        assert_eq!(kept.last(), Some(&99));
        let mut again = opened(folder.path());
        assert!(
            kept.iter()
                .all(|&number| again.find(&key(number)) == Some(positions(number)))
        );
        assert_eq!(drawn.places.len(), kept.len());
    }

    #[test]
    fn batches_of_a_newer_build_are_refused_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut drawn = opened(folder.path());
        for number in 0..3 {
            drawn.remember(key(number), &positions(number)).unwrap();
        }
        let path = drawn.kept[0].path.clone();
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        frame::append(b'Q', &[b"of a newer build"], &mut bytes);
        fs::write(&path, &bytes).unwrap();
        let files: Arc<dyn Files> = Arc::new(Real);
        let error = DrawnBatches::read(&files, folder.path()).unwrap_err();
        assert!(
            matches!(&error, OpenError::Newer { found, .. } if found == "frame MnQ1"),
            "{error:?}"
        );
        bytes = whole;
        bytes[HEAD + KEY + POSITION * positions(0).len() + 20] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut damaged = opened(folder.path());
        assert_eq!(damaged.find(&key(1)), None);
        assert_eq!(damaged.find(&key(2)), Some(positions(2)));
        damaged.remember(key(5), &positions(5)).unwrap();
        let mut again = opened(folder.path());
        assert_eq!(again.find(&key(5)), Some(positions(5)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn cut_anywhere_the_whole_batches_remain(cut in any::<prop::sample::Index>()) {
            let folder = tempfile::tempdir().unwrap();
            let mut drawn = opened(folder.path());
            let mut ends = Vec::new();
            for number in 0..6 {
                drawn.remember(key(number), &positions(number)).unwrap();
                ends.push(drawn.kept[0].end as usize);
            }
            let path = drawn.kept[0].path.clone();
            let bytes = fs::read(&path).unwrap();
            let cut = cut.index(bytes.len() + 1);
            fs::write(&path, &bytes[..cut]).unwrap();
            let mut cut_off = opened(folder.path());
            for number in 0..6 {
                let is_whole = ends[number as usize] <= cut;
                prop_assert_eq!(cut_off.find(&key(number)), is_whole.then(|| positions(number)));
            }
            cut_off.remember(key(9), &positions(9)).unwrap();
            prop_assert_eq!(opened(folder.path()).find(&key(9)), Some(positions(9)));
        }
    }
}
