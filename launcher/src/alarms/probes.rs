//! [`entropy`]: how certain the served network is on known positions.

use config::RunConfig;
use games::{
    Face, Symmetry,
    probes::Probe,
    registry::{self, Visitor},
};
use network::{PositionBatch, file::encoding_of};
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
    let batch = Rows {
        config,
        layout_json: &described.layout_json,
    };
    let batch = registry::visit(&config.game.name, batch).ok()??;
    let fixed = (described.row_length > 0).then_some(described.row_length as usize);
    let request = EvaluateRequest {
        model: described.version,
        priority: Priority::Play.into(),
        ..batch.to_request(0..batch.len(), fixed)
    };
    let counts = request.legal_counts.clone();
    let reply = client.evaluate(request).await.ok()?.into_inner();
    let mut all = Vec::new();
    priors::decode(&reply.priors, batch.legal().len(), &mut all).ok()?;
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

/// Makes the rows of a game's probes for a network with this layout.
struct Rows<'a> {
    config: &'a RunConfig,
    layout_json: &'a str,
}

impl Visitor for Rows<'_> {
    type Output = Option<PositionBatch>;

    fn visit<G: Face>(self) -> Self::Output {
        let layout = serde_json::from_str(self.layout_json).ok()?;
        let encoding = encoding_of::<G>(&layout, "the inference server").ok()?;
        let rules = self.config.game.rules.clone().try_into::<G::Rules>().ok()?;
        let key = GameKey { run_seed: 0, game: 0 };
        let mut draws = Draws::new(key, 0, Purpose::Problem);
        let mut batch = PositionBatch::default();
        let mut legal = Vec::new();
        for probe in Probe::<G>::all(&rules, &mut |below| draws.below(below)) {
            probe.state.legal_actions(&mut legal);
            batch.push_position(&probe.state, Symmetry::IDENTITY, &legal, encoding);
        }
        Some(batch)
    }
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
