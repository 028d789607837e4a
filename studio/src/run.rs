//! [`Run`]: folder, name and configuration of the run that is shown. [`Kept`]: the checkpoints that its store keeps, with their names.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use checkpoints::{Repository, Version, milestones};
use config::RunConfig;
use games::{
    erased::AnyGame,
    registry::{self, UnknownGame},
};
use network::ModelName;

use crate::figures::words::count;

/// The run that is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Folder of the run, absolute.
    pub folder: PathBuf,
    /// Name for people: the last part of the folder's path.
    pub name: String,
    /// Configuration of the run.
    pub config: RunConfig,
    /// True if the roles run elsewhere, e.g. in containers, so that the folder has figures alone.
    pub is_elsewhere: bool,
}

impl Run {
    /// Reads the configuration of the run in `folder`.
    ///
    /// # Errors
    /// There is no such folder, or it has no configuration that can be used.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = std::fs::canonicalize(folder).ok().with_context(|| {
            let folder = folder.display();
            format!("there is no folder {folder}; `minuet up` makes a run, and --run names it")
        })?;
        let file = path.join("run.toml");
        let config = config::load(&file)
            .with_context(|| format!("{} is not the configuration of a run", file.display()))?;
        let is_elsewhere = launcher::run::folder::is_followed(&path);
        // The folder of a run elsewhere is the studio's own.
        let named = path.file_name().filter(|_| !is_elsewhere);
        let name = named.map_or_else(|| config.game.title(), |name| name.to_string_lossy().into_owned());
        Ok(Self {
            is_elsewhere,
            folder: path,
            name,
            config,
        })
    }

    /// The game of the run, with the size of its board.
    ///
    /// # Errors
    /// [`UnknownGame`] if this build does not know the game.
    pub fn game(&self) -> Result<&'static AnyGame, UnknownGame> {
        registry::find(&self.config.game.title())
    }
}

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
