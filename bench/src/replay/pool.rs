//! [`Pool`]: random games of equal length, with visit counts like those of a search of 100 visits.

use std::sync::atomic::{AtomicU64, Ordering};

use games::{Game as _, Symmetry, paco_sako::PacoSako};
use prost::Message as _;
use proto::v1::{Game, GameResult};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

/// Name of the game.
pub const GAME: &str = PacoSako::NAME;
/// Representation options of the game.
pub const OPTIONS: u32 = 1;

/// Number of different games; they are sent repeatedly under new ids.
const GAMES: u64 = 128;
/// Visits of each search.
const VISITS: f64 = 100.0;

/// The games.
pub struct Pool {
    games: Vec<Game>,
    sent: AtomicU64,
}

impl Pool {
    /// Plays games of `positions` positions; a random game that ends earlier continues from the start position.
    pub fn play(positions: usize) -> anyhow::Result<Self> {
        let games = (0..GAMES)
            .map(|seed| play(seed, positions))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            games,
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

    /// Returns the number of positions of each game.
    pub fn positions(&self) -> u64 {
        self.games.first().map_or(0, |game| game.actions.len() as u64)
    }

    /// Returns the size of a game's message per position, in bytes.
    pub fn message_bytes(&self) -> f64 {
        let bytes: usize = self.games.iter().map(Game::encoded_len).sum();
        let positions: usize = self.games.iter().map(|game| game.actions.len()).sum();
        bytes as f64 / positions as f64
    }
}

fn play(seed: u64, positions: usize) -> anyhow::Result<Game> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let encoding = PacoSako::encoding(OPTIONS)?;
    let rules = Default::default();
    let mut state = PacoSako::start(&rules, None)?;
    let mut legal = Vec::new();
    let mut movers = Vec::with_capacity(positions);
    let mut game = Game {
        game: GAME.into(),
        options: OPTIONS,
        rules_json: serde_json::to_string(&rules)?,
        result: GameResult::Draw.into(),
        ending: "bench".into(),
        model_versions: vec!["000000000100-0123abcd".into()],
        model_of_position: vec![0; positions],
        search_json: serde_json::to_string(&search::Settings::default())?,
        actor: "bench".into(),
        build: env!("CARGO_PKG_VERSION").into(),
        finished_at_ms: 1_800_000_000_000,
        ..Game::default()
    };
    while movers.len() < positions {
        state.legal_actions(&mut legal);
        let Some(&action) = legal.choose(&mut random) else {
            state = PacoSako::start(&rules, None)?;
            continue;
        };
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        let weights: Vec<f64> = legal
            .iter()
            .map(|_| (-random.random::<f64>().ln()).powi(2))
            .collect();
        let sum: f64 = weights.iter().sum();
        let before = game.visits.len();
        for (&action, weight) in legal.iter().zip(weights) {
            game.visit_actions
                .push(state.policy_index(encoding, Symmetry::IDENTITY, action));
            game.visits.push((weight / sum * VISITS).round().max(1.0) as u32);
        }
        game.visit_counts.push((game.visits.len() - before) as u32);
        game.root_values.push(random.random_range(-1.0..1.0));
        game.actions.push(action);
        movers.push(state.to_move().index() as u8);
        state.play_legal(action);
    }
    game.movers = movers.into();
    Ok(game)
}
