//! Checks a reply against its request and decodes the priors. No data from outside reaches a search unchecked.

use proto::{
    priors,
    v1::{EvaluateReply, EvaluateRequest},
};

/// Tolerance for the sum of priors, which are half-precision numbers.
const SUM_TOLERANCE: f32 = 0.01;
/// Tolerance for values beyond [-1, 1], caused by rounding.
const VALUE_TOLERANCE: f32 = 1e-3;

/// Checks a reply and appends the priors of all positions to `priors`. The content of `priors` after an error is unspecified.
///
/// # Errors
/// The way in which the reply does not fit its request.
pub(super) fn check(
    reply: &EvaluateReply,
    request: &EvaluateRequest,
    priors: &mut Vec<f32>,
) -> Result<(), String> {
    if reply.version.is_empty() {
        return Err("the reply has no model version".into());
    }
    let (found, expected) = (reply.values.len(), request.legal_counts.len());
    if found != expected {
        return Err(format!("{found} values for {expected} positions"));
    }
    let is_value = |value: f32| value.abs() <= 1.0 + VALUE_TOLERANCE;
    if let Some(position) = reply.values.iter().position(|&value| !is_value(value)) {
        let value = reply.values[position];
        return Err(format!("position {position} has the value {value}"));
    }
    let start = priors.len();
    priors::decode(&reply.priors, request.legal_actions.len(), priors).map_err(|error| error.to_string())?;
    let mut rest = &priors[start..];
    for (position, &count) in request.legal_counts.iter().enumerate() {
        let (own, others) = rest.split_at(count as usize);
        rest = others;
        // The range also excludes NaN.
        if let Some(prior) = own.iter().find(|prior| !(0.0..).contains(*prior)) {
            return Err(format!("position {position} has the prior {prior}"));
        }
        let sum: f32 = own.iter().sum();
        if !(1.0 - SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(&sum) {
            return Err(format!("the priors of position {position} add up to {sum}"));
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

    fn check_reply(reply: &EvaluateReply) -> Result<Vec<f32>, String> {
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
        let good = [1.0, 0.75, 0.25];
        let cases: [(&[f32], &[f32], &str); 8] = [
            (&[0.0], &good, "1 values for 2 positions"),
            (&[0.0, f32::NAN], &good, "position 1 has the value NaN"),
            (&[1.5, 0.0], &good, "position 0 has the value 1.5"),
            (&[0.0, 0.0], &[1.0, 1.0], "prior"),
            (&[0.0, 0.0], &[1.0, -0.5, 1.5], "position 1 has the prior -0.5"),
            (&[0.0, 0.0], &[f32::NAN, 1.0, 0.0], "position 0 has the prior NaN"),
            (
                &[0.0, 0.0],
                &[1.0, 0.5, 0.25],
                "the priors of position 1 add up to 0.75",
            ),
            (
                &[0.0, 0.0],
                &[f32::INFINITY, 1.0, 0.0],
                "the priors of position 0 add up to inf",
            ),
        ];
        for (values, given, reason) in cases {
            let error = check_reply(&reply(values, given)).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let nameless = EvaluateReply {
            version: String::new(),
            ..reply(&[0.0, 0.0], &good)
        };
        assert_eq!(
            check_reply(&nameless),
            Err("the reply has no model version".into())
        );
    }
}
