//! Clans on their way to the network: expanded on the host, where batches are packed, then tensors on the device.
//!
//! The policy of a position is over its own imps. The softmax is taken over the moves that an imp's kind and role allow, which
//! the row itself says: what a move does, and whether it can be made, is the rules' business, and what self-play is
//! offered lies within that set whatever the rules are.

use games::{
    RowError,
    generator::{
        Clan, Position,
        expansion::{ClanBatch, Expander, GRIDS},
        grammar::{MAX_DEPTH, ROLES},
        grid::{CELLS, SIDE, SYMBOLS},
        moves::MOVES,
        row,
    },
};
use tch::{Device, Kind, Tensor};

use crate::{
    data::expansion::channels_last,
    torch::{TorchError, from_host},
};

/// The arrays of valid rows, back to back.
///
/// # Errors
/// [`RowError`] of the first row that is none.
pub fn expand(rows: &[u32]) -> Result<ClanBatch, RowError> {
    let mut expander = Expander::default();
    for row in row::split(rows) {
        expander.push(&Position::read(row)?);
    }
    Ok(expander.finish().clone())
}

/// The clans of a batch on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClanSamples {
    /// What the network takes.
    pub arrays: ClanBatch,
    /// For each move that an imp's kind and role allow, over all imps of all samples: where its logit stands, `imp · moves + move`.
    pub logits: Vec<i64>,
    /// Where the same move stands among the samples' choices: `sample · width + place`.
    pub places: Vec<i64>,
    /// Most choices of a sample.
    pub width: usize,
}

/// Collects the samples of a batch.
#[derive(Debug, Default)]
pub(crate) struct ClanPacker {
    expander: Expander,
    logits: Vec<i64>,
    /// Choices of each sample.
    counts: Vec<usize>,
}

/// The choices of one position.
#[derive(Debug)]
pub(crate) struct Choices {
    masks: Vec<u64>,
    /// Choices of the imps before each.
    before: Vec<usize>,
}

impl ClanPacker {
    /// Adds a sample; says which choices it has.
    pub(crate) fn push(&mut self, row: &[u32]) -> Result<Choices, RowError> {
        let position = Position::read(row)?;
        self.expander.push(&position);
        let first = self.expander.imps_before_last();
        let choices = Choices::of(&position.clan);
        let mut count = 0;
        for (imp, &mask) in choices.masks.iter().enumerate() {
            let mut moves = mask;
            while moves != 0 {
                let logit = (first + imp) * MOVES + moves.trailing_zeros() as usize;
                self.logits.push(logit as i64);
                moves &= moves - 1;
                count += 1;
            }
        }
        self.counts.push(count);
        Ok(choices)
    }

    /// All of them.
    pub(crate) fn finish(mut self) -> ClanSamples {
        let width = self.counts.iter().copied().max().unwrap_or_default();
        let places = self
            .counts
            .iter()
            .enumerate()
            .flat_map(|(sample, &count)| sample * width..sample * width + count)
            .map(|place| place as i64)
            .collect();
        ClanSamples {
            arrays: self.expander.finish().clone(),
            logits: self.logits,
            places,
            width,
        }
    }
}

impl Choices {
    fn of(clan: &Clan) -> Self {
        let masks: Vec<u64> = (0..clan.len()).map(|imp| clan.mask(imp)).collect();
        let before = masks
            .iter()
            .scan(0, |sum, mask| {
                let before = *sum;
                *sum += mask.count_ones() as usize;
                Some(before)
            })
            .collect();
        Self { masks, before }
    }

    /// An action's place among the choices; `None` where it is none of them.
    pub(crate) fn place(&self, action: u32) -> Option<usize> {
        let (imp, made) = (action as usize / MOVES, action as usize % MOVES);
        let mask = *self.masks.get(imp)?;
        let below = mask & ((1 << made) - 1);
        (mask >> made & 1 != 0).then(|| self.before[imp] + below.count_ones() as usize)
    }
}

/// The clans of a batch on the training device; the indices are whole numbers of 32 bits.
#[derive(Debug)]
pub struct ClanTensors {
    /// `[interior, roles]`
    pub roles: Tensor,
    /// Interior imps of height ≤ k, for k from 0 on; on the host, which steps through them.
    pub levels: Vec<i64>,
    /// `[interior + 1, depth]`
    pub ancestors: Tensor,
    /// `[imps]`
    pub sept: Tensor,
    /// `[imps]`
    pub parent: Tensor,
    /// f32 `[imps, (roles - 1) · depth]`: path matrices, flattened by roles.
    pub path: Tensor,
    /// `[imps]`
    pub position: Tensor,
    /// `[imps]`
    pub view: Tensor,
    /// `[batch]`
    pub root: Tensor,
    /// f32 `[batch, grids · symbols + flags, 8, 8]`
    pub grids: Tensor,
    /// f32 `[views, symbols, 8, 8]`
    pub views: Tensor,
}

impl ClanTensors {
    /// Copies a batch's arrays to the device and makes planes and path matrices of them there.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(arrays: &ClanBatch, device: Device) -> Result<Self, TorchError> {
        let _guard = tch::no_grad_guard();
        let table = |numbers: &[i32], columns: usize| from_host(numbers, &[-1, columns as i64], device);
        let list = |numbers: &[i32]| from_host(numbers, &[numbers.len() as i64], device);
        // Torch cannot tell the sides of what has no numbers.
        let roles = match arrays.roles.is_empty() {
            true => Tensor::f_zeros([0, ROLES as i64], (Kind::Int, device))?,
            false => table(&arrays.roles, ROLES)?,
        };
        Ok(Self {
            roles,
            levels: arrays.levels.iter().copied().map(i64::from).collect(),
            ancestors: table(&arrays.ancestors, MAX_DEPTH)?,
            sept: list(&arrays.sept)?,
            parent: list(&arrays.parent)?,
            path: paths(&table(&arrays.path, MAX_DEPTH)?)?,
            position: list(&arrays.position)?,
            view: list(&arrays.view)?,
            root: list(&arrays.root)?,
            grids: grids(&table(&arrays.grids, GRIDS * CELLS)?, &list(&arrays.flags)?)?,
            views: channels_last(&one_hot(&table(&arrays.views, CELLS)?)?)?,
        })
    }
}

/// `[imps, depth]` roles to path matrices: a 1 for the role at each depth, none where the trail has ended.
fn paths(roles: &Tensor) -> Result<Tensor, TorchError> {
    let (imps, depth) = roles.size2()?;
    let options = (Kind::Int64, roles.device());
    let at = roles
        .f_to_kind(Kind::Int64)?
        .f_mul_scalar(depth)?
        .f_add(&Tensor::f_arange(depth, options)?)?;
    let sides = [imps, ROLES as i64 * depth];
    let mut matrices = Tensor::f_zeros(sides, (Kind::Float, roles.device()))?;
    let _ = matrices.f_scatter_value_(1, &at, 1.0)?;
    // The last role says that the trail has ended.
    Ok(matrices
        .f_narrow(1, 0, (ROLES as i64 - 1) * depth)?
        .f_contiguous()?)
}

/// `[batch, grids · 64]` symbols and `[batch]` flags to planes.
fn grids(symbols: &Tensor, flags: &Tensor) -> Result<Tensor, TorchError> {
    let batch = symbols.size2()?.0;
    let (side, planes) = (SIDE as i64, (GRIDS * SYMBOLS) as i64);
    let of_grids = one_hot(&symbols.f_view([-1, CELLS as i64])?)?.f_view([batch, planes, side, side])?;
    let flags = flags
        .f_to_kind(Kind::Float)?
        .f_view([batch, 1, 1, 1])?
        .f_expand([batch, 1, side, side], false)?;
    channels_last(&Tensor::f_cat(&[of_grids, flags], 1)?)
}

/// `[boards, 64]` symbols to f32 `[boards, symbols, 8, 8]`.
fn one_hot(symbols: &Tensor) -> Result<Tensor, TorchError> {
    let boards = symbols.size2()?.0;
    let sides = [boards, SYMBOLS as i64, CELLS as i64];
    let mut planes = Tensor::f_zeros(sides, (Kind::Float, symbols.device()))?;
    let at = symbols.f_to_kind(Kind::Int64)?.f_unsqueeze(1)?;
    let _ = planes.f_scatter_value_(1, &at, 1.0)?;
    Ok(planes.f_view([boards, SYMBOLS as i64, SIDE as i64, SIDE as i64])?)
}
