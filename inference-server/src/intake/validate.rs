//! Checks every number of a request against the model's own layout, before any other code reads it.

use games::RowLayout;
use proto::columns::{Lengths, Ragged};

use crate::intake::{
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
        return Err(Refusal::invalid(
            "the request has no positions (legal_counts is empty)".into(),
        ));
    }
    if positions > max_request {
        return Err(Refusal::invalid(too_large(positions, max_request)));
    }
    check_rows(request, layout, positions)?;
    check_actions(request, layout)?;
    Ok(positions)
}

/// Returns the reason for the refusal of a request with more positions than `most`.
pub(crate) fn too_large(positions: usize, most: usize) -> String {
    format!("{positions} positions in one request, at most {most} are allowed")
}

fn check_rows(request: &EvaluationRequest, layout: &RowLayout, positions: usize) -> Result<(), Refusal> {
    let lengths = request.row_lengths.as_slice();
    if lengths.len() != positions && !(lengths.is_empty() && layout.row_len().is_some()) {
        return Err(Refusal::invalid(format!(
            "{} row lengths for {positions} positions; give one for each, or leave them out if all rows have one length",
            lengths.len()
        )));
    }
    let possible = layout.row_lengths();
    let wrong = |&(_, &length): &(usize, &u32)| !possible.contains(&(length as usize));
    if let Some((position, &length)) = lengths.iter().enumerate().find(wrong) {
        let error = games::RowError::of_length(*possible.start(), length as usize);
        return Err(Refusal::at(position, error));
    }
    for (position, row) in rows(request, layout)?.enumerate() {
        layout
            .validate(row)
            .map_err(|error| Refusal::at(position, error))?;
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
    Ragged::new("indices", &request.indices, lengths, positions).map_err(|error| {
        let (found, expected) = (request.indices.len(), error.expected);
        Refusal::invalid(format!(
            "{found} indices, the rows of {positions} positions have {expected}"
        ))
    })
}

fn check_actions(request: &EvaluationRequest, layout: &RowLayout) -> Result<(), Refusal> {
    let (counts, actions) = (&request.legal_counts, &request.legal_actions);
    let legal = Ragged::new("legal_actions", actions, Lengths::Varying(counts), counts.len());
    let legal = legal.map_err(|error| {
        let (found, expected) = (actions.len(), error.expected);
        Refusal::invalid(format!(
            "{found} legal actions, but legal_counts add up to {expected}"
        ))
    })?;
    let mut seen = vec![0_u64; (layout.actions as usize).div_ceil(64)];
    for (position, (legal, row)) in legal.zip(rows(request, layout)?).enumerate() {
        let actions = layout.actions_in(row);
        if legal.is_empty() && request.wants != Wants::Logits {
            return Err(Refusal::at(position, "no legal actions"));
        }
        seen.fill(0);
        for &action in legal {
            if action >= actions {
                let reason = format!("action {action} is not below {actions}");
                return Err(Refusal::at(position, reason));
            }
            let Some(word) = seen.get_mut(action as usize / 64) else {
                continue;
            };
            let bit = 1 << (action % 64);
            if *word & bit != 0 {
                return Err(Refusal::at(position, format!("duplicate action {action}")));
            }
            *word |= bit;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tonic::Code;

    use super::*;
    use crate::tests::layout;

    fn good() -> EvaluationRequest {
        EvaluationRequest {
            indices: vec![5, 130, 50, 3, 3, 0],
            legal_actions: vec![0, 4, 2],
            legal_counts: vec![2, 1],
            ..EvaluationRequest::default()
        }
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
        type Change = fn(&mut EvaluationRequest);
        let wrong: [(Change, Option<usize>, &str); 12] = [
            (|wrong| wrong.indices[4] = 64, Some(1), "value 1: index 64"),
            (|wrong| wrong.indices[5] = 101, Some(1), "value 2"),
            (|wrong| wrong.row_lengths = vec![3, 4], Some(1), "4"),
            (
                |wrong| wrong.legal_actions[2] = 5,
                Some(1),
                "action 5 is not below 5",
            ),
            (|wrong| wrong.legal_actions[1] = 0, Some(0), "duplicate action 0"),
            (
                |wrong| wrong.legal_counts = vec![3, 0],
                Some(1),
                "no legal actions",
            ),
            (|wrong| wrong.legal_counts.clear(), None, "no positions"),
            (
                |wrong| wrong.indices.truncate(5),
                None,
                "5 indices, the rows of 2 positions have 6",
            ),
            (
                |wrong| wrong.legal_counts = vec![2, 2],
                None,
                "3 legal actions, but legal_counts add up to 4",
            ),
            (
                |wrong| wrong.legal_counts = vec![u32::MAX; 2],
                None,
                "legal_counts add up to 8589934590",
            ),
            (
                |wrong| wrong.row_lengths = vec![3],
                None,
                "1 row lengths for 2 positions",
            ),
            (
                |wrong| wrong.legal_counts = vec![1; 9],
                None,
                "9 positions in one request, at most 8",
            ),
        ];
        for (change, position, words) in wrong {
            let mut request = good();
            change(&mut request);
            let refusal = check(&request, &layout(), 8).unwrap_err();
            let text = refusal.to_string();
            assert_eq!(
                (refusal.position(), refusal.code()),
                (position, Code::InvalidArgument),
                "{text}"
            );
            assert!(text.contains(words), "{text}");
            let start = position.map_or_else(String::new, |position| format!("position {position}: "));
            assert!(text.starts_with(&start), "{text}");
        }
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
