//! Policy targets from the values of actions, as [`search::completed_q`] defines them, from the columns of a batch.

use proto::decisions::Decision;
use search::{CompletedQ, completed_q::Results};

/// Returns the target of a searched position: shares of the visited actions, then of the unvisited ones, with the sum 1.
///
/// # Errors
/// Reason why there is none: a number that is not finite, or no actions.
pub fn target(rule: CompletedQ, visits: &[u32], decision: &Decision<'_>) -> Result<Vec<f64>, String> {
    let priors: Vec<f64> = decision
        .visited_priors
        .iter()
        .chain(decision.unvisited_priors.iter())
        .map(f64::from)
        .collect();
    let mut visits = visits.to_vec();
    let mut values: Vec<f64> = decision.values.iter().map(f64::from).collect();
    visits.resize(priors.len(), 0);
    values.resize(priors.len(), 0.0);
    let results = Results {
        priors: &priors,
        visits: &visits,
        values: &values,
        evaluation: decision.evaluation.into(),
    };
    rule.policy(&results)
        .ok_or_else(|| "the search results give no policy".into())
}
