//! Rows of board games: a fixed number of `u32` that expand to a stack of planes.
//!
//! A row begins with `entries` flat indices (`height·width·plane + width·rank + file`) into the `[planes][rank][file]` tensor,
//! all of which are set to 1.0. One value for each constant plane follows. The row repeats the first index for an absent piece, so
//! that expansion needs no branch. The form is Paco Ŝako's index representation, generalised to other board games.
//!
//! | module | content |
//! |---|---|
//! | `codec` | the representation as a [`Codec`](crate::codec::Codec) |
//! | `symmetries` | symmetries as tables of squares and policy entries |

mod codec;
mod symmetries;

use serde::{Deserialize, Serialize};

use crate::codec::RowError;

pub(crate) use symmetries::symmetries;

/// Name of the input of an exported network that takes rows of planes. The graph itself expands them.
pub const INDICES: &str = "indices";

/// Largest height and width of a plane.
pub const MAX_SIDE: u32 = 32;
/// Largest number of planes.
const MAX_PLANES: u32 = 512;
/// Largest number of values in the expanded tensor of one position.
const MAX_TENSOR: usize = 1 << 16;
/// Largest number of leading indices of a row.
const MAX_ENTRIES: u32 = 4096;

/// A plane that is filled with one value of the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantPlane {
    /// Meaning of the plane, e.g. `castling bottom queen side`.
    pub name: String,
    /// Number of the plane in the tensor.
    pub plane: u32,
    /// Divisor of the row's value: 1, or 100 for the no-progress counter.
    pub divisor: u32,
    /// Largest value that a row may hold here.
    pub max: u32,
}

/// Meaning of the values of rows that are planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneStack {
    /// Number of ranks of a plane, 1 to 32.
    pub height: u32,
    /// Number of files of a plane, 1 to 32.
    pub width: u32,
    /// Number of leading flat indices, all of which are set to 1.0.
    pub entries: u32,
    /// Number of planes of the expanded tensor: at most 512, and 65,536 values in all.
    pub planes: u32,
    /// Planes that an index may point into, ascending.
    pub sparse: Vec<u32>,
    /// Planes that are filled by the values after the indices, in the row's order.
    pub constants: Vec<ConstantPlane>,
    /// Planes that are always 1.0.
    pub ones: Vec<u32>,
}

impl PlaneStack {
    /// Returns the number of squares of a plane.
    pub const fn squares(&self) -> usize {
        self.height as usize * self.width as usize
    }

    /// Returns the sizes of the expanded tensor of one position: planes, ranks, files.
    pub const fn shape(&self) -> [usize; 3] {
        [self.planes as usize, self.height as usize, self.width as usize]
    }

    /// Returns the number of values in a row.
    pub fn row_len(&self) -> usize {
        self.entries as usize + self.constants.len()
    }

    /// Returns the number of values in the expanded tensor of one position: `planes · height · width`.
    pub fn tensor_len(&self) -> usize {
        self.planes as usize * self.squares()
    }

    /// Checks that every plane is filled in exactly one way.
    ///
    /// # Errors
    /// [`RowError`] with the first contradiction.
    pub fn check(&self) -> Result<(), RowError> {
        let fault = |text: String| Err(RowError::of_layout(text));
        for (what, count, most) in [
            ("ranks", self.height, MAX_SIDE),
            ("files", self.width, MAX_SIDE),
            ("planes", self.planes, MAX_PLANES),
            ("entries", self.entries, MAX_ENTRIES),
        ] {
            if count == 0 || count > most {
                return fault(format!("{count} {what} (1 to {most} are possible)"));
            }
        }
        if self.tensor_len() > MAX_TENSOR {
            return fault(format!(
                "{} planes of {}×{} squares (planes · squares is {MAX_TENSOR} at most)",
                self.planes, self.height, self.width
            ));
        }
        let mut seen = vec![false; self.planes as usize];
        let filled = self
            .sparse
            .iter()
            .chain(self.constants.iter().map(|constant| &constant.plane))
            .chain(&self.ones);
        for &plane in filled {
            match seen.get_mut(plane as usize) {
                None => return fault(format!("plane {plane} of {}", self.planes)),
                Some(true) => return fault(format!("plane {plane} is filled twice")),
                Some(slot) => *slot = true,
            }
        }
        if let Some(plane) = seen.iter().position(|&is_filled| !is_filled) {
            return fault(format!("plane {plane} is never filled"));
        }
        if let Some(constant) = self.constants.iter().find(|constant| constant.divisor == 0) {
            return fault(format!("{} is divided by 0", constant.name));
        }
        Ok(())
    }

    /// Checks one row before it is expanded or batched.
    ///
    /// # Errors
    /// [`RowError`] that names the first wrong value.
    pub fn validate(&self, row: &[u32]) -> Result<(), RowError> {
        if row.len() != self.row_len() {
            return Err(RowError::of_length(self.row_len(), row.len()));
        }
        let (is_sparse, squares) = (self.sparse_mask(), self.squares() as u32);
        let (indices, values) = row.split_at(self.entries as usize);
        for (at, &index) in indices.iter().enumerate() {
            let plane = index / squares;
            if !is_sparse.get(plane as usize).is_some_and(|&is_sparse| is_sparse) {
                return Err(RowError::new(format!(
                    "value {at}: index {index} points to none of the piece planes of the {}-plane tensor",
                    self.planes
                )));
            }
        }
        for (offset, (constant, &value)) in self.constants.iter().zip(values).enumerate() {
            if value > constant.max {
                let (at, ConstantPlane { name, max, .. }) = (indices.len() + offset, constant);
                return Err(RowError::new(format!(
                    "value {at} ({name}): {value} is above {max}"
                )));
            }
        }
        Ok(())
    }

    /// Expands a row into `tensor`, of length [`PlaneStack::tensor_len`], which is overwritten.
    ///
    /// # Errors
    /// [`RowError`] if the row is not valid or the tensor has another length.
    pub fn expand(&self, row: &[u32], tensor: &mut [f32]) -> Result<(), RowError> {
        self.validate(row)?;
        if tensor.len() != self.tensor_len() {
            return Err(RowError::of_length(self.tensor_len(), tensor.len()));
        }
        tensor.fill(0.0);
        let squares = self.squares();
        let (indices, values) = row.split_at(self.entries as usize);
        for &index in indices {
            tensor[index as usize] = 1.0;
        }
        let mut fill = |plane: u32, value: f32| {
            let start = plane as usize * squares;
            tensor[start..start + squares].fill(value);
        };
        for (constant, &value) in self.constants.iter().zip(values) {
            fill(constant.plane, value as f32 / constant.divisor as f32);
        }
        for &plane in &self.ones {
            fill(plane, 1.0);
        }
        Ok(())
    }

    /// Returns for each plane whether an index may point into it.
    fn sparse_mask(&self) -> [bool; MAX_PLANES as usize] {
        let mut mask = [false; MAX_PLANES as usize];
        for &plane in &self.sparse {
            if let Some(slot) = mask.get_mut(plane as usize) {
                *slot = true;
            }
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> PlaneStack {
        PlaneStack {
            height: 8,
            width: 8,
            entries: 2,
            planes: 4,
            sparse: vec![0, 2],
            constants: vec![ConstantPlane {
                name: "counter".into(),
                plane: 1,
                divisor: 100,
                max: 100,
            }],
            ones: vec![3],
        }
    }

    #[test]
    fn a_row_expands_to_indices_constants_and_ones() {
        let mut tensor = vec![9.0; 256];
        layout().expand(&[5, 130, 50], &mut tensor).unwrap();
        assert_eq!(tensor.iter().take(64).sum::<f32>(), 1.0);
        assert_eq!(tensor[5], 1.0);
        assert_eq!(tensor[130], 1.0);
        assert!(tensor[64..128].iter().all(|&value| value == 0.5));
        assert!(tensor[192..].iter().all(|&value| value == 1.0));
    }

    #[test]
    fn planes_have_the_sides_of_the_board() {
        let stack = PlaneStack {
            height: 5,
            width: 7,
            ..layout()
        };
        let mut tensor = vec![9.0; stack.tensor_len()];
        stack.expand(&[34, 70, 100], &mut tensor).unwrap();
        assert_eq!((stack.shape(), tensor.len()), ([4, 5, 7], 140));
        assert_eq!((tensor[34], tensor[70]), (1.0, 1.0));
        assert_eq!(tensor.iter().sum::<f32>(), 2.0 + 35.0 + 35.0);
        let said = stack.validate(&[34, 35, 0]).unwrap_err().to_string();
        assert!(said.contains("index 35"), "{said}");
    }

    #[test]
    fn an_invalid_row_is_refused_with_the_place_of_the_wrong_value() {
        for (row, reason) in [
            (&[5, 130][..], "the row has 2 values instead of 3"),
            (&[5, 64, 0], "value 1: index 64 "),
            (&[u32::MAX, 0, 0], "value 0: index 4294967295 "),
            (&[5, 130, 101], "value 2 (counter): 101 is above 100"),
        ] {
            let error = layout().validate(row).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }

    #[test]
    fn a_layout_that_contradicts_itself_is_refused() {
        assert_eq!(layout().check(), Ok(()));
        let changes: [fn(&mut PlaneStack); 5] = [
            |stack| stack.height = 0,
            |stack| stack.width = 33,
            |stack| stack.ones = vec![2],
            |stack| stack.ones.clear(),
            |stack| stack.sparse.push(9),
        ];
        for change in changes {
            let mut stack = layout();
            change(&mut stack);
            assert!(stack.check().is_err(), "{stack:?}");
        }
    }
}
