//! Inputs of the fish-eye network on the training device. [`onnx::fish_eye`] says what each one means.

use games::generator::grid;
use onnx::{FishEyeShape, fish_eye};
use tch::{Device, Kind, Tensor};

use super::{channels_last, find, tensor};
use crate::{data::expanded::HostInput, torch::TorchError};

/// Length of a grid's side.
const SIDE: i64 = grid::SIDE as i64;
/// Number of cells of a grid.
const CELLS: i64 = grid::CELLS as i64;

/// Inputs of the fish-eye network for a batch. Indices are int32.
#[derive(Debug)]
pub struct FishEyeInputs {
    /// Role matrices, `[interior, roles]`.
    pub roles: Tensor,
    /// Number of interior imps of height ≤ k, for k from 0. On the host, because the forward pass steps through the levels.
    pub levels: Vec<i64>,
    /// Context matrices, `[interior + 1, depth]`.
    pub ancestors: Tensor,
    /// Row of the table of each imp, `[imps]`.
    pub sept: Tensor,
    /// Context of each imp, `[imps]`.
    pub parent: Tensor,
    /// Path matrices, flattened by roles: f32 `[imps, (roles - 1) · depth]`.
    pub path: Tensor,
    /// Position of each imp, `[imps]`.
    pub position: Tensor,
    /// View of each imp, `[imps]`.
    pub view: Tensor,
    /// Root of each position, `[batch]`.
    pub root: Tensor,
    /// Grids and flags as planes: f32 `[batch, grids · symbols + flags, 8, 8]`.
    pub grids: Tensor,
    /// Views as planes: f32 `[views, symbols, 8, 8]`.
    pub views: Tensor,
    /// Examples, in networks that take them.
    pub examples: Option<ExampleInputs>,
}

/// Examples of the positions of a batch.
#[derive(Debug)]
pub struct ExampleInputs {
    /// Different examples as planes: f32 `[examples, 2 · symbols, 8, 8]`.
    pub boards: Tensor,
    /// Rows of each position's examples in a table that begins with "none": `[batch, 3]`.
    pub of: Tensor,
}

impl FishEyeInputs {
    /// Copies the arrays of a batch to the device, and makes planes and path matrices there.
    ///
    /// # Errors
    /// [`TorchError`] if the device has no memory or an array is missing.
    pub(super) fn new(
        inputs: &[HostInput],
        shape: &FishEyeShape,
        device: Device,
    ) -> Result<Self, TorchError> {
        let _guard = tch::no_grad_guard();
        let tensor = |name| tensor(inputs, name, device);
        let levels = &find(inputs, fish_eye::LEVELS)?.numbers;
        Ok(Self {
            roles: tensor(fish_eye::ROLES)?,
            levels: levels.iter().copied().map(i64::from).collect(),
            ancestors: tensor(fish_eye::ANCESTORS)?,
            sept: tensor(fish_eye::SEPT)?,
            parent: tensor(fish_eye::PARENT)?,
            path: paths(&tensor(fish_eye::PATH)?, shape)?,
            position: tensor(fish_eye::POSITION)?,
            view: tensor(fish_eye::VIEW)?,
            root: tensor(fish_eye::ROOT)?,
            grids: grids(&tensor(fish_eye::GRIDS)?, &tensor(fish_eye::FLAGS)?, shape)?,
            views: channels_last(&one_hot(&tensor(fish_eye::VIEWS)?, shape)?)?,
            examples: match shape.examples {
                0 => None,
                _ => Some(ExampleInputs {
                    boards: examples(&tensor(fish_eye::EXAMPLES)?, shape)?,
                    of: tensor(fish_eye::EXAMPLES_OF)?,
                }),
            },
        })
    }
}

/// Converts roles `[imps, depth]` to path matrices: 1 for the role at each depth, and 0 beyond the end of the path.
fn paths(roles: &Tensor, shape: &FishEyeShape) -> Result<Tensor, TorchError> {
    let (imps, depth) = roles.size2()?;
    let of_matrix = shape.roles as i64;
    let options = (Kind::Int64, roles.device());
    let at = roles
        .f_to_kind(Kind::Int64)?
        .f_mul_scalar(depth)?
        .f_add(&Tensor::f_arange(depth, options)?)?;
    let sizes = [imps, of_matrix * depth];
    let mut matrices = Tensor::f_zeros(sizes, (Kind::Float, roles.device()))?;
    let _ = matrices.f_scatter_value_(1, &at, 1.0)?;
    // The last role means that the path has ended.
    Ok(matrices.f_narrow(1, 0, (of_matrix - 1) * depth)?.f_contiguous()?)
}

/// Converts symbols `[batch, grids, 64]` and flags `[batch, flags]` to planes.
fn grids(symbols: &Tensor, flags: &Tensor, shape: &FishEyeShape) -> Result<Tensor, TorchError> {
    let (batch, count) = flags.size2()?;
    let planes = (shape.grids * shape.symbols) as i64;
    let of_grids = one_hot(&symbols.f_view([-1, CELLS])?, shape)?.f_view([batch, planes, SIDE, SIDE])?;
    let flags = flags
        .f_to_kind(Kind::Float)?
        .f_view([batch, count, 1, 1])?
        .f_expand([batch, count, SIDE, SIDE], false)?;
    channels_last(&Tensor::f_cat(&[of_grids, flags], 1)?)
}

/// Converts symbols `[examples, 2, 64]` to planes.
fn examples(symbols: &Tensor, shape: &FishEyeShape) -> Result<Tensor, TorchError> {
    let (count, grids, squares) = symbols.size3()?;
    let planes = one_hot(&symbols.f_view([count * grids, squares])?, shape)?;
    channels_last(&planes.f_view([count, grids * shape.symbols as i64, SIDE, SIDE])?)
}

/// Converts symbols `[boards, 64]` to f32 `[boards, symbols, 8, 8]`.
fn one_hot(symbols: &Tensor, shape: &FishEyeShape) -> Result<Tensor, TorchError> {
    let (boards, of_square) = (symbols.size2()?.0, shape.symbols as i64);
    let sizes = [boards, of_square, CELLS];
    let mut planes = Tensor::f_zeros(sizes, (Kind::Float, symbols.device()))?;
    let at = symbols.f_to_kind(Kind::Int64)?.f_unsqueeze(1)?;
    let _ = planes.f_scatter_value_(1, &at, 1.0)?;
    Ok(planes.f_view([boards, of_square, SIDE, SIDE])?)
}
