//! [`Kept`]: the checkpoints that the run's store keeps, with their names for people.

use checkpoints::{Repository, Version, milestones};
use network::ModelName;

use crate::{figures::words::count, run::Run};

/// A checkpoint in the run's store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Version.
    pub version: Version,
    /// Training steps.
    pub step: u64,
    /// Time of publication, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Name of the milestone that the checkpoint is, e.g. `minute 8`.
    pub milestone: Option<String>,
    /// Other labels that point at the checkpoint, e.g. `best`.
    pub labels: Vec<String>,
}

impl Kept {
    /// Name for people, e.g. `minute 8, step 735 (best)`.
    pub fn name(&self) -> String {
        let step = format!("step {}", count(self.step as f64));
        let named = match &self.milestone {
            Some(milestone) => format!("{milestone}, {step}"),
            None => step,
        };
        match self.labels.is_empty() {
            true => named,
            false => format!("{named} ({})", self.labels.join(", ")),
        }
    }

    /// Name by which the checkpoint's network is opened.
    pub fn model(&self, run: &Run) -> ModelName {
        ModelName::Folder {
            path: run.folder.clone(),
            version: Some(self.version.as_str().into()),
        }
    }
}

/// The checkpoints that a run keeps, in the order of training.
///
/// # Errors
/// [`checkpoints::Error`] if the store does not answer, or a label cannot be read.
pub async fn kept(run: &Run) -> Result<Vec<Kept>, checkpoints::Error> {
    let repository = Repository::open(&run.config.checkpoints.store)?;
    let labels = repository.labels().await?;
    let manifests = repository.list().await?;
    let named = manifests.into_iter().map(|manifest| {
        let of_this = labels.iter().filter(|(_, version)| **version == manifest.version);
        let (mut milestone, mut others) = (None, Vec::new());
        for (label, _) in of_this {
            match milestones::name(label) {
                Some(name) => milestone = Some(name),
                None => others.push(label.clone()),
            }
        }
        Kept {
            version: manifest.version,
            step: manifest.draft.step,
            created_at_ms: manifest.created_at_ms,
            milestone,
            labels: others,
        }
    });
    Ok(named.collect())
}
