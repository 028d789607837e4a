//! Checks every number of a request against the model's own layout, before any other code reads it.

use games::RowLayout;
use proto::columns::{Lengths, Ragged};

use crate::requests::{
    refusal::Refusal,
    request::{EvaluationRequest, Wants},
};

/// Checks a request and returns its number of positions.
///
/// # Errors
/// [`Refusal`] with the first offending position.
pub fn check(request: &EvaluationRequest, layout: &RowLayout, max_request: usize) -> Result<usize, Refusal> {
    let positions = request.legal_counts.len();
    if positions == 0 {
        return Err(Refusal::Empty);
    }
    if positions > max_request {
        return Err(Refusal::TooLarge {
            positions,
            most: max_request,
        });
    }
    check_rows(request, layout, positions)?;
    check_actions(request, layout)?;
    Ok(positions)
}

fn check_rows(request: &EvaluationRequest, layout: &RowLayout, positions: usize) -> Result<(), Refusal> {
    let lengths = request.row_lengths.as_slice();
    if lengths.len() != positions && !(lengths.is_empty() && layout.row_len().is_some()) {
        return Err(Refusal::RowLengths {
            found: lengths.len(),
            positions,
        });
    }
    let possible = layout.row_lengths();
    let wrong = |&(_, &length): &(usize, &u32)| !possible.contains(&(length as usize));
    if let Some((position, &length)) = lengths.iter().enumerate().find(wrong) {
        return Err(Refusal::Row {
            position,
            error: games::RowError::Length {
                expected: *possible.start(),
                found: length as usize,
            },
        });
    }
    for (position, row) in rows(request, layout)?.enumerate() {
        layout
            .validate(row)
            .map_err(|error| Refusal::Row { position, error })?;
    }
    Ok(())
}

/// Returns the rows of the positions.
fn rows<'a>(request: &'a EvaluationRequest, layout: &RowLayout) -> Result<Ragged<'a>, Refusal> {
    let positions = request.legal_counts.len();
    let lengths = match layout.row_len() {
        Some(row_len) if request.row_lengths.is_empty() => Lengths::Fixed(row_len),
        _ => Lengths::Varying(&request.row_lengths),
    };
    Ragged::new("indices", &request.indices, lengths, positions).map_err(|error| Refusal::Indices {
        found: request.indices.len(),
        expected: error.expected,
        positions,
    })
}

fn check_actions(request: &EvaluationRequest, layout: &RowLayout) -> Result<(), Refusal> {
    let (counts, actions) = (&request.legal_counts, &request.legal_actions);
    let legal = Ragged::new("legal_actions", actions, Lengths::Varying(counts), counts.len());
    let legal = legal.map_err(|error| Refusal::LegalCounts {
        found: actions.len(),
        expected: error.expected,
    })?;
    let mut seen = vec![0_u64; (layout.actions as usize).div_ceil(64)];
    for (position, (legal, row)) in legal.zip(rows(request, layout)?).enumerate() {
        let actions = layout.actions_in(row);
        if legal.is_empty() && request.wants != Wants::Logits {
            return Err(Refusal::NoLegalActions { position });
        }
        seen.fill(0);
        for &action in legal {
            if action >= actions {
                return Err(Refusal::Action {
                    position,
                    action,
                    actions,
                });
            }
            let Some(word) = seen.get_mut(action as usize / 64) else {
                continue;
            };
            let bit = 1 << (action % 64);
            if *word & bit != 0 {
                return Err(Refusal::Duplicate { position, action });
            }
            *word |= bit;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use games::RowError;
    use proptest::prelude::*;
    use tonic::Code;

    use super::*;
    use crate::testing::layout;

    fn good() -> EvaluationRequest {
        EvaluationRequest {
            indices: vec![5, 130, 50, 3, 3, 0],
            legal_actions: vec![0, 4, 2],
            legal_counts: vec![2, 1],
            ..EvaluationRequest::default()
        }
    }

    fn refused(change: impl FnOnce(&mut EvaluationRequest)) -> Refusal {
        let mut request = good();
        change(&mut request);
        check(&request, &layout(), 8).unwrap_err()
    }

    #[test]
    fn valid_requests_are_accepted() {
        assert_eq!(check(&good(), &layout(), 8), Ok(2));
        let mut with_lengths = good();
        with_lengths.row_lengths = vec![3, 3];
        assert_eq!(check(&with_lengths, &layout(), 8), Ok(2));
    }

    #[test]
    fn refusals_name_the_offending_position() {
        let refusal = refused(|request| request.indices[4] = 64);
        assert_eq!(
            refusal,
            Refusal::Row {
                position: 1,
                error: RowError::Index {
                    at: 1,
                    index: 64,
                    planes: 4
                }
            }
        );
        assert_eq!(refusal.position(), Some(1));
        assert_eq!(refusal.code(), Code::InvalidArgument);
        assert!(
            refusal.to_string().starts_with("position 1: value 1"),
            "{refusal}"
        );

        let refusal = refused(|request| request.indices[5] = 101);
        assert!(matches!(
            refusal,
            Refusal::Row {
                position: 1,
                error: RowError::Constant { .. }
            }
        ));
        let refusal = refused(|request| request.row_lengths = vec![3, 4]);
        assert!(matches!(
            refusal,
            Refusal::Row {
                position: 1,
                error: RowError::Length { .. }
            }
        ));
        let refusal = refused(|request| request.legal_actions[2] = 5);
        assert_eq!(
            refusal,
            Refusal::Action {
                position: 1,
                action: 5,
                actions: 5
            }
        );
        let refusal = refused(|request| request.legal_actions[1] = 0);
        assert_eq!(
            refusal,
            Refusal::Duplicate {
                position: 0,
                action: 0
            }
        );
        let refusal = refused(|request| request.legal_counts = vec![3, 0]);
        assert_eq!(refusal, Refusal::NoLegalActions { position: 1 });
    }

    #[test]
    fn sums_that_do_not_fit_are_refused() {
        assert_eq!(refused(|request| request.legal_counts.clear()), Refusal::Empty);
        assert!(matches!(
            refused(|request| request.indices.truncate(5)),
            Refusal::Indices {
                found: 5,
                expected: 6,
                ..
            }
        ));
        assert!(matches!(
            refused(|request| request.legal_counts = vec![2, 2]),
            Refusal::LegalCounts {
                found: 3,
                expected: 4
            }
        ));
        assert!(matches!(
            refused(|request| request.legal_counts = vec![u32::MAX, u32::MAX]),
            Refusal::LegalCounts { .. }
        ));
        assert!(matches!(
            refused(|request| request.row_lengths = vec![3]),
            Refusal::RowLengths {
                found: 1,
                positions: 2
            }
        ));
        assert!(matches!(
            refused(|request| request.legal_counts = vec![1; 9]),
            Refusal::TooLarge {
                positions: 9,
                most: 8
            }
        ));
    }

    proptest! {
        /// All numbers of an accepted request are in range, for any input.
        #[test]
        fn accepted_requests_are_in_range(
            indices in prop::collection::vec(0u32..260, 0..12),
            row_lengths in prop::collection::vec(2u32..5, 0..3),
            legal_actions in prop::collection::vec(0u32..7, 0..8),
            legal_counts in prop::collection::vec(0u32..5, 0..5),
        ) {
            let request = EvaluationRequest { indices, row_lengths, legal_actions, legal_counts, ..EvaluationRequest::default() };
            if let Ok(positions) = check(&request, &layout(), 4) {
                prop_assert!((1..=4).contains(&positions));
                prop_assert_eq!(request.indices.len(), positions * 3);
                for row in request.indices.chunks(3) {
                    prop_assert!(layout().validate(row).is_ok());
                }
                prop_assert!(request.legal_actions.iter().all(|&action| action < 5));
                prop_assert_eq!(request.legal_counts.iter().sum::<u32>() as usize, request.legal_actions.len());
            }
        }
    }
}
