//! Compaction: reclaims the nodes that a re-root dropped, in place, in one forward pass.
//!
//! A re-root only moves the decision node. Dropped nodes stay until the tree has grown to twice the size that the last pass
//! left, plus a constant. So at least `n / 2` words were written since the last pass when a pass reads `n` words, a game
//! moves no more nodes than it creates, and the tree holds at most twice what the last pass kept plus what one decision
//! adds. A decision that found the tree full is followed by a pass as well.

use crate::tree::{BLOCK_HEADER, CHILD, LINK, MARK, NO_CHILD, NO_STATISTICS, NodeId, STATISTICS, Tree};

/// Number of words below which no pass is made.
const SMALL: usize = 1 << 14;

impl Tree {
    /// Returns the size, in words, from which the next re-root calls [`Tree::compact`] if the last pass left `kept` words.
    pub(crate) fn next_compaction(kept: usize) -> usize {
        2 * kept + SMALL
    }

    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    /// Keeps `root`, which becomes the first node, and the nodes below it. Returns the new root.
    ///
    /// Statistics lie behind their node and children behind the statistics that name them, so the word that holds an index moves
    /// before what it names. It is then exchanged with a word there (the generation of a node, the link of statistics), which holds the
    /// place of the index, with [`MARK`] set, until the rest moves.
    pub(crate) fn compact(&mut self, root: NodeId) -> NodeId {
        let end = self.words.len();
        let start = root.0 as usize;
        let (mut read, mut write, mut kept) = (start, 0, 0);
        while read < end {
            let (size, is_statistics) = self.size_at(read);
            let link = self.words[read + LINK];
            if read == start || link & MARK != 0 {
                if link & MARK != 0 {
                    let slot = (link & !MARK) as usize;
                    self.words[read + LINK] = self.words[slot];
                    self.words[slot] = write as u32;
                }
                self.words.copy_within(read..read + size, write);
                if is_statistics {
                    let edges = self.edges(NodeId(write as u32));
                    let children = write + BLOCK_HEADER + CHILD.0 * edges;
                    (children..children + edges).for_each(|slot| self.exchange(slot, NO_CHILD));
                } else {
                    self.exchange(write + STATISTICS, NO_STATISTICS);
                    kept += 1;
                }
                write += size;
            }
            read += size;
        }
        self.words.truncate(write);
        self.nodes = kept;
        self.is_full = false;
        NodeId(0)
    }

    /// Exchanges the index in `slot` with the word [`LINK`] of what it names, unless it is `none`.
    fn exchange(&mut self, slot: usize, none: u32) {
        let named = self.words[slot];
        if named != none {
            let link = named as usize + LINK;
            self.words[slot] = self.words[link];
            self.words[link] = slot as u32 | MARK;
        }
    }
}
