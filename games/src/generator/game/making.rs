//! Moves of [`GeneratorGame`]: marks, transformations of the clan, and which of them the rules offer.

use super::{EpisodeEnd, GeneratorGame};
use crate::{
    Action,
    generator::{
        moves::Move,
        problem::MarkResult,
        rules::{Cycles, Illegal},
    },
};

impl GeneratorGame {
    /// Makes a move, which need not succeed.
    pub(super) fn act(&mut self, action: Action) {
        if self.end.is_some() {
            return;
        }
        self.plies = self.plies.saturating_add(1);
        let (imp, action) = Self::imp_and_move(action);
        self.end = if action == Move::MARK_STEP || action == Move::MARK_COMPLETE {
            self.mark(imp, action)
        } else {
            self.transform(imp, action)
        };
        match self.end {
            Some(EpisodeEnd::Oops) => self.become_oops(),
            None if self.plies >= self.episode.rules.move_limit => self.end = Some(EpisodeEnd::MoveLimit),
            Some(EpisodeEnd::Solved | EpisodeEnd::MoveLimit | EpisodeEnd::Proposed) | None => {}
        }
    }

    /// Marks the render as the step or as complete. Returns the end of the episode, if the mark ends it.
    fn mark(&mut self, imp: usize, action: Move) -> Option<EpisodeEnd> {
        let is_step = action == Move::MARK_STEP;
        let render = self.clan.render();
        let marked = self.episode.problem.mark(is_step, self.step_marked, &render);
        match marked {
            _ if imp != 0 => Some(EpisodeEnd::Oops),
            MarkResult::Oops => Some(EpisodeEnd::Oops),
            MarkResult::Solved => Some(EpisodeEnd::Solved),
            MarkResult::Proposed => Some(EpisodeEnd::Proposed),
            MarkResult::Step => {
                self.step_marked = true;
                self.record_visit();
                None
            }
        }
    }

    /// Transforms the clan. Returns the end of the episode, if the move fails.
    fn transform(&mut self, imp: usize, action: Move) -> Option<EpisodeEnd> {
        let Some(clan) = self.clan.after(imp, action) else {
            return Some(EpisodeEnd::Oops);
        };
        let hash = clan.hash();
        if self.episode.rules.cycles == Cycles::Forbid
            && self.visited.contains(hash.wrapping_add(self.salt()))
        {
            return Some(EpisodeEnd::Oops);
        }
        (self.clan, self.hash) = (clan, hash);
        self.record_visit();
        None
    }

    /// Replaces `actions` by the offered ones, ascending. There are none after the end.
    pub(super) fn write_offered(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.end.is_some() {
            return;
        }
        match self.episode.rules.illegal {
            Illegal::Strict => {
                let visited = (self.episode.rules.cycles == Cycles::Forbid).then_some(&self.visited);
                self.clan
                    .strict_moves(self.hash, 0b11, self.salt(), visited, actions);
            }
            Illegal::Oops => {
                for imp in 0..self.clan.len() {
                    let mut moves = self.clan.mask(imp);
                    while moves != 0 {
                        actions.push(Self::action(imp, Move(moves.trailing_zeros() as u8)));
                        moves &= moves - 1;
                    }
                }
            }
        }
    }

    /// True if the rules offer this move.
    pub(super) fn is_offered(&self, imp: usize, action: Move) -> bool {
        if self.clan.mask(imp) >> action.0 & 1 == 0 {
            return false;
        }
        let is_mark = action == Move::MARK_STEP || action == Move::MARK_COMPLETE;
        if is_mark || self.episode.rules.illegal == Illegal::Oops {
            return true;
        }
        self.clan.after(imp, action).is_some_and(|clan| {
            self.episode.rules.cycles == Cycles::Allow
                || !self.visited.contains(clan.hash().wrapping_add(self.salt()))
        })
    }
}
