//! [`Pool`]: random games by the rules, with visit counts like those of a search of 100 visits.

use std::sync::atomic::{AtomicU64, Ordering};

use actor::play::record::result_of;
use games::{Outcome, Symmetry, erased::AnyGame, registry};
use prost::Message as _;
use proto::{endings, v1::Game};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

/// Number of different games; they are sent repeatedly under new ids.
const GAMES: u64 = 128;
/// Visits of each search.
const VISITS: f64 = 100.0;

/// The games.
pub struct Pool {
    /// Representation options of their rows.
    pub options: u32,
    games: Vec<Game>,
    sent: AtomicU64,
}

impl Pool {
    /// Plays games of at most `positions` positions, in the representation of a new run of `game`.
    pub fn play(game: &str, positions: usize) -> anyhow::Result<Self> {
        let options = launcher::new_run(Some(game), &[])?.game.options;
        let own = registry::find(game)?;
        let games = (0..GAMES).map(|seed| play(own, seed, options, positions));
        Ok(Self {
            options,
            games: games.collect::<anyhow::Result<_>>()?,
            sent: AtomicU64::new(0),
        })
    }

    /// Returns the next game, under a new id.
    pub fn next(&self) -> Game {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let at = (number % self.games.len() as u64) as usize;
        Game {
            id: (u128::from(number) << 64 | 0x6d69_6e75_6574)
                .to_be_bytes()
                .to_vec()
                .into(),
            game_number: number,
            ..self.games[at].clone()
        }
    }

    /// Returns the number of positions of the game that was sent under this id.
    pub fn positions(&self, id: &[u8]) -> u64 {
        let number = id.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
        let game = self.games.get((number % self.games.len() as u64) as usize);
        game.map_or(0, |game| game.actions.len() as u64)
    }

    /// Returns the size of a game's message per position, in bytes.
    pub fn message_bytes(&self) -> f64 {
        let bytes: usize = self.games.iter().map(Game::encoded_len).sum();
        let positions: usize = self.games.iter().map(|game| game.actions.len()).sum();
        bytes as f64 / positions as f64
    }
}

fn play(own: &AnyGame, seed: u64, options: u32, positions: usize) -> anyhow::Result<Game> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let rules = own.rules();
    let variant = own.variant(&rules, Some(options))?;
    let is_fixed = variant.layout().row_len().is_some();
    let mut state = variant.start(None)?;
    // Values of one-player games are at least 0.
    let least = if own.players == 1 { 0.0 } else { -1.0 };
    let mut legal = Vec::new();
    let mut movers = Vec::with_capacity(positions);
    let mut game = Game {
        game: own.name.into(),
        options,
        rules_json: rules.to_string(),
        model_versions: vec!["000000000100-0123abcd".into()],
        search_json: serde_json::to_string(&search::Settings::default())?,
        actor: "bench".into(),
        build: env!("CARGO_PKG_VERSION").into(),
        finished_at_ms: 1_800_000_000_000,
        ..Game::default()
    };
    while movers.len() < positions && state.outcome().is_none() {
        state.legal_actions(&mut legal);
        let Some(&action) = legal.choose(&mut random) else {
            break;
        };
        let written = game.rows.len();
        state.write_row(Symmetry::IDENTITY, &mut game.rows);
        if !is_fixed {
            game.row_lengths.push((game.rows.len() - written) as u32);
        }
        let weights: Vec<f64> = legal
            .iter()
            .map(|_| (-random.random::<f64>().ln()).powi(2))
            .collect();
        let sum: f64 = weights.iter().sum();
        let before = game.visits.len();
        for (&action, weight) in legal.iter().zip(weights) {
            game.visit_actions
                .push(state.policy_index(Symmetry::IDENTITY, action));
            game.visits.push((weight / sum * VISITS).round().max(1.0) as u32);
        }
        game.visit_counts.push((game.visits.len() - before) as u32);
        game.root_values.push(random.random_range(least..1.0));
        game.actions.push(action);
        movers.push(state.to_move().index() as u8);
        state.play_legal(action);
    }
    game.model_of_position = vec![0; movers.len()];
    game.movers = movers.into();
    game.ending = state.ending().unwrap_or(endings::MAX_ACTIONS).into();
    let undecided = match own.players {
        1 => Outcome::Scored(0.0),
        _ => Outcome::Draw,
    };
    let outcome = state.outcome().unwrap_or(undecided);
    game.score = outcome.value().get();
    game.result = result_of(outcome).into();
    Ok(game)
}
