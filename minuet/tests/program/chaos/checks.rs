//! Checks of a run after faults: games, checkpoints and losses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use checkpoints::Repository;
use onnx::model::metadata_of;
use serde_json::Value;

use super::faults::FaultCounts;
use crate::support::{
    acknowledged::{Acknowledged, Stored},
    run::Run,
};

/// Rise of the policy loss that noise explains, in nats. Each line of metrics is the mean of five batches of 32; in a run without faults
/// no line was more than 0.25 above the best one before it.
const NOISE: f64 = 0.6;
/// Training step before the first fault. By then the policy loss has fallen by 0.8, so a lost network is seen.
pub const FIRST_FAULT: u64 = 40;

/// Records the games that are stored and acknowledged during the run, and checks the run's folder at the end.
#[derive(Default)]
pub struct RunChecks {
    seen: BTreeSet<Vec<u8>>,
    acknowledged: Acknowledged,
    lost: usize,
    checkpoints: usize,
    lines: usize,
    uses: f64,
}

impl RunChecks {
    /// Records all stored games and all acknowledgements so far. Panics if a game is stored twice.
    pub fn record_games(&mut self, run: &mut Run, folder: &Path) {
        self.seen.extend(run.game_ids());
        self.acknowledged.read(folder);
    }

    pub fn wait_for_a_new_game(&mut self, run: &mut Run) {
        let seen = &self.seen;
        run.wait_for_game(|game| !seen.contains(&game.id.to_vec()));
    }

    pub fn newest_step(&self, folder: &Path) -> u64 {
        let newest = manifests(folder)
            .into_values()
            .map(|manifest| manifest.draft.step);
        newest.max().unwrap_or_default()
    }

    /// Makes all checks on a run that has stopped.
    pub fn check(&mut self, folder: &Path, counts: &FaultCounts, max_uses: f64) {
        self.check_games(folder, counts);
        self.check_checkpoints(folder, counts, max_uses);
        self.check_losses(folder);
    }

    /// Checks that every acknowledged game is still stored as it was sent, or was in a damaged volume and is reported as lost by the
    /// store.
    fn check_games(&mut self, folder: &Path, counts: &FaultCounts) {
        self.acknowledged.read(folder);
        let stored = Stored::read(folder);
        let missing = self.acknowledged.missing_in(&stored);
        let may_miss = counts.damaged_volumes > 0;
        assert!(may_miss || missing.is_empty(), "missing: {missing:?}");
        let logs = fs::read_dir(folder.join("logs")).unwrap().flatten();
        let texts = logs.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        let log: String = texts.collect();
        let is_report = |line: &&str| line.contains("an acknowledged game is lost");
        let reports: Vec<&str> = log.lines().filter(is_report).collect();
        // Damage since the last start of the store is reported when the store is read.
        let found = |id: &String| stored.damaged.iter().flatten().any(|damaged| damaged == id);
        let unreported: Vec<&String> = missing
            .iter()
            .filter(|id| !found(id) && !reports.iter().any(|line| line.contains(*id)))
            .collect();
        let without_id = reports.iter().filter(|line| line.contains("unknown")).count()
            + stored.damaged.iter().filter(|id| id.is_none()).count();
        let is_explained = unreported.len() <= without_id;
        assert!(is_explained, "missing, and not reported as lost: {unreported:?}");
        self.lost = missing.len();
    }

    /// Checks that every checkpoint can be fetched, except those damaged on purpose, and that none was trained on more samples than
    /// allowed.
    fn check_checkpoints(&mut self, folder: &Path, counts: &FaultCounts, max_uses: f64) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let repository = Repository::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
        for (version, manifest) in manifests(folder) {
            for file in manifest.files.keys() {
                let fetched = runtime.block_on(repository.fetch(&manifest, file));
                let is_damaged = file == checkpoints::MODEL && counts.damaged_checkpoints.contains(&version);
                assert_eq!(fetched.is_err(), is_damaged, "{version}/{file}");
                if file == checkpoints::MODEL && !is_damaged {
                    let metadata = metadata_of(&fetched.unwrap()).unwrap();
                    assert_eq!(metadata.step, manifest.draft.step, "{version}");
                }
            }
            let progress = &manifest.draft.learner_state["progress"];
            let inserted = progress["inserted"].as_f64().unwrap_or_default();
            let samples = progress["samples"].as_f64().unwrap_or_default();
            if inserted > 0.0 {
                // The last batch may exceed the bound.
                let uses = (samples - 64.0) / inserted;
                assert!(uses <= max_uses, "{version}: {uses} uses a position");
                self.uses = self.uses.max(samples / inserted);
            }
            self.checkpoints += 1;
        }
        assert!(self.checkpoints > 1);
    }

    /// Checks the policy losses in the learner's metrics.
    fn check_losses(&mut self, folder: &Path) {
        let text = fs::read_to_string(folder.join("learner/metrics.jsonl")).unwrap();
        // A killed learner may leave an incomplete line.
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["steps"] != 0);
        let losses: Vec<f64> = lines.map(|line| line["policy_loss"].as_f64().unwrap()).collect();
        check_rises(&losses).unwrap_or_else(|problem| panic!("{problem}: {losses:?}"));
        self.lines = losses.len();
    }
}

/// Checks that the loss never rises above the best one so far by half of what was learned. A lost network rises by all of it.
fn check_rises(losses: &[f64]) -> Result<(), String> {
    let first = *losses.first().ok_or("there are no losses")?;
    let mut best = first;
    for &loss in losses {
        let rise = loss - best;
        if rise >= NOISE.max((first - best) / 2.0) {
            return Err(format!("the policy loss rose by {rise:.2}"));
        }
        best = best.min(loss);
    }
    if first - best <= NOISE {
        return Err("the policy loss fell so little that a lost network would not be seen".into());
    }
    Ok(())
}

#[test]
fn a_lost_network_is_seen_from_the_first_fault_on_and_noise_is_not() {
    // From a run without faults, a line for every five steps.
    let run = [
        4.86, 4.75, 4.62, 4.44, 4.29, 4.22, 4.12, 4.01, 4.05, 3.85, 3.85, 3.88, 3.68, 3.85, 3.66, 3.64, 3.44,
        3.48, 3.32, 3.19, 2.92, 2.83, 2.59, 2.42, 2.24, 2.13, 2.36, 2.28, 2.17, 1.97, 2.16,
    ];
    assert_eq!(check_rises(&run), Ok(()));
    for steps in FIRST_FAULT as usize / 5..run.len() {
        let lost = [&run[..=steps], &run[..3]].concat();
        assert!(check_rises(&lost).is_err(), "{lost:?}");
        // Training continues from the checkpoint before the last one.
        let resumed = [&run[..=steps], &run[steps - 1..]].concat();
        assert_eq!(check_rises(&resumed), Ok(()));
    }
    assert!(check_rises(&run[..3]).is_err());
}

fn manifests(folder: &Path) -> BTreeMap<String, checkpoints::Manifest> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repository = Repository::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
    let manifests = runtime.block_on(repository.list()).unwrap().into_iter();
    let named = manifests.map(|manifest| (manifest.version.to_string(), manifest));
    named.collect()
}

impl fmt::Display for RunChecks {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} games acknowledged, {} of them in damaged volumes and reported; {} checkpoints, {:.3} samples a position; \
             {} lines of losses without a jump",
            self.acknowledged.ids.len(),
            self.lost,
            self.checkpoints,
            self.uses,
            self.lines
        )
    }
}
