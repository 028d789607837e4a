//! Compaction: reclaims the nodes that a re-root dropped, in place, in one forward pass.
//!
//! A re-root only moves the decision node. Dropped nodes stay until the tree has grown to twice the size that the last pass
//! left, plus a constant. So at least `n / 2` words were written since the last pass when a pass reads `n` words, a game
//! moves no more nodes than it creates, and the tree holds at most twice what the last pass kept plus what one decision
//! adds. A decision that found the tree full is followed by a pass as well.

use crate::tree::{CHILD, HEADER, MARK, NO_CHILD, NodeId, Tree};

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
    /// Children lie behind their parents, so a parent moves first. It then exchanges its child entry with the generation
    /// word of each child: the generation word holds the index of the child entry, with [`MARK`] set, until the child moves.
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
