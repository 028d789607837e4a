//! [`Lease`]: the exclusive right to publish and to move the label [`LATEST`].
//!
//! The lease is the object `leases/latest.json`. The holder rewrites it every few seconds
//! ([`LeaseTimes::beat`]). Another process takes it by a conditional write once the holder has released it, or once it has
//! not changed for [`LeaseTimes::expires`] by the clock of the waiting process. Clocks of two processes are never compared.
//!
//! Each holder has a higher *fencing token* than all holders before it (Kleppmann, "How to do distributed locking", 2016).
//! A new holder first writes its token to the label, and a label refuses writes with a lower token. A former holder that
//! was paused or cut off therefore cannot move the label any more, however late its write arrives. A checkpoint that it
//! still makes visible has a lower token than those of its successor, and [`Repository::newest`] passes over it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use object_store::path::Path as StorePath;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::{
    Draft, Error, LATEST, Repository, Version,
    manifest::{self, SCHEMA, now_ms},
    publish::not_a_checkpoint,
    swap::{Seen, no_leases},
};

/// Contents of `leases/latest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    schema: u64,
    token: u64,
    holder: String,
    /// Number of rewrites by this holder. A lease whose number does not change any more has expired.
    beat: u64,
    is_released: bool,
    /// Time of the last rewrite, for people who read the file; no program uses it.
    beaten_at_ms: u64,
}

/// Intervals of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Interval at which the holder rewrites the lease and waiting processes read it.
    pub beat: Duration,
    /// Time without a rewrite after which another process may take the lease; several beats.
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

/// Exclusive right to publish, until another process takes it over. Dropping the lease stops the rewrites but
/// does not release it: other processes then wait until it expires. [`Lease::release`] releases it.
#[derive(Debug)]
pub struct Lease {
    held: Arc<HeldLease>,
    keeper: JoinHandle<()>,
}

#[derive(Debug)]
struct HeldLease {
    repository: Repository,
    path: StorePath,
    holder: String,
    token: u64,
    /// Token of the process that took over; `None` while the lease is held.
    lost: watch::Sender<Option<u64>>,
}

impl Repository {
    /// Waits until no other process holds the lease, and takes it. `holder` identifies the process across
    /// restarts: a lease of the same holder is taken at once. No two running processes may have the same `holder`; the
    /// caller ensures this.
    ///
    /// # Errors
    /// [`Error::Refused`] if the store has no conditional writes or ignores their conditions; [`Error::Schema`]; [`Error::Store`] and [`Error::Io`], after which the call may be repeated.
    pub async fn lease(&self, holder: &str, times: LeaseTimes) -> Result<Lease, Error> {
        let path = self.lease_path();
        // Token and beat of the last read, and the time since which they have not changed.
        let mut still: Option<(u64, u64, Instant)> = None;
        loop {
            let seen = self.look(&path).await?;
            let record = seen.as_ref().map(parse).transpose()?;
            let is_free = record.as_ref().is_none_or(|record| {
                let same = still.filter(|&(token, beat, _)| (token, beat) == (record.token, record.beat));
                let since = same.map_or_else(Instant::now, |(.., since)| since);
                if same.is_none() && !record.is_released && record.holder != holder {
                    tracing::warn!(
                        holder = record.holder,
                        token = record.token,
                        "waiting for the lease of another publisher"
                    );
                }
                still = Some((record.token, record.beat, since));
                record.is_released || record.holder == holder || since.elapsed() >= times.expires
            });
            if is_free
                && let Some(lease) = self
                    .try_lease(path.clone(), holder, record.as_ref(), seen.as_ref(), times)
                    .await?
            {
                return Ok(lease);
            }
            tokio::time::sleep(times.beat).await;
        }
    }

    pub(crate) fn lease_path(&self) -> StorePath {
        self.below("leases").join(format!("{LATEST}.json"))
    }

    /// Checks that the lease can be read, if there is one.
    pub(crate) async fn check_lease(&self) -> Result<(), Error> {
        let seen = self.look(&self.lease_path()).await?;
        seen.as_ref().map(parse).transpose().map(drop)
    }

    /// True if a process holds the lease now: it has rewritten the lease within a beat and a second.
    pub(crate) async fn is_leased(&self) -> Result<bool, Error> {
        let read = async || -> Result<Option<Record>, Error> {
            let seen = self.look(&self.lease_path()).await?;
            Ok(seen
                .and_then(|seen| parse(&seen).ok())
                .filter(|record| !record.is_released))
        };
        let Some(before) = read().await? else {
            return Ok(false);
        };
        tokio::time::sleep(LeaseTimes::default().beat + Duration::from_secs(1)).await;
        Ok(read().await?.is_some_and(|now| now != before))
    }

    /// Takes the lease if it has not changed since `seen` was read; `None` if it has.
    async fn try_lease(
        &self,
        path: StorePath,
        holder: &str,
        record: Option<&Record>,
        seen: Option<&Seen>,
        times: LeaseTimes,
    ) -> Result<Option<Lease>, Error> {
        // The label holds a token as well: the lease file may have been removed by hand.
        let token = record
            .map_or(0, |record| record.token)
            .max(self.read_label(LATEST).await?.map_or(0, |label| label.token))
            + 1;
        let held = Arc::new(HeldLease {
            repository: self.clone(),
            path,
            holder: holder.to_owned(),
            token,
            lost: watch::Sender::new(None),
        });
        let text = held.record(0, false)?;
        if !self.swap(&held.path, seen, text.clone()).await? {
            return Ok(None);
        }
        // A store that ignores conditions would let two learners publish in turns. Both of these writes must be refused.
        for stale in [None, seen] {
            if self.swap(&held.path, stale, text.clone()).await? {
                return Err(no_leases(
                    "the store accepts conditional writes but ignores their condition (If-None-Match, If-Match)",
                ));
            }
        }
        // After this write no earlier holder can move the label.
        self.move_label(LATEST, None, None, Some(token)).await?;
        tracing::info!(token, "took the lease; this process is the publisher now");
        let keeper = tokio::spawn(keep(held.clone(), times.beat));
        Ok(Some(Lease { held, keeper }))
    }
}

impl Lease {
    /// Returns the fencing token, which is higher than that of every earlier holder.
    pub fn token(&self) -> u64 {
        self.held.token
    }

    /// Returns the repository that the lease belongs to.
    pub fn repository(&self) -> &Repository {
        &self.held.repository
    }

    /// Publishes a checkpoint under this lease; see [`Repository::publish`].
    ///
    /// # Errors
    /// Those of [`Repository::publish`], and [`Error::Fenced`] if the lease was lost.
    pub async fn publish(&self, draft: Draft, files: Vec<(&str, Bytes)>) -> Result<Version, Error> {
        self.check().await?;
        self.held.repository.publish_for(draft, files, Some(self)).await
    }

    /// Points the label [`LATEST`] at a published version.
    ///
    /// # Errors
    /// Those of [`Repository::set_label`], and [`Error::Fenced`] if the lease was lost.
    pub async fn set_label(&self, version: &Version) -> Result<(), Error> {
        let held = &self.held;
        let moved = held
            .repository
            .move_label(LATEST, None, Some(version), Some(held.token))
            .await;
        if let Err(Error::Fenced { found, .. }) = &moved {
            held.lost.send_replace(Some(*found));
        }
        moved.map(drop)
    }

    /// Reads the lease from the store and verifies that it is still held.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the lease was lost, [`Error::Store`] if the store does not answer.
    pub async fn check(&self) -> Result<(), Error> {
        self.held.read().await.map(drop)
    }

    /// Waits until the lease is lost and returns [`Error::Fenced`]. The loss is noticed within a beat while the store
    /// answers.
    pub async fn lost(&self) -> Error {
        let mut lost = self.held.lost.subscribe();
        // The sender lives as long as this lease, so that waiting cannot fail.
        let found = lost.wait_for(Option::is_some).await.ok().and_then(|found| *found);
        self.held.fenced(found.unwrap_or_default())
    }

    /// Returns [`Error::Fenced`] if the loss of the lease has been noticed.
    pub fn is_lost(&self) -> Option<Error> {
        self.held.lost.borrow().map(|found| self.held.fenced(found))
    }

    /// Releases the lease, so that the next holder does not have to wait. Nothing may be published under it afterwards.
    ///
    /// # Errors
    /// [`Error::Store`]; the lease then ends by expiring.
    pub async fn release(&self) -> Result<(), Error> {
        self.keeper.abort();
        let held = &self.held;
        // A rewrite may be in progress.
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

impl HeldLease {
    fn record(&self, beat: u64, is_released: bool) -> Result<Vec<u8>, Error> {
        let record = Record {
            schema: SCHEMA,
            token: self.token,
            holder: self.holder.clone(),
            beat,
            is_released,
            beaten_at_ms: now_ms(),
        };
        serde_json::to_vec(&record).map_err(not_a_checkpoint)
    }

    fn fenced(&self, found: u64) -> Error {
        Error::Fenced {
            token: self.token,
            found,
        }
    }

    /// Reads the lease from the store and verifies that this process holds it.
    async fn read(&self) -> Result<(Seen, Record), Error> {
        if let Some(found) = *self.lost.borrow() {
            return Err(self.fenced(found));
        }
        let found = match self.repository.look(&self.path).await? {
            Some(seen) => {
                let record = parse(&seen)?;
                if record.token == self.token && record.holder == self.holder {
                    return Ok((seen, record));
                }
                record.token
            }
            // The file was removed by hand. The next holder takes a token above that of the label.
            None => 0,
        };
        self.lost.send_replace(Some(found));
        Err(self.fenced(found))
    }

    async fn beat(&self) -> Result<(), Error> {
        let (seen, record) = self.read().await?;
        let text = self.record(record.beat + 1, false)?;
        // If another process was faster, the next read names it.
        self.repository.swap(&self.path, Some(&seen), text).await?;
        Ok(())
    }
}

/// Rewrites the lease at every beat until it is lost.
async fn keep(held: Arc<HeldLease>, beat: Duration) {
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

fn parse(seen: &Seen) -> Result<Record, Error> {
    manifest::parse(&format!("leases/{LATEST}.json"), &seen.bytes)
}
