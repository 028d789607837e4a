//! Elo ratings of many players from the games between them: [`BradleyTerry`].
//!
//! # The formula
//! Every player `i` has a strength `s_i`; it beats player `j` with probability
//!
//! ```text
//! P(i beats j) = 1 / (1 + exp(s_j - s_i)),   Elo = 400 / ln 10 · s
//! ```
//!
//! A draw counts as half a win for each side. For every two players with a common game, one more game with half a point for each is
//! added (a prior), so that a player who won every game has a finite rating. The strengths maximise the likelihood of the
//! points (Newton's method), with one player held at 0: only differences of strength matter.
//!
//! # The intervals
//! The 95 % interval of a rating follows from the scatter of pairs of games. The two games of a pair share an opening, so the
//! games alone would give an interval that is too narrow. The variance is the diagonal of `H⁻¹·J·H⁻¹`, where `H` is the
//! curvature of the log-likelihood and `J` the variance of its slope (White, *Maximum likelihood estimation of misspecified
//! models*, 1982).

use std::collections::BTreeMap;

use rsparse::data::{Nmrc, Sprs};

use super::{
    estimate::Z,
    pentanomial::{Pentanomial, moments},
};

/// Games of the prior for each two players with a common game.
const PRIOR_GAMES: f64 = 1.0;
/// Elo for each unit of strength: 400 / ln 10.
const ELO: f64 = 173.717_792_761_301_8;
const ITERATIONS: usize = 200;
/// The fit ends when no strength changes by more than this.
const PRECISION: f64 = 1e-10;
/// Largest change of a strength in one iteration.
const LONGEST_STEP: f64 = 2.0;

/// Games between two players.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encounter {
    /// Numbers of the two players.
    players: [usize; 2],
    /// Number of pairs of games in which the first player took 0, ½, 1, 1½ and 2 points.
    pairs: [f64; 5],
}

impl Encounter {
    /// Pairs of games, counted by the points of the first player.
    pub fn of_pairs(players: [usize; 2], pairs: &Pentanomial) -> Self {
        Self {
            players,
            pairs: pairs.counts(),
        }
    }

    /// Single games: the points that each of the two took. As nothing is known of pairs and draws, the intervals are wider
    /// than those of the same games as pairs.
    pub fn of_points(players: [usize; 2], points: [f64; 2]) -> Self {
        Self {
            players,
            pairs: [points[1] / 2.0, 0.0, 0.0, 0.0, points[0] / 2.0],
        }
    }

    fn has_games(&self) -> bool {
        self.pairs.iter().sum::<f64>() > 0.0
    }

    /// The encounter with the lower player number first.
    fn in_order(mut self) -> Self {
        if self.players[0] > self.players[1] {
            self.players.reverse();
            self.pairs.reverse();
        }
        self
    }
}

/// The rating of a player.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rating {
    /// Elo difference to player 0.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// All games between two players, with the prior.
#[derive(Clone, Copy, Debug)]
struct Edge {
    players: [usize; 2],
    games: f64,
    /// Points of the first player.
    points: f64,
    /// Variance of the points.
    variance: f64,
}

impl Edge {
    fn new(players: [usize; 2], mut pairs: [f64; 5]) -> Self {
        // Half of the prior's games are won and half are lost: a quarter of a pair at either end for each game.
        pairs[0] += PRIOR_GAMES / 4.0;
        pairs[4] += PRIOR_GAMES / 4.0;
        let count: f64 = pairs.iter().sum();
        let moments = moments(&pairs.map(|pairs| pairs / count));
        Self {
            players,
            games: 2.0 * count,
            points: 2.0 * count * moments.mean,
            variance: 4.0 * count * moments.variance,
        }
    }

    /// The difference of strength under which these games alone are likeliest.
    fn log_odds(&self) -> f64 {
        (self.points / (self.games - self.points)).ln()
    }
}

/// The fitted model.
///
/// Players who are connected by games form a *group*. Ratings compare players of one group only; the player with the lowest
/// number in each group has strength 0.
#[derive(Debug)]
pub struct BradleyTerry {
    /// Lowest player number of each player's group.
    groups: Vec<usize>,
    /// Index of each player's strength among the unknowns. `None`: held at 0.
    unknowns: Vec<Option<usize>>,
    edges: Vec<Edge>,
    strengths: Vec<f64>,
    /// Cholesky factor of the curvature of the log-likelihood at the fitted strengths. `None` if it cannot be factored.
    factor: Option<Sprs<f64>>,
}

impl BradleyTerry {
    /// Fits the strengths of players 0 to `players - 1`. Encounters of the same two players are added up. Encounters of a player
    /// with itself, with a number beyond the players, or without games are ignored.
    pub fn fit(players: usize, encounters: &[Encounter]) -> Self {
        let mut met: BTreeMap<[usize; 2], [f64; 5]> = BTreeMap::new();
        for encounter in encounters.iter().filter(|encounter| encounter.has_games()) {
            let Encounter { players, pairs } = encounter.in_order();
            let sums = met.entry(players).or_default();
            sums.iter_mut().zip(pairs).for_each(|(sum, more)| *sum += more);
        }
        let edges = met
            .into_iter()
            .filter(|([one, other], _)| one != other && *other < players)
            .map(|(players, pairs)| Edge::new(players, pairs))
            .collect();
        let mut model = Self {
            groups: (0..players).collect(),
            unknowns: vec![None; players],
            edges,
            strengths: Vec::new(),
            factor: None,
        };
        model.connect();
        model.maximise();
        model
    }

    /// The rating of a player relative to player 0. `None` for a player that no games connect with player 0.
    pub fn rating(&self, player: usize) -> Option<Rating> {
        if *self.groups.get(player)? != 0 {
            return None;
        }
        let Some(unknown) = self.unknowns[player] else {
            return Some(Rating::default());
        };
        let elo = ELO * self.strengths[unknown];
        let mut unit = vec![0.0; self.strengths.len()];
        unit[unknown] = 1.0;
        let column = solve(self.factor.as_ref()?, unit);
        let at = |player: usize| self.unknowns[player].map_or(0.0, |unknown| column[unknown]);
        let variance: f64 = (self.edges.iter())
            .map(|edge| edge.variance * (at(edge.players[0]) - at(edge.players[1])).powi(2))
            .sum();
        let half = Z * ELO * variance.sqrt();
        Some(Rating {
            elo,
            low: elo - half,
            high: elo + half,
        })
    }

    /// The Elo of every player on a scale whose mean is 0. Differences between players whom no games connect mean nothing.
    pub fn centred(&self) -> Vec<f64> {
        let elo: Vec<f64> = (0..self.groups.len())
            .map(|player| ELO * self.strength(player))
            .collect();
        let mean = elo.iter().sum::<f64>() / elo.len().max(1) as f64;
        elo.into_iter().map(|elo| elo - mean).collect()
    }

    fn strength(&self, player: usize) -> f64 {
        self.unknowns[player].map_or(0.0, |unknown| self.strengths[unknown])
    }

    /// Finds the groups, numbers the unknown strengths, and gives each a first estimate.
    ///
    /// The numbers descend from a group's first player outwards. The factorisation eliminates ascending numbers, so where the
    /// encounters form a tree, which a run's ratings nearly do, it takes time and memory in proportion to the players.
    fn connect(&mut self) {
        let mut met: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        for (number, edge) in self.edges.iter().enumerate() {
            edge.players.iter().for_each(|&player| met[player].push(number));
        }
        let mut is_found = vec![false; self.groups.len()];
        for first in 0..self.groups.len() {
            if std::mem::replace(&mut is_found[first], true) {
                continue;
            }
            let mut next = vec![first];
            while let Some(player) = next.pop() {
                let own = self.strength(player);
                for &number in &met[player] {
                    let edge = &self.edges[number];
                    let [one, other] = edge.players;
                    let (found, sign) = if one == player { (other, -1.0) } else { (one, 1.0) };
                    if std::mem::replace(&mut is_found[found], true) {
                        continue;
                    }
                    self.groups[found] = first;
                    self.unknowns[found] = Some(self.strengths.len());
                    self.strengths.push(own + sign * edge.log_odds());
                    next.push(found);
                }
            }
        }
        self.strengths.reverse();
        let count = self.strengths.len();
        for unknown in self.unknowns.iter_mut().flatten() {
            *unknown = count - 1 - *unknown;
        }
    }

    /// Newton's method.
    fn maximise(&mut self) {
        if self.strengths.is_empty() {
            return;
        }
        for _ in 0..ITERATIONS {
            let (curvature, slope) = self.derivatives();
            // The curvature is positive definite, except where weights are too small to be distinguished from 0.
            let mut symbolic = rsparse::schol(&curvature, NATURAL_ORDER);
            self.factor = rsparse::chol(&curvature, &mut symbolic)
                .ok()
                .map(|Nmrc { l, .. }| l);
            let Some(factor) = &self.factor else { return };
            let step = solve(factor, slope);
            let longest = step.iter().fold(0.0f64, |longest, step| longest.max(step.abs()));
            if step.iter().any(|step| !step.is_finite()) {
                self.factor = None;
                return;
            }
            let share = (LONGEST_STEP / longest).min(1.0);
            for (strength, step) in self.strengths.iter_mut().zip(&step) {
                *strength += share * step;
            }
            if longest < PRECISION {
                return;
            }
        }
    }

    /// The upper half of the log-likelihood's negative second derivative, and its first derivative.
    fn derivatives(&self) -> (Sprs<f64>, Vec<f64>) {
        let size = self.strengths.len();
        let mut slope = vec![0.0; size];
        // For each column: the diagonal first, then what lies above.
        let mut columns: Vec<Vec<(usize, f64)>> = (0..size).map(|at| vec![(at, 0.0)]).collect();
        for edge in &self.edges {
            let [one, other] = edge.players;
            let expected = 1.0 / (1.0 + (self.strength(other) - self.strength(one)).exp());
            let weight = edge.games * expected * (1.0 - expected);
            let excess = edge.points - edge.games * expected;
            let (one, other) = (self.unknowns[one], self.unknowns[other]);
            for (unknown, sign) in [(one, 1.0), (other, -1.0)] {
                if let Some(unknown) = unknown {
                    slope[unknown] += sign * excess;
                    columns[unknown][0].1 += weight;
                }
            }
            if let (Some(one), Some(other)) = (one, other) {
                columns[one.max(other)].push((one.min(other), -weight));
            }
        }
        let mut matrix = Sprs::zeros(size, size, 0);
        matrix.p = vec![0];
        for column in columns {
            for (row, value) in column {
                matrix.i.push(row);
                matrix.x.push(value);
            }
            matrix.p.push(matrix.i.len() as isize);
        }
        matrix.nzmax = matrix.i.len();
        (matrix, slope)
    }
}

/// The unknowns are eliminated in the order of their numbers (see [`BradleyTerry::connect`]).
const NATURAL_ORDER: i8 = -1;

/// Solves `L·Lᵀ·x = values`.
fn solve(factor: &Sprs<f64>, mut values: Vec<f64>) -> Vec<f64> {
    rsparse::lsolve(factor, &mut values);
    rsparse::ltsolve(factor, &mut values);
    values
}

#[cfg(test)]
mod tests;
