//! [`VersionIds`]: the numbers of models, by which a cache tells their evaluations apart.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::cache::VersionId;

/// Number of models that are remembered. A model that was forgotten gets a new number when it is loaded again.
const REMEMBERED: usize = 1024;

/// Assigns numbers to models.
#[derive(Debug, Default)]
pub struct VersionIds {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u32,
    identities: VecDeque<(String, VersionId)>,
}

impl VersionIds {
    /// Returns the number of the model with this [`crate::session::Contract::identity`].
    pub fn of(&self, identity: &str) -> VersionId {
        let mut known = self.known.lock();
        if let Some((_, id)) = known.identities.iter().find(|(there, _)| there == identity) {
            return *id;
        }
        let id = VersionId(known.next);
        known.next = known.next.wrapping_add(1);
        if known.identities.len() >= REMEMBERED {
            known.identities.pop_front();
        }
        known.identities.push_back((identity.to_owned(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_identities_get_equal_numbers_until_they_are_forgotten() {
        let numbers = VersionIds::default();
        let first = numbers.of("first");
        assert_eq!(numbers.of("first"), first);
        for number in 0..REMEMBERED {
            assert_ne!(numbers.of(&number.to_string()), first);
        }
        assert_ne!(numbers.of("first"), first);
    }
}
