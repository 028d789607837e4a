//! Sparse policies: visits of the searched actions, as they come from the wire and as shares to be trained towards.

use crate::data::batches::{BatchError, check_length};

/// The policies of a batch on the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// For each searched action of each sample its place: `sample · actions + policy index`, over clans
    /// `sample · width + place` ([`crate::data::clans::ClanSamples`]).
    pub at: Vec<i64>,
    /// For each of these its share of the sample's visits.
    pub share: Vec<f32>,
    /// Samples that have a policy.
    pub samples: usize,
    /// Mean entropy of these, in nats: a cross-entropy cannot fall below it. Their sum, while they are being collected.
    pub entropy: f64,
}

impl Policies {
    /// Room for so many targets.
    pub(crate) fn with_capacity(targets: usize) -> Self {
        Self {
            at: Vec::with_capacity(targets),
            share: Vec::with_capacity(targets),
            ..Self::default()
        }
    }

    /// Adds a sample's, which may have none. `place` says where an action stands.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn push(
        &mut self,
        (actions, visits): (&[u32], &[u32]),
        place: impl Fn(u32) -> Result<usize, String>,
    ) -> Result<(), String> {
        let total: u64 = visits.iter().copied().map(u64::from).sum();
        if actions.is_empty() {
            return Ok(());
        }
        if total == 0 {
            return Err("none of its actions was visited".into());
        }
        self.samples += 1;
        for (&action, &visits) in actions.iter().zip(visits) {
            let place = place(action)?;
            if visits == 0 {
                continue;
            }
            let share = f64::from(visits) / total as f64;
            self.at.push(place as i64);
            self.share.push(share as f32);
            self.entropy -= share * share.ln();
        }
        Ok(())
    }

    /// All samples are in.
    pub(crate) fn finish(&mut self) {
        self.entropy /= self.samples.max(1) as f64;
    }
}

/// Policies on the wire: for each sample a count, then for all of them actions and visits, back to back.
pub(crate) struct Columns<'a> {
    counts: &'a [u32],
    actions: &'a [u32],
    visits: &'a [u32],
}

impl<'a> Columns<'a> {
    /// Checks the lengths of counts, actions and visits, which are called `names`.
    ///
    /// # Errors
    /// [`BatchError::Length`].
    pub(crate) fn new(
        names: [&'static str; 3],
        columns: [&'a [u32]; 3],
        samples: usize,
    ) -> Result<Self, BatchError> {
        let [counts, actions, visits] = columns;
        check_length(names[0], counts.len(), samples)?;
        let targets: usize = counts.iter().map(|&count| count as usize).sum();
        check_length(names[1], actions.len(), targets)?;
        check_length(names[2], visits.len(), targets)?;
        Ok(Self {
            counts,
            actions,
            visits,
        })
    }

    /// Entries in all of them that are left.
    pub(crate) fn targets(&self) -> usize {
        self.actions.len()
    }

    /// Actions and visits of the next sample.
    pub(crate) fn take(&mut self) -> (&'a [u32], &'a [u32]) {
        let Some((&count, counts)) = self.counts.split_first() else {
            return (&[], &[]);
        };
        let count = (count as usize).min(self.actions.len());
        let (own_actions, actions) = self.actions.split_at(count);
        let (own_visits, visits) = self.visits.split_at(count);
        *self = Self {
            counts,
            actions,
            visits,
        };
        (own_actions, own_visits)
    }
}
