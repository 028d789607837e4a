//! `minuet games` on a real run, running and stopped: games are listed, checked, copied to another run, read by NumPy, deleted.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::Value;

use crate::support::{
    program::{done, fails, minuet, printed, printed_json, printed_lines},
    run::{Run, tiny_run},
};

/// Returns `minuet games … --run folder`.
fn games(folder: &Path, words: &str) -> Command {
    let mut command = minuet(&format!("games {words} --run"));
    command.arg(folder);
    command
}

/// Returns the JSON lines that `minuet games` prints.
fn lines(folder: &Path, words: &str) -> Vec<Value> {
    printed_lines(games(folder, words).arg("--json"))
}

pub fn ids(folder: &Path, words: &str) -> BTreeSet<String> {
    let listed = lines(folder, &format!("list --limit 100000 {words}"));
    let ids: BTreeSet<String> = listed
        .iter()
        .map(|game| game["id"].as_str().unwrap().into())
        .collect();
    assert_eq!(ids.len(), listed.len(), "a game is listed twice");
    ids
}

#[test]
fn stored_games_can_be_listed_checked_copied_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    // A search can be repeated only while its checkpoint is kept.
    let mut run = Run::start(&here, &[&tiny_run()[..], &["checkpoints.keep=1000"]].concat());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    // A game in which the untrained network, step 0, was not used.
    run.wait_for_game(|game| {
        game.model_versions
            .iter()
            .all(|version| !version.starts_with("000000000000"))
    });

    // The run is running: every record agrees with the rules, and every search is reproduced visit for visit.
    let stored = run.game_ids().len();
    assert!(ids(&here, "").len() >= stored);
    let checked = lines(&here, "check --newest 5");
    assert_eq!(checked.len(), 5);
    for game in &checked {
        assert_eq!(
            (&game["outcome"], &game["problems"]),
            (&"search reproduced".into(), &Value::Array(vec![])),
            "{game}"
        );
    }
    run.stop();

    // The run is stopped: the command opens the folder itself.
    let all = ids(&here, "");
    let first = lines(&here, "list --limit 100000").pop().unwrap();
    let one = first["id"].as_str().unwrap();
    let text = printed(&mut games(&here, &format!("show {one}")));
    let plies = text.lines().filter(|line| line.contains(" visits over ")).count();
    assert_eq!(plies as u64, first["positions"].as_u64().unwrap(), "{text}");
    let untrained = first["model_versions"][0].as_str().unwrap();
    let by_untrained = ids(&here, &format!("--model {untrained}"));
    assert!(by_untrained.contains(one) && by_untrained.len() < all.len());

    // An archive is imported into another run; a second import adds no game.
    let archive = folder.path().join("games.minuet");
    let exported = printed_json(games(&here, "export --json").arg(&archive));
    assert_eq!(exported["games"], all.len());
    let there = folder.path().join("there");
    // With `replay.min_uses`, an import is not blocked by the lack of a learner.
    let held = ["run.seed=2", "replay.min_uses=1", "replay.uses_slack=0"];
    let mut other = Run::start(&there, &[&tiny_run()[..], &held].concat());
    other.wait_for_game(|_| true);
    other.stop();
    let own = ids(&there, "");
    let import = |into: &Path| {
        let imported = printed_json(games(into, "import --json").arg(&archive));
        [&imported["stored"], &imported["duplicates"]].map(|count| count.as_u64().unwrap() as usize)
    };
    assert_eq!(import(&there), [all.len(), 0]);
    assert_eq!(import(&there), [0, all.len()]);
    assert_eq!(ids(&there, ""), own.union(&all).cloned().collect());
    let carried = lines(&there, &format!("check {one} --rules-only"));
    assert_eq!(carried[0]["outcome"], "replayed");
    // The other run has no such checkpoint.
    let gone = done(&mut games(&there, &format!("check {one} --json")));
    assert_eq!(gone.code, Some(4), "{gone:?}");
    assert!(gone.out.contains("\"outcome\":\"not tried\""), "{gone:?}");

    // A damaged archive is refused with the place of the damage.
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    let damaged = folder.path().join("damaged.minuet");
    fs::write(&damaged, bytes).unwrap();
    fails(games(&there, "import").arg(&damaged), 1, "damaged.minuet");

    no_half_written_arrays(&here, folder.path());
    read_by_numpy(&here, &folder.path().join("arrays"), &all);

    // Games deleted by model are gone, and an import does not bring them back.
    let delete = format!("delete --model {untrained}");
    let dry = lines(&here, &format!("{delete} --dry-run")).pop().unwrap();
    assert_eq!(dry["games"], by_untrained.len());
    assert_eq!(ids(&here, ""), all);
    lines(&here, &delete);
    let kept: BTreeSet<String> = all.difference(&by_untrained).cloned().collect();
    assert_eq!(ids(&here, ""), kept);
    assert_eq!(import(&here)[0], 0);
    assert_eq!(ids(&here, ""), kept);
}

/// Checks that a failed export leaves a new folder away, and an empty one empty. No file may exceed 1,024 bytes, as on a full disk.
fn no_half_written_arrays(run: &Path, folder: &Path) {
    let (new, empty) = (folder.join("new"), folder.join("empty"));
    fs::create_dir(&empty).unwrap();
    for arrays in [&new, &empty] {
        let mut limited = Command::new("sh");
        limited.args([
            "-c",
            "trap '' XFSZ; ulimit -f 1; exec \"$0\" games export --numpy \"$1\" --run \"$2\"",
        ]);
        limited.arg(env!("CARGO_BIN_EXE_minuet")).arg(arrays).arg(run);
        fails(&mut limited, 1, "File too large");
    }
    assert!(!new.exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

/// Checks with NumPy that the exported arrays agree with each other and with their description.
fn read_by_numpy(run: &Path, arrays: &Path, all: &BTreeSet<String>) {
    printed(games(run, "export").arg("--numpy").arg(arrays));
    let Some(python) = test_support::python("kserve") else {
        return;
    };
    let program = r"
import json, sys
import numpy as np
folder = sys.argv[1]
described = json.load(open(folder + '/games.json'))
arrays = {}
for name, array in described['arrays'].items():
    path = folder + '/' + array['file']
    mapped = np.memmap(path, dtype=array['dtype'], mode='r', offset=array['offset'], shape=tuple(array['shape']))
    assert (np.load(path) == mapped).all() or mapped.dtype.kind == 'f', name
    arrays[name] = mapped
positions = len(arrays['actions'])
assert len(arrays['row_starts']) == len(arrays['visit_starts']) == positions + 1
assert arrays['row_starts'][-1] == arrays['rows'].size and len(arrays['rows']) == positions
assert set(np.diff(arrays['row_starts'])) == {arrays['rows'].shape[1]}
assert arrays['visit_starts'][-1] == len(arrays['visits']) and arrays['visit_actions'].max() < described['layout']['actions']
# A search stops early at a position that it has solved.
sums = np.add.reduceat(arrays['visits'], arrays['visit_starts'][:-1].astype(int))
assert np.median(sums) >= 6, np.unique(sums, return_counts=True)
for start, end in zip(arrays['visit_starts'], arrays['visit_starts'][1:]):
    assert start < end and arrays['visits'][start:end].sum() >= 1 and len(set(arrays['visit_actions'][start:end])) == end - start
assert set(np.unique(arrays['results'])) <= {-1.0, 0.0, 1.0} and set(np.unique(arrays['movers'])) <= {0, 1}
first_of_each = arrays['plies'] == 0
assert first_of_each.sum() == len(described['games'])
print(json.dumps(sorted(game['id'] for game in described['games'])))
";
    let text = printed(Command::new(python).args(["-c", program]).arg(arrays));
    let read: BTreeSet<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, all);
}
