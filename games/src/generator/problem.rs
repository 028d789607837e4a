//! Problems: which grids are to be generated, and how far a clan is from them at least.

use serde::{Deserialize, Serialize};

use super::{clan::Clan, grammar, grid::Grid};

/// What play is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Problem {
    /// Nothing: transformations can be tried out, every mark is an Oops.
    #[default]
    Free,
    /// Generate this grid, then mark it as complete.
    Draw(Grid),
    /// Generate the first grid and mark it as a step, then the second and mark it as complete.
    Pair(Grid, Grid),
}

/// What a mark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    Step,
    Solved,
    Oops,
}

impl Problem {
    /// The first grid to generate.
    pub fn target(&self) -> Option<&Grid> {
        match self {
            Self::Free => None,
            Self::Draw(target) | Self::Pair(target, _) => Some(target),
        }
    }

    /// The second one, of a pair.
    pub fn second_target(&self) -> Option<&Grid> {
        match self {
            Self::Free | Self::Draw(_) => None,
            Self::Pair(_, second) => Some(second),
        }
    }

    /// What becomes of a mark (as the step, or as complete) on this render.
    pub(super) fn mark(&self, is_step: bool, is_marked: bool, render: &Grid) -> Marked {
        match self {
            Self::Draw(target) if !is_step && render == target => Marked::Solved,
            Self::Pair(first, _) if is_step && !is_marked && render == first => Marked::Step,
            Self::Pair(_, second) if !is_step && is_marked && render == second => Marked::Solved,
            _ => Marked::Oops,
        }
    }

    /// A number of moves below which no solution is possible from this clan.
    pub(super) fn least_moves(&self, is_marked: bool, clan: &Clan) -> u32 {
        match self {
            Self::Free => u32::MAX,
            Self::Draw(target) => least_changes(clan, target) + 1,
            Self::Pair(first, second) if !is_marked => {
                least_changes(clan, first) + between(first.size(), second.size(), first == second) + 2
            }
            Self::Pair(_, second) => least_changes(clan, second) + 1,
        }
    }
}

/// Moves that at least lie between a clan and one that renders as `target`: each changes one of width and height by one,
/// or brings one colour that the clan has nowhere.
fn least_changes(clan: &Clan, target: &Grid) -> u32 {
    let render = clan.render();
    if render == *target {
        return 0;
    }
    let bit = |cell: u8| 1u32 << (cell & 31);
    let wanted = target.cells().iter().fold(0, |set, &cell| set | bit(cell)) & 0x3ff;
    let colors = clan
        .values()
        .iter()
        .filter(|&&value| (grammar::COLOR..grammar::DIRECTION).contains(&value));
    let held = colors.fold(0, |set, &value| set | bit(value - grammar::COLOR));
    let missing = (wanted & !held).count_ones();
    (missing + between((clan.width(), clan.height()), target.size(), true)).max(1)
}

/// Steps from one size to another; at least one where the grids differ.
fn between(from: (usize, usize), to: (usize, usize), is_same: bool) -> u32 {
    let steps = (from.0.abs_diff(to.0) + from.1.abs_diff(to.1)) as u32;
    steps.max(u32::from(!is_same))
}

/// A start position as text: JSON, every field of which may be missing, e.g. `{"target":[[1,1],[1,0]]}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StartText {
    /// The packed clan; 8×8, black, without shapes if missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clan: Option<Vec<u32>>,
    /// The first grid to generate, as rows of colours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Grid>,
    /// The second grid of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_target: Option<Grid>,
    /// Whether the first grid of a pair is marked already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Moves made so far, for the move limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub plies: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl StartText {
    pub(super) fn problem(&self) -> Result<Problem, String> {
        match (self.target, self.second_target) {
            (None, None) if self.marked => Err("`marked` without a `second_target`".into()),
            (Some(_), None) if self.marked => Err("`marked` without a `second_target`".into()),
            (None, None) => Ok(Problem::Free),
            (Some(target), None) => Ok(Problem::Draw(target)),
            (Some(first), Some(second)) => Ok(Problem::Pair(first, second)),
            (None, Some(_)) => Err("`second_target` without a `target`".into()),
        }
    }
}
