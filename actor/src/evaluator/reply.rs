//! Checks a reply against its request and decodes the priors. No data from outside reaches a search unchecked.

use proto::{
    priors::{self, PriorsError},
    v1::{EvaluateReply, EvaluateRequest},
};

/// Tolerance for the sum of priors, which are half-precision numbers.
const SUM_TOLERANCE: f32 = 0.01;
/// Tolerance for values beyond [-1, 1], caused by rounding.
const VALUE_TOLERANCE: f32 = 1e-3;

/// Error: a reply does not fit its request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("{found} values for {expected} positions")]
    Values { found: usize, expected: usize },
    #[error("position {position} has the value {value}")]
    Value { position: usize, value: f32 },
    #[error(transparent)]
    Priors(#[from] PriorsError),
    #[error("position {position} has the prior {prior}")]
    Prior { position: usize, prior: f32 },
    #[error("the priors of position {position} add up to {sum}")]
    Sum { position: usize, sum: f32 },
    #[error("the reply names no model version")]
    Version,
}

/// Checks a reply and appends the priors of all positions to `priors`. The content of `priors` after an error is unspecified.
pub(super) fn check(
    reply: &EvaluateReply,
    request: &EvaluateRequest,
    priors: &mut Vec<f32>,
) -> Result<(), Malformed> {
    if reply.version.is_empty() {
        return Err(Malformed::Version);
    }
    let expected = request.legal_counts.len();
    let found = reply.values.len();
    if found != expected {
        return Err(Malformed::Values { found, expected });
    }
    let is_value = |value: f32| value.abs() <= 1.0 + VALUE_TOLERANCE;
    if let Some(position) = reply.values.iter().position(|&value| !is_value(value)) {
        let value = reply.values[position];
        return Err(Malformed::Value { position, value });
    }
    let start = priors.len();
    priors::decode(&reply.priors, request.legal_actions.len(), priors)?;
    let mut rest = &priors[start..];
    for (position, &count) in request.legal_counts.iter().enumerate() {
        let (own, others) = rest.split_at(count as usize);
        rest = others;
        // The range also excludes NaN.
        if let Some(&prior) = own.iter().find(|prior| !(0.0..).contains(*prior)) {
            return Err(Malformed::Prior { position, prior });
        }
        let sum: f32 = own.iter().sum();
        if !(1.0 - SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(&sum) {
            return Err(Malformed::Sum { position, sum });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> EvaluateRequest {
        EvaluateRequest {
            id: 1,
            legal_actions: vec![4, 5, 6],
            legal_counts: vec![1, 2],
            ..Default::default()
        }
    }

    fn reply(values: &[f32], given: &[f32]) -> EvaluateReply {
        EvaluateReply {
            id: 1,
            version: "v".into(),
            values: values.to_vec(),
            priors: priors::encode(given),
            error: None,
        }
    }

    fn check_reply(reply: &EvaluateReply) -> Result<Vec<f32>, Malformed> {
        let mut unpacked = Vec::new();
        check(reply, &request(), &mut unpacked)?;
        Ok(unpacked)
    }

    #[test]
    fn a_valid_reply_is_decoded() {
        let good = reply(&[-1.0, 0.25], &[1.0, 0.75, 0.25]);
        assert_eq!(check_reply(&good), Ok(vec![1.0, 0.75, 0.25]));
    }

    #[test]
    fn a_malformed_reply_is_refused_with_its_reason() {
        let wrong = |values: &[f32], given: &[f32]| check_reply(&reply(values, given)).unwrap_err();
        let good = [1.0, 0.75, 0.25];
        assert_eq!(
            wrong(&[0.0], &good),
            Malformed::Values {
                found: 1,
                expected: 2
            }
        );
        assert!(matches!(
            wrong(&[0.0, f32::NAN], &good),
            Malformed::Value { position: 1, .. }
        ));
        assert_eq!(
            wrong(&[1.5, 0.0], &good),
            Malformed::Value {
                position: 0,
                value: 1.5
            }
        );
        assert!(matches!(wrong(&[0.0, 0.0], &[1.0, 1.0]), Malformed::Priors(_)));
        assert_eq!(
            wrong(&[0.0, 0.0], &[1.0, -0.5, 1.5]),
            Malformed::Prior {
                position: 1,
                prior: -0.5
            }
        );
        assert!(matches!(
            wrong(&[0.0, 0.0], &[f32::NAN, 1.0, 0.0]),
            Malformed::Prior { position: 0, .. }
        ));
        assert_eq!(
            wrong(&[0.0, 0.0], &[1.0, 0.5, 0.25]),
            Malformed::Sum {
                position: 1,
                sum: 0.75
            }
        );
        assert!(matches!(
            wrong(&[0.0, 0.0], &[f32::INFINITY, 1.0, 0.0]),
            Malformed::Sum { position: 0, .. }
        ));
        let nameless = EvaluateReply {
            version: String::new(),
            ..reply(&[0.0, 0.0], &good)
        };
        assert_eq!(check_reply(&nameless), Err(Malformed::Version));
    }
}
