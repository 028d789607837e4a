//! [`entropy`]: how certain the served network is on known positions.

use config::{GameConfig, RunConfig};
use games::{Action, RowLayout, Symmetry, registry};
use proto::{
    priors,
    v1::{DescribeModelRequest, EvaluateRequest, Priority, evaluator_client::EvaluatorClient},
};
use search::{Draws, GameKey, Purpose};

use crate::run::addresses::Addresses;

/// Mean entropy of the served network's policy over the game's probe positions, each as a share of the entropy of equal priors; `None`
/// if the inference server does not answer.
pub async fn entropy(config: &RunConfig, addresses: &Addresses) -> Option<f64> {
    let link = service::connect::link(&addresses.inference, &config.security).ok()?;
    let mut client = EvaluatorClient::new(link);
    let described = client.describe_model(DescribeModelRequest::default()).await;
    let described = described.ok()?.into_inner();
    let request = EvaluateRequest {
        model: described.version,
        priority: Priority::Play.into(),
        ..probes(&config.game, &described.layout_json)?
    };
    let (counts, legal) = (request.legal_counts.clone(), request.legal_actions.len());
    let reply = client.evaluate(request).await.ok()?.into_inner();
    let mut all = Vec::new();
    priors::decode(&reply.priors, legal, &mut all).ok()?;
    mean_share(&all, &counts)
}

/// Mean entropy of priors that follow each other, `counts` of them for each position, as a share of the entropy of equal ones. A
/// position with one action has none.
fn mean_share(priors: &[f32], counts: &[u32]) -> Option<f64> {
    let mut rest = priors;
    let mut shares = Vec::new();
    for &count in counts {
        let (own, others) = rest.split_at_checked(count as usize)?;
        rest = others;
        if count > 1 {
            let known = own
                .iter()
                .map(|&prior| f64::from(prior))
                .filter(|&prior| prior > 0.0);
            let entropy: f64 = known.map(|prior| prior * prior.recip().ln()).sum();
            shares.push(entropy / f64::from(count).ln());
        }
    }
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Returns the probes of a game as a request to a network with this layout; `None` if the game has other rows.
fn probes(config: &GameConfig, layout_json: &str) -> Option<EvaluateRequest> {
    let layout: RowLayout = serde_json::from_str(layout_json).ok()?;
    let game = registry::find(&config.name).ok()?;
    let rules = serde_json::to_value(&config.rules).ok()?;
    let variant = game.variant(&rules, Some(layout.options)).ok()?;
    if variant.layout() != layout {
        return None;
    }
    let key = GameKey { run_seed: 0, game: 0 };
    let mut draws = Draws::new(key, 0, Purpose::Problem);
    let mut request = EvaluateRequest::default();
    let mut legal = Vec::new();
    for probe in variant.probes(&mut |below| draws.below(below)) {
        let begin = request.indices.len();
        probe.state.write_row(Symmetry::IDENTITY, &mut request.indices);
        if layout.row_len().is_none() {
            request.row_lengths.push((request.indices.len() - begin) as u32);
        }
        probe.state.legal_actions(&mut legal);
        let entry = |&action: &Action| probe.state.policy_index(Symmetry::IDENTITY, action);
        request.legal_actions.extend(legal.iter().map(entry));
        request.legal_counts.push(legal.len() as u32);
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_priors_have_all_entropy_and_a_certain_one_has_none() {
        let quarter = [0.25; 4];
        assert!((mean_share(&quarter, &[4]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(mean_share(&[1.0, 0.0, 0.0], &[3]), Some(0.0));
        // The mean of 1 and 0; a position with one action does not count.
        let mixed = [0.5, 0.5, 1.0, 0.0, 1.0];
        assert!((mean_share(&mixed, &[2, 2, 1]).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(mean_share(&[1.0], &[1]), None);
        assert_eq!(mean_share(&[1.0], &[2]), None, "fewer priors than announced");
    }
}
