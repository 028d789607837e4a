//! What both kinds of volume promise, and what each has of its own.

use std::{fs, path::PathBuf};

use super::*;
use crate::log::files::Real;

const ENGINES: [Engine; 2] = [Engine::Log, Engine::Sled];

fn entry(sequence: u64, bytes: usize) -> Entry {
    Entry {
        sequence,
        id: [sequence as u8; 16],
        record: (0..bytes).map(|at| (at as u64 * sequence) as u8).collect(),
    }
}

fn open(folder: &Path, first: u64, engine: Engine) -> Volume {
    let files: Arc<dyn Files> = Arc::new(Real);
    Volume::open(&files, folder, first, engine).unwrap()
}

fn commit(volume: &Volume, entries: &[Entry]) {
    let all = Commit {
        entries,
        lost: &[],
        deleted: &[],
        ledger: &Ledger::new(),
    };
    volume.commit(all).unwrap();
}

fn file(folder: &Path, engine: Engine) -> PathBuf {
    folder.join(match engine {
        Engine::Log => log::FILE,
        Engine::Sled => database::FILE,
    })
}

#[test]
fn what_is_committed_is_there_after_reopening() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let ledger = Ledger {
            games_inserted: 3,
            ..Ledger::new()
        };
        let entries = [entry(7, 100), entry(8, 30_000), entry(9, 0)];
        let volume = open(&path, 7, engine);
        assert_eq!(volume.ledger(), None);
        volume
            .commit(Commit {
                entries: &entries,
                lost: &[(10, None), (11, Some([3; 16]))],
                deleted: &[8],
                ledger: &ledger,
            })
            .unwrap();
        drop(volume);
        // Whatever the setting is by now, a volume is what it is.
        let volume = open(&path, 7, Engine::Log);
        for entry in &entries {
            assert_eq!(volume.read(entry.sequence).unwrap(), entry.record, "{engine:?}");
            assert_eq!(volume.name(entry.sequence), Some(entry.id));
            assert_eq!(volume.lost(entry.sequence), None);
            assert_eq!(volume.deleted(entry.sequence), entry.sequence == 8);
        }
        assert_eq!(volume.read(10), Err(ReadError::Missing));
        assert_eq!(volume.lost(10), Some(None));
        assert_eq!(volume.lost(11), Some(Some([3; 16])));
        assert_eq!(volume.ledger(), Some(ledger));
        assert_eq!(matches!(volume, Volume::Log(_)), engine == Engine::Log);
    }
}

#[test]
fn a_damaged_value_costs_only_its_game() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().unwrap();
        let volume = open(folder.path(), 1, engine);
        let entries: Vec<Entry> = (1..40).map(|sequence| entry(sequence, 500)).collect();
        commit(&volume, &entries);
        // A byte of game 17, found by its frame.
        let path = file(folder.path(), engine);
        let bytes = fs::read(&path).unwrap();
        let frame = crate::log::frame::split(17, &entries[16].record)
            .unwrap()
            .remove(0);
        let at = memchr::memmem::find(&bytes, &frame).unwrap();
        let open_file = Real.open(&path, false).unwrap();
        open_file
            .write_at(&[bytes[at + 200] ^ 4], at as u64 + 200)
            .unwrap();
        if engine == Engine::Log {
            // sled has the page in memory, and learns of it when it is opened next.
            assert_eq!(volume.read(17), Err(ReadError::Damaged("a checksum fails")));
        }
        for entry in entries.iter().filter(|entry| entry.sequence != 17) {
            assert_eq!(volume.read(entry.sequence).unwrap(), entry.record);
        }
        drop(volume);
        if engine == Engine::Log {
            let volume = open(folder.path(), 1, engine);
            assert_eq!(volume.read(17), Err(ReadError::Missing));
            assert_eq!(volume.name(17), Some([17; 16]));
            for entry in entries.iter().filter(|entry| entry.sequence != 17) {
                assert_eq!(volume.read(entry.sequence).unwrap(), entry.record);
            }
        }
    }
}

#[test]
fn a_torn_end_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), Engine::Log);
    let volume = open(folder.path(), 1, Engine::Log);
    commit(&volume, &[entry(1, 500), entry(2, 500)]);
    let whole = fs::metadata(&path).unwrap().len();
    commit(&volume, &[entry(3, 20_000)]);
    drop(volume);
    let bytes = fs::read(&path).unwrap();
    for keep in [whole, whole + 1, whole + 9_000] {
        fs::write(&path, &bytes[..keep as usize]).unwrap();
        let volume = open(folder.path(), 1, Engine::Log);
        assert!(volume.read(3).is_err(), "{keep}");
        commit(&volume, &[entry(4, 100)]);
        drop(volume);
        let volume = open(folder.path(), 1, Engine::Log);
        for (sequence, bytes) in [(1, 500), (2, 500), (4, 100)] {
            assert_eq!(
                volume.read(sequence).unwrap(),
                entry(sequence, bytes).record,
                "{keep}"
            );
        }
    }
}

#[test]
fn leaves_of_long_games_get_no_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let volume = open(folder.path(), 1, Engine::Sled);
    for sequence in 1..30 {
        commit(&volume, &[entry(sequence, 100_000)]);
    }
    assert_eq!(fs::read_dir(folder.path().join("blobs")).unwrap().count(), 0);
}
