//! Games that begin where an earlier game went wrong. [`Restarts`].
//!
//! Each finished game of two players gives one position to a short list: its first action of a turn is drawn by *regret*, the mean
//! squared difference between the root values from there to the end and the result ("Regret-guided search control", 2026; starts from
//! an archive: Go-Exploit, Trudeau and Bowling, 2023). So the network learns most about positions that it misjudged. The list is kept in
//! memory only.

use games::Game;
use parking_lot::Mutex;
use proto::{
    endings,
    v1::{self, GameResult},
};
use search::{Draws, GameKey, Purpose};

use super::setup::Setup;

/// Greatest number of positions that are kept. A newer one takes the place of the oldest one.
const KEPT: usize = 1024;

/// Positions of earlier games of this actor.
#[derive(Debug, Default)]
pub struct Restarts(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    positions: Vec<String>,
    /// Place of the oldest position in a full ring.
    oldest: usize,
}

impl Restarts {
    /// Returns an earlier position for the share `actor.restarts` of the games, if there is one. All draws depend only on `key` and on
    /// the positions kept.
    pub(super) fn draw<G: Game>(&self, setup: &Setup<G>, key: GameKey) -> Option<G> {
        if setup.config.restarts <= 0.0 {
            return None;
        }
        let mut draws = Draws::new(key, 0, Purpose::Restart);
        if draws.unit() >= f64::from(setup.config.restarts) {
            return None;
        }
        let ring = self.0.lock();
        let position = ring.positions.get(draws.below(ring.positions.len()))?;
        G::start(&setup.rules, Some(position)).ok()
    }

    /// Keeps a position of a finished game, if `actor.restarts` is in use and the rules have decided the game.
    pub(super) fn keep<G: Game>(&self, setup: &Setup<G>, key: GameKey, game: &v1::Game) {
        if setup.config.restarts <= 0.0 || game.ending == endings::MAX_ACTIONS {
            return;
        }
        if let Some(position) = chosen(setup, key, game) {
            self.0.lock().push(position);
        }
    }
}

impl Ring {
    fn push(&mut self, position: String) {
        if self.positions.len() < KEPT {
            self.positions.push(position);
            return;
        }
        self.positions[self.oldest] = position;
        self.oldest = (self.oldest + 1) % KEPT;
    }
}

/// Draws a position of a game by regret. `None` if there is none with any regret.
fn chosen<G: Game>(setup: &Setup<G>, key: GameKey, game: &v1::Game) -> Option<String> {
    let result = match game.result() {
        GameResult::FirstWon => 1.0,
        GameResult::SecondWon => -1.0,
        GameResult::Draw => 0.0,
        _ => return None,
    };
    let ply = drawn(
        &regrets(&game.movers, &game.root_values, result),
        &mut Draws::new(key, 1, Purpose::Restart),
    )?;
    let mut state = match game.start.as_str() {
        "" => setup.start.clone(),
        position => G::start(&setup.rules, Some(position)).ok()?,
    };
    for &action in game.actions.get(..ply)? {
        state.play(action).ok()?;
    }
    Some(state.position())
}

/// Returns the regret of each position: the mean squared difference between the values from there to the end and the result. 0 for the
/// start of the game, and for positions inside a turn, in which no game can begin.
/// `movers` are the numbers of the players who acted, `values` the root values for them, and `result` is that of the first player.
fn regrets(movers: &[u8], values: &[f32], result: f32) -> Vec<f64> {
    let mut regrets = vec![0.0; movers.len().min(values.len())];
    let mut sum = 0.0;
    for (count, ply) in (1..).zip((1..regrets.len()).rev()) {
        let result = if movers[ply] == 0 { result } else { -result };
        sum += f64::from(values[ply] - result).powi(2);
        if movers[ply] != movers[ply - 1] {
            regrets[ply] = sum / f64::from(count);
        }
    }
    regrets
}

/// Draws a place with probability proportional to its weight. `None` if all weights are 0.
fn drawn(weights: &[f64], draws: &mut Draws) -> Option<usize> {
    let mut rest = draws.unit() * weights.iter().sum::<f64>();
    let mut places = weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0);
    let last = places.clone().next_back();
    let found = places.find(|&(_, &weight)| {
        rest -= weight;
        rest < 0.0
    });
    found.or(last).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use config::RunConfig;
    use games::connect_four::ConnectFour;

    use super::*;

    fn key(game: u64) -> GameKey {
        GameKey { run_seed: 3, game }
    }

    fn setup(restarts: f32) -> Setup<ConnectFour> {
        let mut config = RunConfig::default();
        config.game.name = ConnectFour::NAME.into();
        config.game.options = 0;
        config.actor.restarts = restarts;
        Setup::new(&config, "tester", 1).unwrap()
    }

    /// Returns a game that the first player won, with these actions and root values.
    fn won(actions: &[u32], root_values: &[f32]) -> v1::Game {
        v1::Game {
            actions: actions.to_vec(),
            movers: (0..actions.len())
                .map(|ply| (ply % 2) as u8)
                .collect::<Vec<_>>()
                .into(),
            root_values: root_values.to_vec(),
            result: GameResult::FirstWon.into(),
            ..v1::Game::default()
        }
    }

    #[test]
    fn regret_is_the_mean_squared_error_of_the_values_from_there_on() {
        // The first player won; the values say so only at the end. The third action is the second one of a turn.
        let regrets = regrets(&[0, 1, 1, 0, 1], &[0.0, 1.0, 0.0, 0.5, -1.0], 1.0);
        assert_eq!(regrets, [0.0, (4.0 + 1.0 + 0.25) / 4.0, 0.0, 0.25 / 2.0, 0.0]);
        assert_eq!(
            drawn(&[0.0; 3], &mut Draws::new(key(1), 0, Purpose::Restart)),
            None
        );
    }

    #[test]
    fn positions_are_drawn_by_regret_and_games_by_their_share() {
        let (setup, restarts) = (setup(0.5), Restarts::default());
        assert!((0..50).all(|game| restarts.draw(&setup, key(game)).is_none()));
        // Regrets: (2.25 + 0.25 + 0) / 3 after one action, (0.25 + 0) / 2 after two, 0 after three.
        let game = won(&[3, 3, 2, 2], &[0.0, 0.5, 0.5, -1.0]);
        for number in 0..800 {
            restarts.keep(&setup, key(number), &game);
        }
        let mut counts = BTreeMap::new();
        for position in &restarts.0.lock().positions {
            *counts.entry(position.clone()).or_insert(0) += 1;
        }
        let after = |count: usize| {
            let mut state = setup.start;
            [3, 3]
                .iter()
                .take(count)
                .for_each(|&action| state.play_legal(action));
            counts.get(&state.position()).copied().unwrap_or_default()
        };
        assert_eq!(after(1) + after(2), 800);
        let expected = 800.0 * (2.5 / 3.0) / (2.5 / 3.0 + 0.125);
        assert!(
            (f64::from(after(1)) - expected).abs() < 40.0,
            "{} {expected}",
            after(1)
        );
        let begun = (0..400).filter(|&number| restarts.draw(&setup, key(number)).is_some());
        assert!((150..250).contains(&begun.count()));
    }

    #[test]
    fn the_oldest_position_goes_first() {
        let (setup, restarts) = (setup(1.0), Restarts::default());
        for number in 0..KEPT as u64 + 10 {
            let first = if number < 10 { 0 } else { 6 };
            restarts.keep(&setup, key(number), &won(&[first, 3], &[0.0, 0.0]));
        }
        let ring = restarts.0.lock();
        assert_eq!(ring.positions.len(), KEPT);
        assert!(
            ring.positions
                .iter()
                .all(|position| *position == ring.positions[0])
        );
    }

    #[test]
    fn games_cut_by_the_limit_of_actions_are_not_kept() {
        let (setup, restarts) = (setup(1.0), Restarts::default());
        let cut = v1::Game {
            ending: endings::MAX_ACTIONS.into(),
            ..won(&[3, 3], &[0.0, 0.0])
        };
        restarts.keep(&setup, key(1), &cut);
        assert!(restarts.draw(&setup, key(2)).is_none());
    }
}
