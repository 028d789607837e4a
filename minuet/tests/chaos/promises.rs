//! What must hold whatever happened to a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use checkpoints::Repository;
use onnx::model::metadata_of;
use serde_json::Value;

use crate::{faults::Tally, run::Run};

/// Largest rise of the policy loss from one line of metrics to the next, in nats: batches of 32 are noisy, and a network that was
/// lost would start again some nats higher.
const JUMP: f64 = 1.0;

/// Who saw what was stored, and asks for it in the end.
#[derive(Default)]
pub struct Witness {
    seen: BTreeSet<Vec<u8>>,
    last: BTreeSet<Vec<u8>>,
    lost: usize,
    checkpoints: usize,
    lines: usize,
    uses: f64,
}

impl Witness {
    /// Notes all stored games; none may be there twice.
    pub fn look(&mut self, run: &mut Run) {
        self.last = run.game_ids();
        self.seen.extend(self.last.iter().cloned());
    }

    pub fn wait_for_a_new_game(&mut self, run: &mut Run) {
        let seen = &self.seen;
        run.wait_for_game(|game| !seen.contains(&game.id.to_vec()));
    }

    pub fn newest_step(&self, folder: &Path) -> u64 {
        let newest = manifests(folder).into_values().map(|manifest| manifest.step);
        newest.max().unwrap_or_default()
    }

    /// Everything that was promised, once the run has stopped.
    pub fn judge(&mut self, folder: &Path, tally: &Tally, max_uses: f64) {
        self.judge_games(folder, tally);
        self.judge_checkpoints(folder, tally, max_uses);
        self.judge_losses(folder);
    }

    /// A game that was stored is there; but for those that were in a damaged volume, and these are counted by the store.
    fn judge_games(&mut self, folder: &Path, tally: &Tally) {
        let missing: Vec<String> = self
            .seen
            .difference(&self.last)
            .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        assert!(
            tally.damaged_volumes > 0 || missing.is_empty(),
            "missing: {missing:?}"
        );
        let logs = fs::read_dir(folder.join("logs")).unwrap().flatten();
        let said: String = logs
            .filter_map(|entry| fs::read_to_string(entry.path()).ok())
            .collect();
        let reports: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("an acknowledged game is lost"))
            .collect();
        let without_id = reports.iter().filter(|line| line.contains("unknown")).count();
        let unreported = missing
            .iter()
            .filter(|id| !reports.iter().any(|line| line.contains(*id)));
        let unreported: Vec<&String> = unreported.collect();
        assert!(
            unreported.len() <= without_id,
            "missing, and not reported as lost: {unreported:?}"
        );
        self.lost = missing.len();
    }

    /// Every checkpoint is whole, but for those that were damaged on purpose, which are known to be; none was trained on more than
    /// was there to be.
    fn judge_checkpoints(&mut self, folder: &Path, tally: &Tally, max_uses: f64) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let repository = Repository::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
        for (version, manifest) in manifests(folder) {
            for file in manifest.files.keys() {
                let fetched = runtime.block_on(repository.fetch(&manifest, file));
                let is_damaged = file == checkpoints::MODEL && tally.damaged_checkpoints.contains(&version);
                assert_eq!(fetched.is_err(), is_damaged, "{version}/{file}");
                if file == checkpoints::MODEL && !is_damaged {
                    let metadata = metadata_of(&fetched.unwrap()).unwrap();
                    assert_eq!(metadata.step, manifest.step, "{version}");
                }
            }
            let progress = &manifest.learner_state["progress"];
            let inserted = progress["inserted"].as_f64().unwrap_or_default();
            let samples = progress["samples"].as_f64().unwrap_or_default();
            if inserted > 0.0 {
                // A batch that is asked for may end beyond the bound.
                let uses = (samples - 64.0) / inserted;
                assert!(uses <= max_uses, "{version}: {uses} uses a position");
                self.uses = self.uses.max(samples / inserted);
            }
            self.checkpoints += 1;
        }
        assert!(self.checkpoints > 1);
    }

    /// The loss goes on from where it was: no fault has cost the network.
    fn judge_losses(&mut self, folder: &Path) {
        let text = fs::read_to_string(folder.join("learner/metrics.jsonl")).unwrap();
        let mut before: Option<f64> = None;
        for line in text.lines() {
            // A learner that was killed may have left half a line.
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if line["steps"] == 0 {
                continue;
            }
            let loss = line["policy_loss"].as_f64().unwrap();
            if let Some(before) = before {
                assert!(loss - before < JUMP, "step {}: {before} to {loss}", line["step"]);
            }
            before = Some(loss);
            self.lines += 1;
        }
        assert!(self.lines > 1);
    }
}

fn manifests(folder: &Path) -> BTreeMap<String, checkpoints::Manifest> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repository = Repository::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
    let manifests = runtime.block_on(repository.list()).unwrap();
    manifests
        .into_iter()
        .map(|manifest| (manifest.version.to_string(), manifest))
        .collect()
}

impl fmt::Display for Witness {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} games seen stored, {} of them in damaged volumes and reported; {} checkpoints, {:.3} samples a position; \
             {} lines of losses without a break",
            self.seen.len(),
            self.lost,
            self.checkpoints,
            self.uses,
            self.lines
        )
    }
}
