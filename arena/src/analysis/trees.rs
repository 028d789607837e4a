//! Trees of ended jobs: [`Trees`].

use std::collections::VecDeque;

use crate::players::searches::AnySearch;

/// Memory of all kept trees, in bytes.
const MOST_BYTES: u64 = 512 << 20;
/// Number of kept trees.
const MOST: usize = 1024;

/// Kept trees, the one that was put last at the end. A job takes its tree out while it searches.
#[derive(Debug, Default)]
pub(super) struct Trees {
    kept: VecDeque<(String, Box<dyn AnySearch>)>,
    bytes: u64,
}

impl Trees {
    /// Takes the tree with this name, if it has at most `most` visits.
    pub fn take(&mut self, name: &str, most: u32) -> Option<Box<dyn AnySearch>> {
        let is_it =
            |(known, tree): &(String, Box<dyn AnySearch>)| known == name && tree.visits_done() <= most;
        let place = self.kept.iter().position(is_it)?;
        let (_, tree) = self.kept.remove(place)?;
        self.bytes -= tree.counters().bytes;
        Some(tree)
    }

    /// Keeps a tree; one of the same name with more visits stays. The oldest trees make room.
    pub fn put(&mut self, name: String, tree: Box<dyn AnySearch>) {
        let known = self.take(&name, u32::MAX);
        let tree = match known {
            Some(known) if known.visits_done() > tree.visits_done() => known,
            _ => tree,
        };
        self.bytes += tree.counters().bytes;
        self.kept.push_back((name, tree));
        while self.bytes > MOST_BYTES || self.kept.len() > MOST {
            let Some((_, tree)) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= tree.counters().bytes;
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
