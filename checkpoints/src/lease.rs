//! Who may publish: one learner at a time holds a label's lease, and each holder has a higher token than all before it.
//!
//! The lease is `leases/<label>.json`. Its holder rewrites it every few seconds; whoever wants it waits until it is given
//! back or stands still for [`LeaseTimes::expires`], measured by the waiting side's own clock, and takes it with the
//! next token by a conditional write. The token is then put on the label, and a label takes no write with a lower one: a
//! holder that was stopped or cut off, and wakes up replaced, cannot move it any more, however late its write arrives (a
//! *fencing token*: Kleppmann, "How to do distributed locking", 2016). A checkpoint that such a holder still makes visible has a lower token than
//! its successor's and is passed over by [`Repository::newest`]. No two clocks are ever compared.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use object_store::path::Path as StorePath;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::{
    Draft, Error, Manifest, Pruned, Repository, Version,
    manifest::{self, SCHEMA, now_ms},
    swap::Seen,
};

/// So often somebody else may be faster before taking a lease is given up.
const MAX_TRIES: u32 = 32;

/// `leases/<label>.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    schema: u64,
    token: u64,
    holder: String,
    /// Rewritten so many times: a lease whose beat stands still is not held any more.
    beat: u64,
    is_released: bool,
    /// For people who look; nothing depends on it.
    beaten_at_ms: u64,
}

/// How a lease's holder and those who wait for it keep time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How often the holder rewrites it, and those who wait look at it.
    pub beat: Duration,
    /// A lease that was not rewritten for this long may be taken; several beats.
    pub expires: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(5),
            expires: Duration::from_secs(30),
        }
    }
}

/// The right to publish under a label, for as long as nobody else takes it. Dropping it ends the beat but gives nothing back, as a
/// crash would; see [`Lease::release`].
#[derive(Debug)]
pub struct Lease {
    held: Arc<Held>,
    lost: watch::Receiver<Option<u64>>,
    keeper: JoinHandle<()>,
}

#[derive(Debug)]
struct Held {
    repository: Repository,
    label: String,
    path: StorePath,
    holder: String,
    token: u64,
    /// The token of whoever took over.
    lost: watch::Sender<Option<u64>>,
}

impl Repository {
    /// Waits until nobody else holds the lease of `label`, and takes it. `holder` identifies the process over its
    /// restarts: where the lease names the same one, it is taken at once. The caller sees to it that no two processes
    /// that run have the same.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the store has no conditional writes, or ignores their conditions; [`Error::Name`],
    /// [`Error::Schema`]; [`Error::Store`] and [`Error::Io`], after which it may be called again.
    pub async fn lease(&self, label: &str, holder: &str, times: LeaseTimes) -> Result<Lease, Error> {
        let path = self.lease_path(label)?;
        // What was seen last, and since when.
        let mut still: Option<(u64, u64, Instant)> = None;
        loop {
            let seen = self.look(&path).await?;
            let record = seen.as_ref().map(|seen| parse(label, seen)).transpose()?;
            let is_free = record.as_ref().is_none_or(|record| {
                let same = still.filter(|&(token, beat, _)| (token, beat) == (record.token, record.beat));
                let since = same.map_or_else(Instant::now, |(.., since)| since);
                if same.is_none() && !record.is_released && record.holder != holder {
                    tracing::warn!(
                        label,
                        holder = record.holder,
                        token = record.token,
                        "another process publishes here; waiting for its lease"
                    );
                }
                still = Some((record.token, record.beat, since));
                record.is_released || record.holder == holder || since.elapsed() >= times.expires
            });
            if is_free
                && let Some(lease) = self
                    .try_lease(label, holder, record.as_ref(), seen.as_ref(), times)
                    .await?
            {
                return Ok(lease);
            }
            tokio::time::sleep(times.beat).await;
        }
    }

    /// Takes the lease of `label` from whoever holds it, for a process that replaces a publisher on purpose. The other one's next
    /// write is refused, and it learns of it within a beat.
    ///
    /// # Errors
    /// As [`Repository::lease`].
    pub async fn seize(&self, label: &str, holder: &str, times: LeaseTimes) -> Result<Lease, Error> {
        let path = self.lease_path(label)?;
        for _ in 0..MAX_TRIES {
            let seen = self.look(&path).await?;
            let record = seen.as_ref().map(|seen| parse(label, seen)).transpose()?;
            let taken = self.try_lease(label, holder, record.as_ref(), seen.as_ref(), times);
            if let Some(lease) = taken.await? {
                return Ok(lease);
            }
            // Its holder has beaten in between.
        }
        let reason = format!("the lease of `{label}` is rewritten by others all the time");
        Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, reason).into())
    }

    /// Takes the lease if it is still as it was seen.
    async fn try_lease(
        &self,
        label: &str,
        holder: &str,
        record: Option<&Record>,
        seen: Option<&Seen>,
        times: LeaseTimes,
    ) -> Result<Option<Lease>, Error> {
        // The label's token counts as well: somebody may have removed the lease's file.
        let token = record
            .map_or(0, |record| record.token)
            .max(self.label_token(label).await?)
            + 1;
        let (lost, lost_receiver) = watch::channel(None);
        let held = Arc::new(Held {
            repository: self.clone(),
            label: label.to_owned(),
            path: self.lease_path(label)?,
            holder: holder.to_owned(),
            token,
            lost,
        });
        let text = held.record(0, false)?;
        if !self.swap(&held.path, seen, text.clone()).await? {
            return Ok(None);
        }
        // A store that ignores conditions would let two learners publish in turns. Neither of these may happen now.
        for stale in [None, seen] {
            if self.swap(&held.path, stale, text.clone()).await? {
                return Err(Error::Unsupported(
                    "it accepts conditional writes but ignores their condition (If-None-Match, If-Match)"
                        .into(),
                ));
            }
        }
        // From here on no write of an earlier holder moves the label.
        self.move_label(label, None, Some(token)).await?;
        tracing::info!(label, token, "took the lease: this process publishes now");
        let keeper = tokio::spawn(keep(held.clone(), times.beat));
        Ok(Some(Lease {
            held,
            lost: lost_receiver,
            keeper,
        }))
    }

    fn lease_path(&self, label: &str) -> Result<StorePath, Error> {
        crate::version::check_name("label", label)?;
        Ok(self.below("leases").join(format!("{label}.json")))
    }
}

impl Lease {
    /// The fencing token: higher than that of every holder before.
    pub fn token(&self) -> u64 {
        self.held.token
    }

    /// The label that this lease protects, which is also the name of the line of its checkpoints.
    pub fn label(&self) -> &str {
        &self.held.label
    }

    /// The newest checkpoint of the lease's line; see [`Repository::newest_of`].
    ///
    /// # Errors
    /// As there.
    pub async fn newest(&self) -> Result<Option<Manifest>, Error> {
        self.held.repository.newest_of(&self.held.label).await
    }

    /// Removes old checkpoints of the lease's line; see [`Repository::prune`].
    ///
    /// # Errors
    /// As there.
    pub async fn prune(&self, keep: usize) -> Result<Pruned, Error> {
        self.held.repository.prune_line(&self.held.label, keep).await
    }

    /// Where it is held.
    pub fn repository(&self) -> &Repository {
        &self.held.repository
    }

    /// As [`Repository::publish`], by the right of this lease.
    ///
    /// # Errors
    /// As there, and [`Error::Fenced`] where the lease was lost.
    pub async fn publish(&self, draft: Draft, files: Vec<(&str, Bytes)>) -> Result<Version, Error> {
        self.held.check().await?;
        self.held.repository.publish_for(draft, files, Some(self)).await
    }

    /// Points the lease's label at a published version.
    ///
    /// # Errors
    /// As [`Repository::set_label`], and [`Error::Fenced`] where the lease was lost.
    pub async fn set_label(&self, version: &Version) -> Result<(), Error> {
        let held = &self.held;
        let moved = held
            .repository
            .move_label(&held.label, Some(version), Some(held.token))
            .await;
        if let Err(Error::Fenced { found, .. }) = &moved {
            held.lost.send_replace(Some(*found));
        }
        moved
    }

    /// Asks the store whether the lease is still held.
    ///
    /// # Errors
    /// [`Error::Fenced`] where it is not, [`Error::Store`] where nobody knows.
    pub async fn check(&self) -> Result<(), Error> {
        self.held.check().await
    }

    /// Ends when the lease was lost, saying to whom. It is noticed within a beat while the store answers.
    pub async fn lost(&self) -> Error {
        let mut lost = self.lost.clone();
        // The sender lives as long as this lease.
        let found = lost.wait_for(Option::is_some).await.ok().and_then(|found| *found);
        self.held.fenced(found.unwrap_or_default())
    }

    /// What [`Lease::lost`] would say, if it was noticed already.
    pub fn is_lost(&self) -> Option<Error> {
        self.lost.borrow().map(|found| self.held.fenced(found))
    }

    /// Gives the lease back, so that the next holder need not wait. Nothing is published by it afterwards.
    ///
    /// # Errors
    /// [`Error::Store`]; the lease expires then.
    pub async fn release(&self) -> Result<(), Error> {
        self.keeper.abort();
        let held = &self.held;
        // A beat may be on its way.
        while let Ok((seen, record)) = held.read().await {
            let text = held.record(record.beat + 1, true)?;
            if held.repository.swap(&held.path, Some(&seen), text).await? {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Held {
    fn record(&self, beat: u64, is_released: bool) -> Result<Vec<u8>, Error> {
        let record = Record {
            schema: SCHEMA,
            token: self.token,
            holder: self.holder.clone(),
            beat,
            is_released,
            beaten_at_ms: now_ms(),
        };
        serde_json::to_vec(&record).map_err(|error| Error::Draft(error.to_string()))
    }

    fn is_mine(&self, record: &Record) -> bool {
        record.token == self.token && record.holder == self.holder
    }

    fn fenced(&self, found: u64) -> Error {
        Error::Fenced {
            label: self.label.clone(),
            token: self.token,
            found,
        }
    }

    async fn check(&self) -> Result<(), Error> {
        self.read().await.map(drop)
    }

    /// The lease as it lies there, if it is still ours.
    async fn read(&self) -> Result<(Seen, Record), Error> {
        if let Some(found) = *self.lost.borrow() {
            return Err(self.fenced(found));
        }
        let found = match self.repository.look(&self.path).await? {
            Some(seen) => {
                let record = parse(&self.label, &seen)?;
                if self.is_mine(&record) {
                    return Ok((seen, record));
                }
                record.token
            }
            // Removed by hand. Whoever takes it next goes by the label's token.
            None => 0,
        };
        self.lost.send_replace(Some(found));
        Err(self.fenced(found))
    }

    async fn beat(&self) -> Result<(), Error> {
        let (seen, record) = self.read().await?;
        let text = self.record(record.beat + 1, false)?;
        // Where somebody was faster, the next look says who.
        self.repository.swap(&self.path, Some(&seen), text).await?;
        Ok(())
    }
}

/// Rewrites the lease until it is lost.
async fn keep(held: Arc<Held>, beat: Duration) {
    let mut failures = 0_u32;
    loop {
        tokio::time::sleep(beat).await;
        match held.beat().await {
            Ok(()) => failures = 0,
            Err(error @ Error::Fenced { .. }) => {
                tracing::error!(%error, "the lease is lost");
                return;
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                if failures.is_power_of_two() {
                    tracing::warn!(%error, failures, "cannot renew the lease; trying again");
                }
            }
        }
    }
}

fn parse(label: &str, seen: &Seen) -> Result<Record, Error> {
    manifest::parse(&format!("leases/{label}"), &seen.bytes)
}
