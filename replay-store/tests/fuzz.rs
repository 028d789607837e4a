//! Random bytes for the readers of the store's files and of games on the wire.

use prost::Message as _;
use proto::v1::Game;
use replay_store::{
    exchange::archive::{Header, Reader, Writer},
    log::{frame, ledger::Ledger},
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
    let mut whole = Vec::new();
    frame::encode_record(7, &record, &mut whole).unwrap();
    let ledger = Ledger::default().pack(3);
    let id = [7; 16];
    let examples: [&[u8]; 6] = [
        &whole,
        &frame::encode_name(7, &id),
        &frame::encode_lost(7, Some(&id)),
        &frame::encode_deleted(7),
        &frame::encode_seal(&whole),
        &ledger,
    ];
    fuzz("log frame", &examples, |bytes| {
        frame::decode_part(bytes).is_some()
            | frame::decode_name(bytes).is_some()
            | frame::decode_lost(bytes).is_some()
            | frame::decode_deleted(bytes).is_some()
            | frame::decode_seal(bytes, 0).is_some()
            | Ledger::unpack(bytes).is_some()
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
