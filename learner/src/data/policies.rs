//! Sparse policies: visits of the searched actions, as they come from the wire and as shares to be trained towards.

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
