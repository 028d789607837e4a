//! Golden folders: spools that released builds wrote. Every later build reads them.
//!
//! `0.1` is the folder of release 0.1.
//!
//! `cargo test -p actor --lib write_a_golden_folder -- --ignored` writes the folder of this release.

use std::fs;

use config::ProblemsConfig;
use durable::frame;
use test_support::{all_golden, copy_folder, new_golden};

use super::{GAME, Recovered, Spool, folder, game, waiting};
use crate::play::{
    curriculum::{Curriculum, Rung},
    naming::Naming,
};

/// Limit of the spools in bytes.
const LIMIT: u64 = 1 << 20;

fn problems() -> ProblemsConfig {
    ProblemsConfig {
        level: 1,
        max_level: 5,
        window: 1,
        ..ProblemsConfig::default()
    }
}

#[test]
#[ignore = "writes the golden folder of this release; run it when a format changes"]
fn write_a_golden_folder() {
    let folder = new_golden(env!("CARGO_MANIFEST_DIR"), "spool");
    let (spool, _) = Spool::open(folder.clone(), LIMIT).unwrap();
    spool.append(&[game(5), game(3)]).unwrap();
    spool.append(&[game(9), game(11)]).unwrap();
    spool.refuse(game(11).id, "not this one").unwrap();
    drop(spool);
    // The file that the actor was writing when it died: one whole game, and the beginning of another.
    let mut bytes = Vec::new();
    frame::append(GAME, &[&game(6).bytes], &mut bytes);
    let end = bytes.len() + 9;
    frame::append(GAME, &[&game(7).bytes], &mut bytes);
    fs::write(folder.join("0000000000000003.tmp"), &bytes[..end]).unwrap();
    drop(Naming::open(&folder, "", 1).unwrap());
    let curriculum = Curriculum::open(&folder, &problems(), 5).unwrap();
    let first = Rung { kind: 0, level: 1 };
    assert_eq!(curriculum.note(first, Some(2)).unwrap(), Some(2));
    fs::remove_file(folder.join("lock")).unwrap();
}

#[test]
fn every_golden_spool_is_read() {
    for golden in all_golden(env!("CARGO_MANIFEST_DIR"), "spool") {
        let context = golden.display().to_string();
        let folder = tempfile::tempdir().unwrap();
        copy_folder(&golden, folder.path());
        let (spool, recovered) = Spool::open(folder.path().into(), LIMIT).unwrap();
        let expected = Recovered {
            games: 5,
            damage: vec![],
        };
        assert_eq!(recovered, expected, "{context}");
        // A refused game comes again with the others of its file.
        assert_eq!(waiting(&spool), [5, 3, 9, 11, 6], "{context}");
        let refused = folder
            .path()
            .join("refused")
            .join(format!("{}.games", game(11).id));
        let refused = fs::read(refused).unwrap();
        assert_eq!(folder::game(&refused).unwrap().game_number, 11, "{context}");
        let naming = Naming::open(folder.path(), "", 1).unwrap();
        assert!(naming.name.starts_with("actor-"), "{context}");
        assert_eq!(naming.next_game().unwrap().0, 256, "{context}");
        let curriculum = Curriculum::open(folder.path(), &problems(), 5).unwrap();
        assert_eq!(curriculum.progress(0).level, 2, "{context}");
        spool.append(&[game(20)]).unwrap();
        assert_eq!(waiting(&spool), [5, 3, 9, 11, 6, 20], "{context}");
    }
}
