//! Writes a golden folder: a small store with kept, retired, deleted and lost games, an archive, and their expected contents.

use std::{fs, path::Path};

use prost::Message as _;
use proto::v1::Game;
use replay_store::{
    exchange::archive::{Header, Writer},
    settings::Settings,
    store::{Store, append::Verdict},
};
use serde_json::{Value, json};

use crate::common::{id, logs, open, settings, synthetic};

/// Number of games that were ever stored.
const GAMES: u64 = 24;

/// Returns the settings of the golden store in `folder`. Four volumes are kept and older ones are removed.
pub fn golden_settings(folder: &Path) -> Settings {
    Settings {
        folder: folder.join("store"),
        // The archive is not a folder, because `archived.json` would contain its path.
        archive: "memory:///games".into(),
        ..settings(folder, 64)
    }
}

fn game(number: u64) -> Game {
    let game = synthetic::game(number, 3 + number as usize % 4);
    match number % 3 {
        0 => game,
        _ => synthetic::with_decisions(game),
    }
}

/// Returns the checksum of a stored game's message.
pub fn fingerprint(game: &Game) -> String {
    format!("{:08x}", crc32fast::hash(&game.encode_to_vec()))
}

fn put(store: &Store, game: &Game) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(store.put(game)).unwrap(), Verdict::Stored);
}

/// Writes the folder, which must not exist.
pub fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let settings = golden_settings(folder);
    let store = open(&settings);
    for number in 0..GAMES {
        put(&store, &game(number));
    }
    store.batch(1, 0, 20).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(
        runtime.block_on(store.put(&game(23))).unwrap(),
        Verdict::Duplicate
    );
    // Sequence numbers begin with 1.
    runtime.block_on(store.delete(vec![GAMES - 1])).unwrap();
    while !settings.folder.join("archived.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    store.close().unwrap();
    lose_a_game(&settings);

    let store = open(&settings);
    let kept: Vec<(u64, Game)> = (0..GAMES)
        .filter_map(|number| Some((number + 1, store.get(&id(&game(number))).ok()?)))
        .collect();
    let known: Vec<String> = (0..GAMES)
        .map(game)
        .filter(|game| store.are_known(&[id(game)])[0])
        .map(|game| hex(&game))
        .collect();
    let stats = store.stats();
    store.close().unwrap();
    for derived in ["index", "lock", "address"] {
        let path = settings.folder.join(derived);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }

    let header = Header {
        game: "paco-sako".into(),
        options: 1,
        written_by: "minuet (golden)".into(),
    };
    let mut archive = Writer::new(Vec::new(), &header).unwrap();
    let mut games = Vec::new();
    for (sequence, game) in &kept {
        archive.add(game).unwrap();
        games.push(json!({ "sequence": sequence, "id": hex(game), "crc32": fingerprint(game) }));
    }
    fs::write(folder.join("games.minuet"), archive.finish().unwrap().0).unwrap();
    let expected: Value = json!({
        "games": games,
        "known": known,
        "games_inserted": stats.games_inserted,
        "positions_inserted": stats.positions_inserted,
        "positions_sampled": stats.positions_sampled,
        "duplicates": stats.duplicates,
        "damaged_games": stats.damaged_games,
    });
    let text = serde_json::to_string_pretty(&expected).unwrap();
    fs::write(folder.join("expected.json"), text + "\n").unwrap();
}

/// Damages the newest game and opens the store, which records the loss.
fn lose_a_game(settings: &Settings) {
    let logs = logs(settings);
    let log = logs.last().unwrap();
    let mut bytes = fs::read(log).unwrap();
    let at = memchr::memmem::rfind(&bytes, b"MnG").unwrap();
    bytes[at + 40] ^= 1;
    fs::write(log, bytes).unwrap();
    fs::remove_dir_all(settings.folder.join("index")).unwrap();
    let store = open(settings);
    assert_eq!(store.losses().len(), 1);
    store.close().unwrap();
}

pub fn hex(game: &Game) -> String {
    format!("{:032x}", u128::from_be_bytes(id(game)))
}
