//! Tests of the index: it lists games in every order, page by page, whatever has happened to its files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use games::connect_four::ConnectFour;
use proto::v1::{Game, GameFilter, GameSort};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use replay_store::{
    record::filter::Filter,
    settings::Settings,
    store::{Exported, GetError, Listing, Store},
};

use crate::common::{copy_folder, damage_first_game, id, logs, open, put_all_blocking as put, synthetic};

const SORTS: [GameSort; 3] = [GameSort::Time, GameSort::Length, GameSort::Surprise];

/// Returns the settings of a store of Connect Four, whose games end in three ways.
fn settings(folder: &Path, window_positions: u64) -> Settings {
    Settings {
        game: "connect-four".into(),
        ..crate::common::settings(folder, window_positions)
    }
}

/// Returns game `number`. Its ending, actor, model and surprises differ from those of other games, and some games have equal sort keys.
fn game(number: u64) -> Game {
    // Every third game is cut off, if it is not over by then.
    let most = if number.is_multiple_of(3) {
        5 + (number * 7 % 23) as usize
    } else {
        42
    };
    let mut game = synthetic::random::<ConnectFour>(&Default::default(), 1, "", number, most);
    game.finished_at_ms = 1_790_000_000_000 + number * 37 % 101;
    game.actor = format!("actor-{}", number % 4);
    game.model_versions[1] = format!("model-{}", number % 5);
    if !number.is_multiple_of(3) {
        let surprise = (number * 13 % 17) as f32 / 16.0;
        game.policy_surprises = vec![surprise; game.actions.len()];
    }
    game
}

/// Returns the sequence numbers of all games of a list, read in pages of `limit`.
fn list(store: &Store, sort: GameSort, descending: bool, filter: &GameFilter, limit: usize) -> Vec<u64> {
    let filter = Filter::new(Some(filter.clone())).unwrap();
    let mut listing = Listing {
        sort,
        descending,
        limit,
        after: None,
    };
    let mut sequences = Vec::new();
    loop {
        let page = store.page(&listing, &filter);
        assert!(page.games.len() <= limit);
        assert_eq!(page.unreadable, 0);
        sequences.extend(page.games.iter().map(|game| game.sequence));
        match page.next {
            Some(cursor) => listing.after = Some(cursor.place),
            None => return sequences,
        }
    }
}

/// Returns every readable game of the log with its sequence number.
fn all(store: &Store) -> Vec<(u64, Game)> {
    let mut games = Vec::new();
    let mut from = 0;
    while let Some(Exported {
        games: stored, next, ..
    }) = store.export((from, u64::MAX), 64, &Filter::default())
    {
        games.extend(
            stored
                .into_iter()
                .map(|stored| (stored.sequence, stored.game.unwrap())),
        );
        from = next;
    }
    games
}

/// Returns the sequence numbers of all games in the expected order, by sorting them.
fn sorted(games: &[(u64, Game)], sort: GameSort, descending: bool) -> Vec<u64> {
    let mean = |game: &Game| match game.policy_surprises.len() {
        0 => 0.0,
        count => {
            game.policy_surprises
                .iter()
                .map(|&surprise| f64::from(surprise))
                .sum::<f64>()
                / count as f64
        }
    };
    let mut keyed: Vec<(f64, u64)> = games
        .iter()
        .map(|(sequence, game)| match sort {
            GameSort::Length => (game.actions.len() as f64, *sequence),
            GameSort::Surprise => (mean(game), *sequence),
            GameSort::Time | GameSort::Sequence => (game.finished_at_ms as f64, *sequence),
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    if descending {
        keyed.reverse();
    }
    keyed.into_iter().map(|(_, sequence)| sequence).collect()
}

/// Compares the list in every order with the sorted games.
fn check_orders(store: &Store, context: &str) {
    let games = all(store);
    for sort in SORTS {
        for descending in [false, true] {
            let found = list(store, sort, descending, &GameFilter::default(), 7);
            assert_eq!(found, sorted(&games, sort, descending), "{context}: {sort:?}");
        }
    }
}

/// Opens the index of a closed store.
fn database(settings: &Settings) -> sled::Db {
    sled::open(settings.folder.join("index")).unwrap()
}

fn filled(settings: &Settings, count: u64) -> Vec<Game> {
    let games: Vec<Game> = (0..count).map(game).collect();
    let store = open(settings);
    put(&store, &games);
    store.close().unwrap();
    games
}

#[test]
fn every_order_equals_a_sort_of_all_records() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 2_000);
    let store = open(&settings);
    for round in 0..4 {
        // The window is full in the third round, so that games are retired, and volumes removed.
        let games: Vec<Game> = (round * 60..round * 60 + 60).map(game).collect();
        put(&store, &games);
        check_orders(&store, &format!("round {round}"));
    }
    store.close().unwrap();
    let volumes = fs::read_dir(settings.folder.join("volumes")).unwrap().count();
    // sled has a tree of its own for values without a tree.
    assert_eq!(database(&settings).tree_names().len(), volumes + 1);
    let store = open(&settings);
    check_orders(&store, "opened again");
    store.close().unwrap();
}

#[test]
fn filters_narrow_every_order() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000_000);
    filled(&settings, 90);
    let store = open(&settings);
    let games = all(&store);
    let ids = games.iter().step_by(9).map(|(_, game)| game.id.clone()).collect();
    let filter = GameFilter::default;
    let filters = [
        GameFilter {
            endings: vec!["first-won".into()],
            ..filter()
        },
        GameFilter {
            endings: vec!["first-won".into(), "max-actions".into()],
            ..filter()
        },
        GameFilter {
            actors: vec!["actor-2".into()],
            ..filter()
        },
        GameFilter {
            model_versions: vec!["model-3".into()],
            ..filter()
        },
        GameFilter {
            model_versions: vec!["model-3".into()],
            endings: vec!["first-won".into()],
            ..filter()
        },
        GameFilter {
            min_positions: 10,
            max_positions: 20,
            ..filter()
        },
        GameFilter {
            max_positions: 9,
            ..filter()
        },
        GameFilter {
            finished_from_ms: 1_790_000_000_020,
            finished_before_ms: 1_790_000_000_070,
            ..filter()
        },
        GameFilter {
            endings: vec!["nosuch".into()],
            ..filter()
        },
        GameFilter { ids, ..filter() },
    ];
    for filter in filters {
        let plain = Filter::new(Some(filter.clone())).unwrap();
        let fitting: Vec<(u64, Game)> = games
            .iter()
            .filter(|(_, game)| plain.fits(&game.id, game.actions.len() as u32, game))
            .cloned()
            .collect();
        for sort in SORTS {
            for descending in [false, true] {
                let found = list(&store, sort, descending, &filter, 4);
                assert_eq!(found, sorted(&fitting, sort, descending), "{sort:?} {filter:?}");
            }
        }
    }
    store.close().unwrap();
}

#[test]
fn paging_lists_each_game_once_while_games_are_appended() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000_000);
    filled(&settings, 100);
    let store = open(&settings);
    for (sort, descending) in SORTS.into_iter().flat_map(|sort| [(sort, false), (sort, true)]) {
        let before: Vec<u64> = all(&store).into_iter().map(|(sequence, _)| sequence).collect();
        let mut next = before.len() as u64;
        let mut listing = Listing {
            sort,
            descending,
            limit: 9,
            after: None,
        };
        let mut found = Vec::new();
        loop {
            let page = store.page(&listing, &Filter::default());
            found.extend(page.games.iter().map(|game| game.sequence));
            let Some(cursor) = page.next else { break };
            listing.after = Some(cursor.place);
            put(&store, &[game(next)]);
            next += 1;
        }
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), found.len(), "{sort:?}: a game is listed twice");
        assert!(
            before.iter().all(|sequence| once.contains(sequence)),
            "{sort:?}: a game is missing"
        );
    }
    store.close().unwrap();
}

#[test]
fn deleted_games_leave_the_lists() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 4_000);
    filled(&settings, 60);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = open(&settings);
    runtime
        .block_on(store.delete((1..=60).step_by(4).collect()))
        .unwrap();
    check_orders(&store, "deleted");
    store.close().unwrap();
    let store = open(&settings);
    assert_eq!(all(&store).len(), 45);
    check_orders(&store, "opened again");
    assert_eq!(store.losses(), []);
    store.close().unwrap();
}

/// Opens the store after `damage` to its index, and checks that nothing is lost and every order is right.
fn survives(whole: &Settings, games: &[Game], context: &str, damage: &dyn Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let hurt = settings(folder.path(), 4_000);
    copy_folder(&whole.folder, &hurt.folder);
    damage(&hurt.folder.join("index"));
    for opening in 0..2 {
        let store = open(&hurt);
        let context = format!("{context}, opening {opening}");
        assert_eq!(store.losses(), [], "{context}");
        assert_eq!(all(&store).len(), games.len(), "{context}");
        for game in games {
            assert_eq!(&store.get(&id(game)).unwrap(), game, "{context}");
        }
        check_orders(&store, &context);
        assert_eq!(store.stats().games_inserted, games.len() as u64, "{context}");
        store.close().unwrap();
    }
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

#[test]
fn a_missing_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(folder.path(), 4_000);
    let games = filled(&whole, 70);
    survives(&whole, &games, "no index", &|index| {
        fs::remove_dir_all(index).unwrap()
    });
    survives(&whole, &games, "no index of one volume", &|index| {
        let database = sled::open(index).unwrap();
        assert!(database.drop_tree(1u64.to_be_bytes()).unwrap());
        database.flush().unwrap();
    });
}

#[test]
fn an_index_older_than_the_log_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(folder.path(), 4_000);
    let old = tempfile::tempdir().unwrap();
    let mut games: Vec<Game> = Vec::new();
    let mut olds = Vec::new();
    for part in 0..5u64 {
        let more: Vec<Game> = (part * 14..part * 14 + 14).map(game).collect();
        let store = open(&whole);
        put(&store, &more);
        store.close().unwrap();
        games.extend(more);
        let copy = old.path().join(part.to_string());
        copy_folder(&whole.folder.join("index"), &copy);
        olds.push(copy);
    }
    for copy in olds {
        survives(
            &whole,
            &games,
            &format!("index as of {}", copy.display()),
            &|index| {
                fs::remove_dir_all(index).unwrap();
                copy_folder(&copy, index);
            },
        );
    }
}

#[test]
fn an_index_of_another_version_or_log_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(folder.path(), 4_000);
    let games = filled(&whole, 70);
    let other = settings(&folder.path().join("other"), 4_000);
    let store = open(&other);
    put(&store, &(1_000..1_070).map(game).collect::<Vec<_>>());
    store.close().unwrap();
    survives(&whole, &games, "the index of another store", &|index| {
        fs::remove_dir_all(index).unwrap();
        copy_folder(&other.folder.join("index"), index);
    });
    let in_each_tree = |index: &Path, change: &dyn Fn(&sled::Tree, sled::IVec)| {
        let database = sled::open(index).unwrap();
        for name in database.tree_names() {
            let tree = database.open_tree(name).unwrap();
            if let Some((key, _)) = tree.last().unwrap() {
                change(&tree, key);
            }
        }
        database.flush().unwrap();
    };
    // A group without a version, and without games.
    let other_version = zstd::bulk::compress(b"", 3).unwrap();
    survives(&whole, &games, "another version", &|index| {
        in_each_tree(index, &|tree, key| {
            drop(tree.insert(key, &other_version[..]).unwrap())
        });
    });
    survives(&whole, &games, "missing entries", &|index| {
        in_each_tree(index, &|tree, key| drop(tree.remove(key).unwrap()));
    });
    survives(&whole, &games, "another first entry", &|index| {
        in_each_tree(index, &|tree, _| {
            let (key, _) = tree.first().unwrap().unwrap();
            tree.remove(key).unwrap();
        });
    });
}

/// sled writes a large node to a file whose name can be taken after a crash, see `src/index.rs`.
#[test]
fn sled_writes_no_node_of_the_index_to_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1_000_000);
    let games = filled(&settings, 6_000);
    let blobs = files(&settings.folder.join("index/blobs"));
    assert_eq!(blobs, Vec::<PathBuf>::new());
    let store = open(&settings);
    assert_eq!(store.stats().games_inserted, games.len() as u64);
    store.close().unwrap();
}

#[test]
fn zeroed_sectors_of_the_index_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(folder.path(), 4_000);
    let games = filled(&whole, 70);
    let files = files(&whole.folder.join("index"));
    let mut random = ChaCha8Rng::seed_from_u64(9);
    for round in 0..24 {
        let file = &files[random.random_range(0..files.len())];
        let inside = file.strip_prefix(whole.folder.join("index")).unwrap();
        let length = fs::metadata(file).unwrap().len() as usize;
        let written = fs::read(file)
            .unwrap()
            .iter()
            .rposition(|&byte| byte != 0)
            .unwrap_or(0);
        let at = random.random_range(0..=written) / 512 * 512;
        let end = (at + 512 * random.random_range(1..9)).min(length);
        let context = format!("round {round}: {} zeroed from {at} to {end}", inside.display());
        survives(&whole, &games, &context, &|index| {
            let file = index.join(inside);
            let mut bytes = fs::read(&file).unwrap();
            bytes[at..end].fill(0);
            fs::write(&file, bytes).unwrap();
        });
    }
}

#[test]
fn damage_behind_a_whole_index_is_found_when_the_game_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 4_000);
    let games = filled(&settings, 40);
    damage_first_game(&logs(&settings)[0]);

    let store = open(&settings);
    let id = id(&games[0]);
    let listing = Listing {
        sort: GameSort::Time,
        descending: true,
        limit: 100,
        after: None,
    };
    let page = store.page(&listing, &Filter::default());
    assert_eq!((page.games.len(), page.unreadable), (39, 1));
    assert!(matches!(store.get(&id), Err(GetError::Damaged { .. })));
    assert_eq!(store.stats().damaged_games, 1);
    store.close().unwrap();
    // The next opening scans that volume, and records the loss once.
    let store = open(&settings);
    assert_eq!(store.losses().len(), 1);
    assert_eq!(store.get(&id), Err(GetError::Unknown));
    check_orders(&store, "a lost game");
    store.close().unwrap();
    let store = open(&settings);
    assert_eq!(store.losses(), []);
    assert_eq!(store.stats().damaged_games, 1);
    store.close().unwrap();
}
