//! Tries a store out before a run needs it: [`Repository::probe`].

use object_store::{ObjectStoreExt as _, path::Path as StorePath};

use crate::{Error, Repository, manifest::now_ms};

/// Folder of the probes' objects.
const PROBES: &str = "probes";

impl Repository {
    /// Writes, reads and removes a small object, and checks that conditional writes are refused if their condition is false.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the store ignores the condition of a write; [`Error::Store`] or [`Error::Io`] if the store does
    /// not answer or refuses.
    pub async fn probe(&self) -> Result<(), Error> {
        let name = format!("{}-{}", std::process::id(), now_ms());
        let path = self.below(PROBES).join(name.as_str());
        let tried = self.try_out(&path).await;
        let removed = self.store.delete(&path).await;
        tried?;
        Ok(removed?)
    }

    async fn try_out(&self, path: &StorePath) -> Result<(), Error> {
        let ignores = |header: &str| Err(Error::Unsupported(format!("the store ignores {header}")));
        if !self.swap(path, None, b"first".to_vec()).await? {
            return Err(Error::Unsupported("the store refuses a new object".into()));
        }
        if self.swap(path, None, b"again".to_vec()).await? {
            return ignores("If-None-Match");
        }
        let Some(seen) = self.look(path).await? else {
            return Err(Error::Unsupported(
                "an object is not found after it was written".into(),
            ));
        };
        if !self.swap(path, Some(&seen), b"second".to_vec()).await? {
            return Err(Error::Unsupported(
                "the store refuses to replace an unchanged object".into(),
            ));
        }
        if self.swap(path, Some(&seen), b"third".to_vec()).await? {
            return ignores("If-Match");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Repository;

    #[tokio::test]
    async fn a_store_with_conditional_writes_passes_and_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for store in [folder.path().to_str().unwrap(), "memory:///run"] {
            let repository = Repository::open(store).unwrap();
            repository.probe().await.unwrap();
            let left = repository.store.list(None);
            let left: Vec<_> = futures::TryStreamExt::try_collect(left).await.unwrap();
            assert!(
                left.iter()
                    .all(|object: &object_store::ObjectMeta| !object.location.as_ref().contains("probes")),
                "{left:?}"
            );
        }
    }
}
