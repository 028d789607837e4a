//! Following a label: each version it comes to point at, once.

use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};

use crate::{Error, Manifest, Repository, Version};

/// After failures the store is asked less and less often, down to this.
const SLOWEST_POLL: Duration = Duration::from_secs(30);

struct Watch {
    repository: Repository,
    label: String,
    poll: Duration,
    last: Option<Version>,
    /// Failures since the last success.
    failures: u32,
}

impl Repository {
    /// The versions that `label` comes to point at, beginning with the present one; the stream never ends.
    ///
    /// Each is yielded once; of several that came while the consumer was busy only the newest. A label that does not exist
    /// yet is waited for. A label that is moved back yields the old version again. Failures of the store, and versions
    /// that cannot be read, are logged and tried again, with longer pauses the longer they last.
    /// Nothing runs while the consumer does not ask, and dropping the stream ends the watch. Waiting for the next one may be
    /// given up and begun again: no version is lost by it. Who cannot use a version now must keep it to try again.
    pub fn watch(&self, label: &str, poll: Duration) -> BoxStream<'static, Manifest> {
        let watch = Watch {
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

impl Watch {
    async fn next(&mut self) -> Manifest {
        loop {
            match self.look().await {
                Ok(found) => {
                    if self.failures > 0 {
                        tracing::info!(
                            label = self.label,
                            failures = self.failures,
                            "the model store answers again"
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
                    // At 1, 2, 4, 8, … failures: an outage of a day must not fill the disk with its own log.
                    if self.failures.is_power_of_two() {
                        tracing::warn!(label = self.label, failures = self.failures, %error, "cannot look for a new checkpoint");
                    }
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// The manifest that the label points at, if that is another than last time.
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
