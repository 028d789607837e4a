//! Damaged files of a store that a start reads, and their repair: [`Repository::faults`], [`Repository::repair`].

use std::{collections::BTreeSet, time::Duration};

use object_store::{ObjectStoreExt as _, path::Path as StorePath};

use crate::{
    BEST, Error, LATEST, Manifest, OPTIMIZER, Repository, Version, WEIGHTS, milestones, repository::MANIFEST,
};

/// Folder of the files of checkpoints that were set aside.
const DAMAGED: &str = "damaged";

/// A file that cannot be read, or differs from what was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the file in the store.
    pub file: String,
    /// Reason.
    pub reason: String,
    /// True if a newer build wrote the file, which is not damaged then.
    pub is_newer: bool,
}

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// Adds the fault of a file that could not be read. An error of the store is none of the file.
    fn note<T>(&mut self, file: &str, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                self.0.push(Fault {
                    file: file.to_owned(),
                    reason: error.to_string(),
                    is_newer: matches!(error, Error::Schema { .. }),
                });
                Ok(None)
            }
        }
    }
}

impl Repository {
    /// Reads the lease, all labels and all manifests, and verifies the files of the checkpoints with labels and of the newest one.
    ///
    /// # Errors
    /// [`Error::Store`] and [`Error::Io`]: the store does not answer.
    pub async fn faults(&self) -> Result<Vec<Fault>, Error> {
        let mut faults = Faults::default();
        faults.note("leases/latest.json", self.check_lease().await)?;
        let mut used = BTreeSet::new();
        for label in self.label_names().await? {
            let file = format!("labels/{label}.json");
            let Some(Some(version)) = faults.note(&file, self.label(&label).await)? else {
                continue;
            };
            // A damaged manifest is found below.
            if let Err(error @ Error::NotFound { .. }) = self.manifest(&version).await {
                faults.note::<()>(&file, Err(error))?;
            }
            used.insert(version);
        }
        for version in self.version_folders().await? {
            let file = format!("versions/{version}/{MANIFEST}");
            faults.note(&file, self.find_manifest(&version).await)?;
        }
        let sound = self.list().await?;
        used.extend(sound.last().map(|newest| newest.version.clone()));
        for manifest in sound.iter().filter(|manifest| used.contains(&manifest.version)) {
            for file in manifest.files.keys() {
                let path = format!("versions/{}/{file}", manifest.version);
                faults.note(&path, self.fetch(manifest, file).await)?;
            }
        }
        Ok(faults.0)
    }

    /// Repairs damage that would keep a learner or a rating from starting, and returns a sentence about each thing done. No process may use
    /// the store. A damaged lease is set aside, and so are the newest checkpoints up to the first one from which training can resume. A damaged label points at the
    /// newest checkpoint then, that of a milestone at the first one of its time, and others are set aside. Nothing is deleted.
    ///
    /// # Errors
    /// [`Error::Refused`] if a learner holds the lease, or if no checkpoint is sound, and nothing but the lease was changed; [`Error::Store`]
    /// and [`Error::Io`].
    pub async fn repair(&self) -> Result<Vec<String>, Error> {
        if self.is_leased().await? {
            let reason = "a learner publishes to the model store; stop it, then repair";
            return Err(Error::Refused(reason.into()));
        }
        let mut done = Vec::new();
        if is_damaged(&self.check_lease().await) {
            self.set_aside(&self.lease_path()).await?;
            done.push("leases/latest.json is set aside: the next learner takes a new lease".to_owned());
        }
        let Some(newest) = self.newest_sound(&mut done).await? else {
            return Ok(done);
        };
        for label in self.label_names().await? {
            let read = self.label(&label).await;
            let points_at = match &read {
                Ok(Some(version)) => self.manifest(version).await.map(drop),
                _ => Ok(()),
            };
            if !is_damaged(&read) && !is_damaged(&points_at) {
                continue;
            }
            let token = (label == LATEST).then_some(newest.token);
            let to = match milestones::time(&label) {
                Some(time) => self.first_after(time).await?,
                None => [LATEST, BEST]
                    .contains(&label.as_str())
                    .then(|| newest.version.clone()),
            };
            self.set_aside(&self.label_path(&label)?).await?;
            done.push(match to {
                Some(version) => {
                    self.move_label(&label, None, Some(&version), token).await?;
                    format!("labels/{label}.json points at {version} now")
                }
                None => format!("labels/{label}.json is set aside, and no checkpoint has this label now"),
            });
        }
        Ok(done)
    }

    /// Returns the newest checkpoint from which training can resume, after setting those aside that are newer. `None`: there is none at all.
    async fn newest_sound(&self, done: &mut Vec<String>) -> Result<Option<Manifest>, Error> {
        let mut damaged: Vec<Version> = Vec::new();
        for version in self.version_folders().await? {
            if is_damaged(&self.find_manifest(&version).await) {
                damaged.push(version);
            }
        }
        let mut sound = None;
        for manifest in self.list().await?.into_iter().rev() {
            if self.resumes(&manifest).await? {
                sound = Some(manifest);
                break;
            }
            damaged.push(manifest.version);
        }
        if sound.is_none() && !damaged.is_empty() {
            return Err(Error::Refused(
                "training can resume from none of the checkpoints: restore the model store from a copy"
                    .into(),
            ));
        }
        for version in damaged {
            for object in self.objects(&version).await? {
                let name = object.location.filename().unwrap_or_default();
                let aside = self.below(DAMAGED).join(version.as_str()).join(name);
                self.store.rename(&object.location, &aside).await?;
            }
            done.push(format!(
                "checkpoint {version} is damaged and is moved to {DAMAGED}/{version}"
            ));
        }
        Ok(sound)
    }

    /// True if the files from which training resumes are sound. The learner exports `model.onnx` again.
    async fn resumes(&self, manifest: &Manifest) -> Result<bool, Error> {
        for file in [WEIGHTS, OPTIMIZER]
            .into_iter()
            .filter(|file| manifest.files.contains_key(*file))
        {
            match self.fetch(manifest, file).await {
                Err(error) if error.is_damage() => return Ok(false),
                fetched => fetched.map(drop)?,
            }
        }
        Ok(true)
    }

    /// Returns the first checkpoint with at least this time of training.
    async fn first_after(&self, time: Duration) -> Result<Option<Version>, Error> {
        let mut listed = self.list().await?.into_iter();
        let found = listed.find(|manifest| Duration::from_millis(manifest.draft.trained_ms) >= time);
        Ok(found.map(|manifest| manifest.version))
    }

    /// Renames a small object, so that no program reads it and a person can.
    async fn set_aside(&self, path: &StorePath) -> Result<(), Error> {
        let aside = StorePath::parse(format!("{path}.damaged"));
        let aside = aside.map_err(|error| Error::Refused(error.to_string()))?;
        Ok(self.store.rename(path, &aside).await?)
    }
}

fn is_damaged<T>(read: &Result<T, Error>) -> bool {
    read.as_ref().is_err_and(Error::is_damage)
}
