//! Watching a label: a stream of the versions that it points at.

use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};

use crate::{Error, Manifest, Repository, Version};

/// Longest interval between two attempts after failures.
const SLOWEST_POLL: Duration = Duration::from_secs(30);

struct LabelWatch {
    repository: Repository,
    label: String,
    poll: Duration,
    last: Option<Version>,
    /// Number of failures since the last success.
    failures: u32,
}

impl Repository {
    /// Streams the versions that `label` points at, beginning with the present one. The stream never ends.
    ///
    /// The store is read every `poll` (at least 1 ms) while the consumer waits; nothing runs otherwise, and dropping the
    /// stream ends the watch. Each version is yielded once. If several came while the consumer was busy, only the newest is
    /// yielded. The stream waits for a label that does not exist yet. A label that is moved back yields the old version
    /// again. Failures of the store and versions that cannot be read are logged, and tried again after growing pauses of at
    /// most 30 s (or `poll`, if that is longer). Waiting for the next version may be cancelled: no version is lost. A
    /// version that the consumer cannot use yet is not yielded again.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use checkpoints::{Draft, LATEST, MODEL, Repository};
    /// use futures::StreamExt as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), checkpoints::Error> {
    /// let repository = Repository::open("memory:///")?;
    /// let mut versions = repository.watch(LATEST, Duration::from_millis(10));
    ///
    /// let version = repository.publish(Draft::default(), vec![(MODEL, "network".into())]).await?;
    /// repository.set_label(LATEST, &version).await?;
    /// let manifest = versions.next().await.expect("the stream never ends");
    /// assert_eq!(manifest.version, version);
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, label: &str, poll: Duration) -> BoxStream<'static, Manifest> {
        let watch = LabelWatch {
            repository: self.clone(),
            label: label.to_owned(),
            poll: poll.max(Duration::from_millis(1)),
            last: None,
            failures: 0,
        };
        stream::unfold(watch, |mut watch| async move {
            let manifest = watch.next().await;
            Some((manifest, watch))
        })
        .boxed()
    }
}

impl LabelWatch {
    async fn next(&mut self) -> Manifest {
        loop {
            match self.look().await {
                Ok(found) => {
                    if self.failures > 0 {
                        tracing::info!(
                            label = self.label,
                            failures = self.failures,
                            "the model store is available again"
                        );
                        self.failures = 0;
                    }
                    if let Some(manifest) = found {
                        self.last = Some(manifest.version.clone());
                        return manifest;
                    }
                }
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    // Failures 1, 2, 4, 8, … are logged, so that a long outage does not fill the disk with log lines.
                    if self.failures.is_power_of_two() {
                        tracing::warn!(label = self.label, failures = self.failures, %error, "cannot check for a new checkpoint");
                    }
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Returns the manifest that the label points at, if it has changed since the last one.
    async fn look(&self) -> Result<Option<Manifest>, Error> {
        match self.repository.label(&self.label).await? {
            Some(version) if self.last.as_ref() != Some(&version) => {
                self.repository.manifest(&version).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn pause(&self) -> Duration {
        let longer = self.poll.saturating_mul(1 << self.failures.min(16));
        longer.min(SLOWEST_POLL.max(self.poll))
    }
}
