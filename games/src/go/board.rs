//! Stones on a board: chains, their liberties, captures.
//!
//! Points are numbered `(size + 1)·(rank + 1) + file`: an edge point to the left of each rank, which also is to the right of the rank
//! below, and a rank of edge points below and above the board. So each point of the board has four neighbours.

use super::keys;
use crate::Player;

/// A point of the board, or of its edge.
pub(super) type Point = usize;

/// Content of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// No stone.
    Empty,
    /// Stone of a player.
    Stone(Player),
    /// Nothing: the point is not on the board.
    Edge,
}

/// Place of a stone in the ring of the stones of its chain.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Point under which the chain's data is kept.
    head: u16,
    /// Next stone of the ring.
    next: u16,
}

/// Data of a chain: connected stones of one player.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    /// Exclusive or of the keys of the stones.
    key: u64,
    /// Number of empty points next to the chain.
    liberties: u16,
    /// Number of stones.
    stones: u16,
}

/// Result of a stone on an empty point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// No chain loses its last liberty.
    Quiet,
    /// Chains of the other player are captured. Holds the key of the board after that.
    Captures(u64),
    /// The stone and its chain have no liberty. Holds the key of the board without them.
    Suicide(u64),
}

/// Stones on a board.
#[derive(Debug)]
pub(super) struct Board {
    size: usize,
    contents: Vec<Content>,
    links: Vec<Link>,
    /// Data of the chain whose head is at the index. Stale where there is none.
    chains: Vec<Chain>,
    key: u64,
    stones: u16,
    /// Points that had a stone in an earlier position and lost it, as bits.
    emptied: [u64; 8],
}

/// Up to four chains, each once.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    heads: [Point; 4],
    count: usize,
}

impl Heads {
    pub const NONE: Self = Self {
        heads: [0; 4],
        count: 0,
    };

    /// Adds a chain. Returns true if it is new.
    pub fn add(&mut self, head: Point) -> bool {
        let is_new = !self.as_slice().contains(&head);
        if is_new && let Some(slot) = self.heads.get_mut(self.count) {
            *slot = head;
            self.count += 1;
        }
        is_new
    }

    /// Returns the chains that are also among others.
    pub fn shared(&self, others: &Self) -> Self {
        let mut shared = Self::NONE;
        for &head in self.as_slice() {
            if others.as_slice().contains(&head) {
                shared.add(head);
            }
        }
        shared
    }

    pub fn as_slice(&self) -> &[Point] {
        self.heads.get(..self.count).unwrap_or_default()
    }
}

impl Board {
    /// Returns the empty board of this size, 1 to 19.
    pub fn empty(size: u32) -> Self {
        let size = size as usize;
        let count = (size + 1) * (size + 2);
        let mut board = Self {
            size,
            contents: vec![Content::Edge; count],
            links: vec![Link::default(); count],
            chains: vec![Chain::default(); count],
            key: 0,
            stones: 0,
            emptied: [0; 8],
        };
        for square in 0..size * size {
            let point = board.point(square);
            board.contents[point] = Content::Empty;
        }
        board
    }

    /// Returns the number of points of the board.
    pub const fn area(&self) -> usize {
        self.size * self.size
    }

    /// Returns the point of the square `size·rank + file` of the board.
    pub const fn point(&self, square: usize) -> Point {
        square + square / self.size + self.size + 1
    }

    /// Returns the points of the board, in the order of their squares.
    pub fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let stride = self.size + 1;
        (1..stride).flat_map(move |rank| stride * rank..stride * rank + stride - 1)
    }

    /// Returns the number of points of the board with its edge. All points are below it.
    pub const fn point_count(&self) -> usize {
        self.contents.len()
    }

    /// Returns the four neighbours of a point of the board.
    pub const fn neighbours(&self, point: Point) -> [Point; 4] {
        let stride = self.size + 1;
        [point - 1, point + 1, point - stride, point + stride]
    }

    pub fn content(&self, point: Point) -> Content {
        self.contents[point]
    }

    pub fn is_empty(&self, point: Point) -> bool {
        self.contents[point] == Content::Empty
    }

    /// True if an empty point had no stone before, and has an empty neighbour: no stone on it is a suicide or recreates an earlier board.
    pub fn is_fresh(&self, point: Point) -> bool {
        self.emptied[point / 64] >> (point % 64) & 1 == 0
            && self.neighbours(point).iter().any(|&next| self.is_empty(next))
    }

    /// Notes that an empty point had a stone in an earlier position.
    pub fn note_emptied(&mut self, point: Point) {
        self.emptied[point / 64] |= 1 << (point % 64);
    }

    /// Returns the chain of a stone, as the point that all its stones have in common.
    pub fn head(&self, stone: Point) -> Point {
        usize::from(self.links[stone].head)
    }

    /// Returns the number of liberties of the chain of a stone.
    pub fn liberties(&self, stone: Point) -> u16 {
        self.chains[self.head(stone)].liberties
    }

    /// Returns the key of the stones.
    pub const fn key(&self) -> u64 {
        self.key
    }

    /// Returns the number of stones.
    pub const fn stones(&self) -> u16 {
        self.stones
    }

    /// Returns what a stone of this player would do on an empty point.
    pub fn effect(&self, player: Player, point: Point) -> Effect {
        let mut has_liberty = false;
        let (mut captured, mut own) = (Heads::NONE, Heads::NONE);
        for neighbour in self.neighbours(point) {
            match self.contents[neighbour] {
                Content::Empty => has_liberty = true,
                Content::Edge => {}
                Content::Stone(owner) => {
                    let head = self.head(neighbour);
                    let in_atari = self.chains[head].liberties == 1;
                    if owner != player {
                        if in_atari {
                            captured.add(head);
                        }
                    } else if in_atari {
                        own.add(head);
                    } else {
                        has_liberty = true;
                    }
                }
            }
        }
        let without = |heads: &Heads| {
            let keys = heads.as_slice().iter();
            keys.fold(self.key, |key, &head| key ^ self.chains[head].key)
        };
        if captured.count > 0 {
            Effect::Captures(without(&captured) ^ keys::of_stone(player, point))
        } else if has_liberty {
            Effect::Quiet
        } else {
            Effect::Suicide(without(&own))
        }
    }

    /// Places a stone on an empty point, and removes the chains without a liberty: those of the other player first. Returns the
    /// number of removed stones of the other player, and of this player.
    pub fn place(&mut self, player: Player, point: Point) -> [u16; 2] {
        let key = keys::of_stone(player, point);
        let (mut own, mut others, mut liberties) = (Heads::NONE, Heads::NONE, 0);
        for neighbour in self.neighbours(point) {
            match self.contents[neighbour] {
                Content::Empty => liberties += 1,
                Content::Edge => {}
                Content::Stone(owner) => {
                    let head = self.head(neighbour);
                    let heads = if owner == player { &mut own } else { &mut others };
                    if heads.add(head) {
                        self.chains[head].liberties -= 1;
                    }
                }
            }
        }
        self.contents[point] = Content::Stone(player);
        self.links[point] = Link {
            head: point as u16,
            next: point as u16,
        };
        self.chains[point] = Chain {
            key,
            liberties,
            stones: 1,
        };
        self.key ^= key;
        self.stones += 1;
        let chain = own
            .as_slice()
            .iter()
            .fold(point, |chain, &other| self.join(player, chain, other));
        let mut removed = [0, 0];
        for &head in others.as_slice() {
            if self.chains[head].liberties == 0 {
                removed[0] += self.remove(head);
            }
        }
        if self.chains[chain].liberties == 0 {
            removed[1] = self.remove(chain);
        }
        removed
    }

    /// Joins two chains of one player, and returns the joint chain.
    fn join(&mut self, player: Player, one: Point, other: Point) -> Point {
        let is_larger = self.chains[one].stones >= self.chains[other].stones;
        let (large, small) = if is_larger { (one, other) } else { (other, one) };
        let mut liberties = 0;
        let mut stone = small;
        loop {
            for liberty in self.neighbours(stone) {
                liberties += u16::from(self.is_empty(liberty) && self.is_new(player, liberty, stone, large));
            }
            stone = usize::from(self.links[stone].next);
            if stone == small {
                break;
            }
        }
        loop {
            self.links[stone].head = large as u16;
            stone = usize::from(self.links[stone].next);
            if stone == small {
                break;
            }
        }
        let next = self.links[large].next;
        self.links[large].next = self.links[small].next;
        self.links[small].next = next;
        let Chain { key, stones, .. } = self.chains[small];
        let chain = &mut self.chains[large];
        chain.key ^= key;
        chain.stones += stones;
        chain.liberties += liberties;
        large
    }

    /// True if a liberty of a small chain, next to its stone `stone`, is not a liberty of the chain `large`, and if `stone` is the
    /// first stone of the small chain next to it, so that the liberty is counted once.
    fn is_new(&self, player: Player, liberty: Point, stone: Point, large: Point) -> bool {
        let small = self.head(stone);
        let mut first = None;
        for neighbour in self.neighbours(liberty) {
            if self.contents[neighbour] == Content::Stone(player) {
                let head = self.head(neighbour);
                if head == large {
                    return false;
                }
                if head == small && first.is_none() {
                    first = Some(neighbour);
                }
            }
        }
        first == Some(stone)
    }

    /// Removes a chain, and returns the number of its stones.
    fn remove(&mut self, head: Point) -> u16 {
        let Chain { key, stones, .. } = self.chains[head];
        let mut stone = head;
        loop {
            let next = usize::from(self.links[stone].next);
            self.contents[stone] = Content::Empty;
            self.note_emptied(stone);
            let mut others = Heads::NONE;
            for neighbour in self.neighbours(stone) {
                if let Content::Stone(_) = self.contents[neighbour] {
                    let other = self.head(neighbour);
                    if other != head && others.add(other) {
                        self.chains[other].liberties += 1;
                    }
                }
            }
            stone = next;
            if stone == head {
                break;
            }
        }
        self.key ^= key;
        self.stones -= stones;
        stones
    }
}

impl Clone for Board {
    fn clone(&self) -> Self {
        Self {
            contents: self.contents.clone(),
            links: self.links.clone(),
            chains: self.chains.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.contents.clone_from(&source.contents);
        self.links.clone_from(&source.links);
        self.chains.clone_from(&source.chains);
        (self.size, self.key) = (source.size, source.key);
        (self.stones, self.emptied) = (source.stones, source.emptied);
    }
}
