//! Random bytes for the readers of the store's files and of games on the wire.

use prost::Message as _;
use proto::v1::Game;
use replay_store::{
    exchange::archive::{Header, Reader, Writer},
    log::{
        frame::{Content, append_seal},
        ledger::Ledger,
    },
    record,
};
use test_support::fuzz;

use crate::common::synthetic;

#[test]
fn fuzz_records() {
    let records = [5, 40].map(|positions| record::encode(synthetic::game(7, positions)).unwrap());
    fuzz("record", &[&records[0], &records[1]], |bytes| {
        let summary = record::summary(bytes);
        let Ok(game) = record::decode(bytes) else {
            return false;
        };
        assert!(summary.is_ok(), "a record is read whose summary is not");
        drop(record::encode(game));
        true
    });
}

#[test]
fn fuzz_frames() {
    let record = record::encode(synthetic::game(7, 5)).unwrap();
    let mut log = Vec::new();
    for content in [
        Content::Game(7, &record),
        Content::Name(7, [7; 16]),
        Content::Lost(7, Some([7; 16])),
        Content::Deleted(7),
        Content::Ledger(Ledger::default()),
    ] {
        content.append(&mut log);
    }
    append_seal(&mut log);
    fuzz("log", &[&log], |bytes| {
        let frames = durable::frame::ranges(bytes).filter_map(|(_, found)| found.ok());
        frames.filter_map(|found| Content::of(&found)).count() > 0
    });
}

#[test]
fn fuzz_archives() {
    let header = Header {
        game: "paco-sako".into(),
        options: 1,
        written_by: "a test".into(),
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.add(&synthetic::game(1, 5)).unwrap();
    let (archive, _) = writer.finish().unwrap();
    fuzz("archive", &[&archive], |bytes| {
        Reader::new(bytes).is_ok_and(|games| games.take_while(Result::is_ok).count() > 0)
    });
}

#[test]
fn fuzz_games() {
    let game = synthetic::game(1, 5).encode_to_vec();
    let validator = record::validate::Validator::new("paco-sako", 1).unwrap();
    fuzz("game for the store", &[&game], |bytes| {
        let Ok(game) = Game::decode(bytes) else {
            return false;
        };
        let is_usable = validator.check(&game).is_ok();
        if is_usable {
            let stored = record::encode(game).unwrap();
            record::decode(&stored).unwrap();
        }
        is_usable
    });
}
