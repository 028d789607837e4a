//! [`Learned`]: what a run learns, and [`LearningReader`], which reads it from the run's files and services.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use arena::rating::{Outcome, RatedMatch};
use config::{GameConfig, RunConfig};
use games::{Action, RowLayout, Symmetry, registry};
use proto::{
    priors,
    v1::{
        DescribeModelRequest, EvaluateRequest, ExportRequest, Game, GameResult, Priority, StatsRequest,
        evaluator_client::EvaluatorClient, replay_store_client::ReplayStoreClient,
    },
};
use search::{Draws, GameKey, Purpose};
use service::figures::Tail;
use tonic::Status;

use crate::{
    losses::{self, Line, Validation},
    page::TIMEOUT,
    run::addresses::Addresses,
};

/// Validations that are compared: the newest half with the half before it.
pub const VALIDATIONS: usize = 20;
/// Number of newest games that are read.
const GAMES: u64 = 100;
/// Actions at the beginning of a game by which openings are compared.
const OPENING: usize = 8;
/// Time between two readings of the games and of the network.
const INTERVAL: Duration = Duration::from_secs(60);

/// Figures of a run's learning. An unknown figure raises no alarm.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Losses at the newest validations, oldest first.
    pub validations: Vec<Validation>,
    /// Newest games.
    pub games: Vec<Finished>,
    /// Entropy of the served network's policy on the game's probe positions, as a share of that of equal priors, 0 to 1.
    pub probe_entropy: Option<f64>,
    /// Rated matches since the best checkpoint was found.
    pub matches_since_best: u64,
}

/// A finished game, as far as alarms need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// True if the game was drawn by its rules.
    pub is_drawn: bool,
    /// True if the run's limit of actions ended the game.
    pub is_cut: bool,
    /// Start, and the first actions.
    pub opening: (String, Vec<u32>),
}

/// Reads what a run learns. Files are read on from where the last call ended.
#[derive(Debug)]
pub struct LearningReader {
    learner: Tail,
    rating: Tail,
    learned: Learned,
    asked: Option<Instant>,
}

impl LearningReader {
    /// Reads the run in `folder` with [`LearningReader::read`].
    pub fn new(folder: &Path) -> Self {
        Self {
            learner: Tail::new(folder.join(losses::FILE)),
            rating: Tail::new(folder.join("rating/metrics.jsonl")),
            learned: Learned::default(),
            asked: None,
        }
    }

    /// Reads what was written since the last call and, once a minute, asks for the newest games and the network's priors. What does
    /// not answer within two seconds is unknown.
    pub async fn read(&mut self, config: &RunConfig, addresses: &Addresses) -> Learned {
        let lines = self.learner.read_all::<Line>().into_iter();
        let validations = &mut self.learned.validations;
        validations.extend(lines.filter_map(|line| line.validation));
        validations.drain(..validations.len().saturating_sub(VALIDATIONS));
        for line in self.rating.read_all::<RatedMatch>() {
            let since = &mut self.learned.matches_since_best;
            match line.outcome {
                Outcome::Promoted | Outcome::Overtaken => *since = 0,
                // A role with a share of the processor time breaks matches off.
                Outcome::Undecided if config.rating.is_limited() => {}
                Outcome::Kept | Outcome::Undecided => *since += 1,
                Outcome::Placed => {}
            }
        }
        if self.asked.is_none_or(|asked| asked.elapsed() >= INTERVAL) {
            let (games, entropy) = tokio::join!(
                tokio::time::timeout(TIMEOUT, newest_games(config, addresses)),
                tokio::time::timeout(TIMEOUT, entropy(config, addresses)),
            );
            self.learned.games = games.ok().and_then(Result::ok).unwrap_or_default();
            self.learned.probe_entropy = entropy.ok().flatten();
            self.asked = Some(Instant::now());
        }
        self.learned.clone()
    }
}

/// The newest games of the store.
async fn newest_games(config: &RunConfig, addresses: &Addresses) -> Result<Vec<Finished>, Status> {
    let unreachable = |error: service::connect::AddressError| Status::unavailable(error.to_string());
    let link = service::connect::link(&addresses.replay, &config.security).map_err(unreachable)?;
    let mut client =
        ReplayStoreClient::new(link).max_decoding_message_size(service::connect::MAX_MESSAGE_BYTES);
    let stats = client.stats(StatsRequest::default()).await?.into_inner();
    let first = (stats.newest_sequence + 1).saturating_sub(GAMES);
    let request = ExportRequest {
        from_sequence: first.max(stats.oldest_sequence),
        ..ExportRequest::default()
    };
    let mut stream = client.export(request).await?.into_inner();
    let mut games = Vec::new();
    while let Some(stored) = stream.message().await? {
        games.extend(stored.game.as_ref().map(Finished::from));
    }
    Ok(games)
}

impl From<&Game> for Finished {
    fn from(game: &Game) -> Self {
        let is_cut = game.ending == proto::endings::MAX_ACTIONS;
        Self {
            is_drawn: !is_cut && game.result() == GameResult::Draw,
            is_cut,
            opening: (
                game.start.clone(),
                game.actions.iter().take(OPENING).copied().collect(),
            ),
        }
    }
}

/// Mean entropy of the served network's policy over the game's probe positions, each as a share of the entropy of equal priors; `None`
/// if the inference server does not answer.
async fn entropy(config: &RunConfig, addresses: &Addresses) -> Option<f64> {
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
