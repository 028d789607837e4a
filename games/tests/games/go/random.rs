//! Random games on small boards against a simple second implementation: boards as lists of letters, each chain found by a flood, the
//! earlier positions as a set of texts.

use std::collections::HashSet;

use games::{
    Game,
    go::{Go, Rules, Superko},
};

use super::plain;
use crate::shared::{drawer, legal};

struct Simple {
    size: usize,
    board: Vec<char>,
    mover: char,
    seen: HashSet<(Vec<char>, char)>,
    rules: Rules,
}

const fn other(player: char) -> char {
    if player == 'X' { 'O' } else { 'X' }
}

impl Simple {
    fn new(rules: Rules) -> Self {
        let size = rules.size as usize;
        let mut simple = Self {
            size,
            board: vec!['-'; size * size],
            mover: 'X',
            seen: HashSet::new(),
            rules,
        };
        simple.note();
        simple
    }

    /// Returns what makes two positions equal.
    fn position(&self, board: &[char], mover: char) -> (Vec<char>, char) {
        let mover = if self.rules.superko == Superko::Positional {
            '-'
        } else {
            mover
        };
        (board.to_vec(), mover)
    }

    fn note(&mut self) {
        let position = self.position(&self.board, self.mover);
        self.seen.insert(position);
    }

    fn near(&self, at: usize) -> Vec<usize> {
        let (rank, file) = (at / self.size, at % self.size);
        let mut near = Vec::new();
        near.extend((rank > 0).then(|| at - self.size));
        near.extend((rank + 1 < self.size).then(|| at + self.size));
        near.extend((file > 0).then(|| at - 1));
        near.extend((file + 1 < self.size).then(|| at + 1));
        near
    }

    /// Removes the chain of a stone if it has no liberty.
    fn capture(&self, board: &mut [char], at: usize) {
        let player = board[at];
        let (mut chain, mut next) = (vec![at], 0);
        while next < chain.len() {
            for near in self.near(chain[next]) {
                if board[near] == '-' {
                    return;
                }
                if board[near] == player && !chain.contains(&near) {
                    chain.push(near);
                }
            }
            next += 1;
        }
        for stone in chain {
            board[stone] = '-';
        }
    }

    /// Returns the board after a stone, if it is legal.
    fn after(&self, at: usize) -> Option<Vec<char>> {
        if self.board[at] != '-' {
            return None;
        }
        let mut board = self.board.clone();
        board[at] = self.mover;
        for near in self.near(at) {
            if board[near] == other(self.mover) {
                self.capture(&mut board, near);
            }
        }
        self.capture(&mut board, at);
        let is_suicide = board[at] == '-';
        let is_legal = !is_suicide || self.rules.suicide && board != self.board;
        (is_legal && !self.seen.contains(&self.position(&board, other(self.mover)))).then_some(board)
    }

    fn legal(&self) -> Vec<u32> {
        let stones = (0..self.board.len()).filter(|&at| self.after(at).is_some());
        stones.chain([self.board.len()]).map(|at| at as u32).collect()
    }

    fn play(&mut self, action: u32) {
        if (action as usize) < self.board.len() {
            self.board = self.after(action as usize).unwrap();
        }
        self.mover = other(self.mover);
        self.note();
    }
}

/// Plays random games. Returns the number of actions that superko alone forbade.
fn compare(rules: Rules, games: u64) -> usize {
    let mut forbidden = 0;
    for seed in 0..games {
        let mut random = drawer(seed);
        let (mut state, mut simple) = (Go::start(&rules, None).unwrap(), Simple::new(rules));
        while state.outcome().is_none() {
            let actions = legal(&state);
            assert_eq!(actions, simple.legal(), "{}", state.position());
            let banned = state.position().rsplit(' ').next().unwrap().to_owned();
            forbidden += usize::from(banned != "-");
            // A game read from its text has the same legal actions.
            let again = Go::start(&rules, Some(&state.position())).unwrap();
            assert_eq!(legal(&again), actions, "{}", state.position());
            // Few passes, so that games are long.
            let stones = actions.len() - 1;
            let place = if stones == 0 || random(8) == 0 {
                stones
            } else {
                random(stones)
            };
            state.play(actions[place]).unwrap();
            simple.play(actions[place]);
        }
        let board = state.position();
        assert_eq!(
            board[..simple.board.len()],
            simple.board.iter().collect::<String>()
        );
    }
    forbidden
}

#[test]
fn legal_actions_agree_with_a_simple_implementation() {
    for suicide in [false, true] {
        for superko in [Superko::Positional, Superko::Situational] {
            for (size, games) in [(2, 60), (3, 60), (4, 30), (7, 4)] {
                let rules = Rules {
                    suicide,
                    superko,
                    ..plain(size)
                };
                let forbidden = compare(rules, games);
                assert!(forbidden > 0, "{rules:?}");
            }
        }
    }
}
