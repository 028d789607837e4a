//! The two checkpoints of a match, and what its result means: [`Pairing`].

use checkpoints::Version;

use super::results::Outcome;
use crate::{matches::conduct::Ended, statistics::Verdict};

/// The two checkpoints of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The checkpoint that gets a rating.
    pub candidate: Version,
    /// The checkpoint with a rating.
    pub opponent: Version,
    /// Reason for the match.
    pub purpose: Purpose,
}

/// Purpose of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The candidate replaces the best checkpoint, its opponent, if it wins.
    Challenge,
    /// The candidate is the best checkpoint and needs a rating.
    Place,
}

impl Pairing {
    /// Returns the best checkpoint before the match.
    pub fn best(&self) -> &Version {
        match self.purpose {
            Purpose::Challenge => &self.opponent,
            Purpose::Place => &self.candidate,
        }
    }

    /// Returns the outcome of a match that ended so. `stopped` is what a match that was stopped counts as.
    pub fn outcome(&self, ended: Ended, verdict: Verdict, stopped: Option<Outcome>) -> Outcome {
        match (ended, self.purpose, verdict) {
            (Ended::Stopped, Purpose::Challenge, _) => stopped.unwrap_or(Outcome::Undecided),
            (Ended::Stopped, Purpose::Place, _) if stopped == Some(Outcome::Overtaken) => Outcome::Overtaken,
            (_, Purpose::Place, _) => Outcome::Placed,
            (_, Purpose::Challenge, Verdict::Elo1) => Outcome::Promoted,
            (_, Purpose::Challenge, Verdict::Elo0) => Outcome::Kept,
            (_, Purpose::Challenge, Verdict::Undecided) => Outcome::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::results::tests::version;

    #[test]
    fn a_match_that_is_stopped_decides_nothing() {
        let pairing = |purpose| Pairing {
            candidate: version(1),
            opponent: version(0),
            purpose,
        };
        let (challenge, place) = (pairing(Purpose::Challenge), pairing(Purpose::Place));
        let after_its_time = Some(Outcome::Undecided);
        let overtaken = Some(Outcome::Overtaken);
        for (pairing, ended, verdict, stopped, expected) in [
            (&challenge, Ended::Decided, Verdict::Elo1, None, Outcome::Promoted),
            (&challenge, Ended::Decided, Verdict::Elo0, None, Outcome::Kept),
            (
                &challenge,
                Ended::Complete,
                Verdict::Undecided,
                None,
                Outcome::Undecided,
            ),
            (
                &challenge,
                Ended::Stopped,
                Verdict::Undecided,
                after_its_time,
                Outcome::Undecided,
            ),
            (
                &challenge,
                Ended::Stopped,
                Verdict::Undecided,
                overtaken,
                Outcome::Overtaken,
            ),
            (
                &place,
                Ended::Stopped,
                Verdict::Undecided,
                overtaken,
                Outcome::Overtaken,
            ),
            (
                &place,
                Ended::Stopped,
                Verdict::Undecided,
                after_its_time,
                Outcome::Placed,
            ),
            (&place, Ended::Decided, Verdict::Elo0, None, Outcome::Placed),
        ] {
            assert_eq!(
                pairing.outcome(ended, verdict, stopped),
                expected,
                "{ended:?} {verdict:?}"
            );
        }
        assert_eq!(
            (challenge.best(), place.best()),
            (&challenge.opponent, &place.candidate)
        );
    }
}
