//! Reclaiming the nodes that a re-root dropped, in place, in one forward pass.
//!
//! A re-root itself only moves the decision node. Dropped nodes stay until the tree has grown to twice what the last
//! pass left (and a little): so a pass over `n` words is paid for by at least `n / 2` words written since the last one,
//! a game moves no more nodes than it creates, and between two passes the tree holds at most twice what it kept and
//! what one decision adds. Beyond that, a decision that found the tree full is followed by one pass over it.

use crate::tree::{CHILD, HEADER, MARK, NO_CHILD, NodeId, Tree};

/// No pass is worth while below this many words.
const SMALL: usize = 1 << 14;

impl Tree {
    /// The size, in words, from which the next re-root calls [`Tree::compact`] if the last pass left `kept` words.
    pub(crate) fn next_compaction(kept: usize) -> usize {
        2 * kept + SMALL
    }

    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    /// Keeps the nodes below `root` only, which becomes the first.
    ///
    /// Children lie behind their parents. While a kept node waits for its turn, its generation word and the child
    /// entry that points to it (its parent was moved before) are exchanged: the former holds the place of
    /// the latter, with [`MARK`] set; the latter holds the generation.
    pub(crate) fn compact(&mut self, root: NodeId) -> NodeId {
        let end = self.words.len();
        let start = root.0 as usize;
        let (mut read, mut write, mut kept) = (start, 0, 0);
        while read < end {
            let edges = self.edges(NodeId(read as u32));
            let size = HEADER + self.columns * edges;
            let link = self.words[read + 1];
            if read == start || link & MARK != 0 {
                if link & MARK != 0 {
                    let slot = (link & !MARK) as usize;
                    self.words[read + 1] = self.words[slot];
                    self.words[slot] = write as u32;
                }
                self.words.copy_within(read..read + size, write);
                let children = write + HEADER + CHILD * edges;
                for slot in children..children + edges {
                    let child = self.words[slot] as usize;
                    if child != NO_CHILD as usize {
                        self.words[slot] = self.words[child + 1];
                        self.words[child + 1] = slot as u32 | MARK;
                    }
                }
                write += size;
                kept += 1;
            }
            read += size;
        }
        self.words.truncate(write);
        self.nodes = kept;
        self.is_full = false;
        NodeId(0)
    }
}
