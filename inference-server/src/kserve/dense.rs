//! Dense input: converts planes, which a client has expanded, to the row that expands to them.
//!
//! Planes that no row expands to are refused. So a number that is not finite or denormal (which slows a CPU's convolutions down
//! by a factor of seventy) cannot reach a model, dense and compact requests share batches, and the device gets few bytes.

use games::PlaneStack;

/// Tolerance for a constant plane's value, because clients divide in different precisions.
const TOLERANCE: f32 = 1e-6;

/// Appends the row of one position's `planes` (`[planes][height][width]`) to `rows`.
///
/// # Errors
/// A message with plane and square, if no row of `stack` expands to the planes.
pub fn collapse(stack: &PlaneStack, planes: &[f32], rows: &mut Vec<u32>) -> Result<(), String> {
    let squares = stack.squares();
    let place = |at: usize| format!("plane {}, square {}", at / squares, at % squares);
    let is_invalid = |value: &f32| !value.is_finite() || value.is_subnormal();
    if let Some(at) = planes.iter().position(is_invalid) {
        let kind = if planes[at].is_finite() {
            "denormal"
        } else {
            "not finite"
        };
        return Err(format!("{}: {:e} is {kind}", place(at), planes[at]));
    }
    let plane = |number: u32| {
        let start = number as usize * squares;
        planes.get(start..start + squares).unwrap_or_default()
    };
    let start = rows.len();
    let entries = stack.entries as usize;
    for &number in &stack.sparse {
        for (square, &value) in plane(number).iter().enumerate() {
            let at = number as usize * squares + square;
            if value == 1.0 {
                rows.push(at as u32);
            } else if value != 0.0 {
                return Err(format!(
                    "{}: {value}, expected 1 (a piece) or 0 (no piece)",
                    place(at)
                ));
            }
        }
    }
    let found = rows.len() - start;
    if found > entries {
        return Err(format!("{found} pieces, a row has at most {entries}"));
    }
    let Some(&first) = rows.get(start) else {
        return Err("there is no piece".into());
    };
    rows.resize(start + entries, first);
    for constant in &stack.constants {
        let filled = plane(constant.plane);
        let value = filled.first().copied().unwrap_or_default();
        let number = (value * constant.divisor as f32).round();
        let is_valid = number >= 0.0
            && number <= constant.max as f32
            && (number / constant.divisor as f32 - value).abs() <= TOLERANCE
            && filled.iter().all(|&other| other == value);
        if !is_valid {
            return Err(format!(
                "plane {} ({}) must be filled with one number k/{}, k from 0 to {}",
                constant.plane, constant.name, constant.divisor, constant.max
            ));
        }
        rows.push(number as u32);
    }
    for &number in &stack.ones {
        if plane(number).iter().any(|&value| value != 1.0) {
            return Err(format!("plane {number} must be filled with 1"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::layout;

    fn stack() -> PlaneStack {
        layout().stack().unwrap().clone()
    }

    fn expanded(row: &[u32]) -> Vec<f32> {
        let mut planes = vec![0.0; stack().tensor_len()];
        stack().expand(row, &mut planes).unwrap();
        planes
    }

    proptest! {
        #[test]
        fn a_row_comes_back_from_its_planes(first in 0u32..128, second in 0u32..128, counter in 0u32..=100) {
            let square = |number: u32| if number < 64 { number } else { number + 64 };
            let planes = expanded(&[square(first), square(second), counter]);
            let mut rows = vec![9];
            collapse(&stack(), &planes, &mut rows).unwrap();
            prop_assert_eq!(rows.len(), 4);
            prop_assert_eq!(expanded(&rows[1..]), planes);
        }

        #[test]
        fn accepted_planes_are_the_expansion_of_their_row(changes in prop::collection::vec((0usize..256, prop::sample::select(vec![0.0f32, 1.0, 0.5, -0.0, 2.0, 1e-40, f32::NAN, f32::INFINITY])), 0..4)) {
            let mut planes = expanded(&[5, 130, 50]);
            for (at, value) in changes {
                planes[at] = value;
            }
            let mut rows = Vec::new();
            if collapse(&stack(), &planes, &mut rows).is_ok() {
                prop_assert_eq!(expanded(&rows), planes);
            }
        }
    }

    #[test]
    fn errors_name_plane_and_square() {
        let refused = |at: usize, value: f32| {
            let mut planes = expanded(&[5, 130, 50]);
            planes[at] = value;
            collapse(&stack(), &planes, &mut Vec::new()).unwrap_err()
        };
        assert_eq!(refused(130, 1e-40), "plane 2, square 2: 1e-40 is denormal");
        assert_eq!(refused(255, f32::NAN), "plane 3, square 63: NaN is not finite");
        assert_eq!(
            refused(7, 0.25),
            "plane 0, square 7: 0.25, expected 1 (a piece) or 0 (no piece)"
        );
        assert_eq!(refused(7, 1.0), "3 pieces, a row has at most 2");
        assert!(refused(64, 0.25).starts_with("plane 1 (counter) must be filled with one number k/100"));
        assert_eq!(refused(200, 0.0), "plane 3 must be filled with 1");
        let mut none = expanded(&[5, 5, 50]);
        none[5] = 0.0;
        assert_eq!(
            collapse(&stack(), &none, &mut Vec::new()).unwrap_err(),
            "there is no piece"
        );
    }
}
