//! `minuet games` on a real run, running and stopped: games are listed, checked, copied to another run, read by NumPy, deleted.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::run::{Run, tiny_run};

/// Runs `minuet games … --run folder`.
fn games(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet"));
    command.arg("games").args(arguments).arg("--run").arg(folder);
    command.output().unwrap()
}

/// Returns the JSON lines that `minuet games` prints.
fn lines(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let done = games(folder, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{arguments:?}: {said}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn ids(folder: &Path, arguments: &[&str]) -> BTreeSet<String> {
    let listed = lines(folder, &[&["list", "--limit", "100000"], arguments].concat());
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
    assert!(ids(&here, &[]).len() >= stored);
    let checked = lines(&here, &["check", "--newest", "5"]);
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
    let all = ids(&here, &[]);
    let first = lines(&here, &["list", "--limit", "100000"]).pop().unwrap();
    let one = first["id"].as_str().unwrap();
    let shown = games(&here, &["show", one]);
    let text = String::from_utf8(shown.stdout).unwrap();
    let plies = text.lines().filter(|line| line.contains(" visits over ")).count();
    assert_eq!(plies as u64, first["positions"].as_u64().unwrap(), "{text}");
    let untrained = first["model_versions"][0].as_str().unwrap();
    let by_untrained = ids(&here, &["--model", untrained]);
    assert!(by_untrained.contains(one) && by_untrained.len() < all.len());

    // An archive is imported into another run; a second import adds no game.
    let archive = folder.path().join("games.minuet");
    let archive = archive.to_str().unwrap();
    let exported = lines(&here, &["export", archive]).pop().unwrap();
    assert_eq!(exported["games"], all.len());
    let there = folder.path().join("there");
    // With `replay.min_uses`, an import is not blocked by the lack of a learner.
    let held = ["run.seed=2", "replay.min_uses=1", "replay.uses_slack=0"];
    let mut other = Run::start(&there, &[&tiny_run()[..], &held].concat());
    let own = {
        other.wait_for_game(|_| true);
        other.stop();
        ids(&there, &[])
    };
    let imported = lines(&there, &["import", archive]).pop().unwrap();
    assert_eq!(
        (&imported["stored"], &imported["duplicates"]),
        (&all.len().into(), &0.into()),
        "{imported}"
    );
    let again = lines(&there, &["import", archive]).pop().unwrap();
    assert_eq!(
        (&again["stored"], &again["duplicates"]),
        (&0.into(), &all.len().into()),
        "{again}"
    );
    assert_eq!(ids(&there, &[]), own.union(&all).cloned().collect());
    let carried = lines(&there, &["check", one, "--rules-only"]);
    assert_eq!(carried[0]["outcome"], "replayed");
    // The other run has no such checkpoint.
    let gone = games(&there, &["check", one, "--json"]);
    assert_eq!(gone.status.code(), Some(4), "{gone:?}");
    let line: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!(line["outcome"], "not tried");

    // A damaged archive is refused with the place of the damage.
    let mut bytes = fs::read(archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    let damaged = folder.path().join("damaged.minuet");
    fs::write(&damaged, bytes).unwrap();
    let refused = games(&there, &["import", damaged.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("damaged.minuet"),
        "{refused:?}"
    );

    read_by_numpy(&here, &folder.path().join("arrays"), &all);

    // Games deleted by model are gone, and an import does not bring them back.
    let dry = lines(&here, &["delete", "--model", untrained, "--dry-run"])
        .pop()
        .unwrap();
    assert_eq!(dry["games"], by_untrained.len());
    assert_eq!(ids(&here, &[]), all);
    lines(&here, &["delete", "--model", untrained]);
    let kept: BTreeSet<String> = all.difference(&by_untrained).cloned().collect();
    assert_eq!(ids(&here, &[]), kept);
    let refused = lines(&here, &["import", archive]).pop().unwrap();
    assert_eq!(refused["stored"], 0, "{refused}");
    assert_eq!(ids(&here, &[]), kept);
}

/// Checks with NumPy that the exported arrays agree with each other and with their description.
fn read_by_numpy(run: &Path, arrays: &Path, all: &BTreeSet<String>) {
    lines(run, &["export", "--numpy", arrays.to_str().unwrap()]);
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
    let done = Command::new(python)
        .args(["-c", program])
        .arg(arrays)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read: BTreeSet<String> = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(&read, all);
}
