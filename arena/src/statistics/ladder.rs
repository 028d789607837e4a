//! Elo over time: players who came one after the other, each with an interval, on the scale of the first: [`Ladder`].
//!
//! Bradley and Terry's model as in [`ratings`](super::ratings), a draw counted as half a win for each, and half a point for and against
//! each opponent met standing in for games not played. The likelihood is maximised by Newton's method with the first player held
//! at 0. How sure a rating is follows from the scatter of pairs of games (they share an opening, so games alone would promise
//! too much), carried along every path to the first player: `H⁻¹·J·H⁻¹`, `H` being the likelihood's curvature and `J` the
//! variance of its slope (White, *Maximum likelihood estimation of misspecified models*, 1982).

use std::collections::BTreeMap;

use super::{
    pentanomial::{Pentanomial, moments},
    sparse::{Factored, Symmetric},
};

/// Games that stand in for those not played, for each two players that met.
const PRIOR_GAMES: f64 = 1.0;
/// Elo for each unit of the logistic scale.
const ELO: f64 = 173.717_792_761_301_8;
/// The normal distribution's 97.5 % quantile.
const Z: f64 = 1.959_963_984_540_054;
const ITERATIONS: usize = 200;
const PRECISION: f64 = 1e-10;
/// A rating moves by no more in one iteration, on the logistic scale.
const LONGEST_STEP: f64 = 2.0;

/// Pairs of games between two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encounter {
    /// Who played: numbers of two different players.
    pub players: [usize; 2],
    /// What the first of them scored.
    pub pairs: Pentanomial,
}

/// A rating.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rated {
    /// Elo above the first player.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// An encounter as the model sees it.
#[derive(Clone, Copy, Debug)]
struct Edge {
    players: [usize; 2],
    games: f64,
    points: f64,
    /// Variance of the points.
    scatter: f64,
}

/// Everybody who can be compared with the first player.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// Place among the unknowns; `None` for the first player and for strangers.
    places: Vec<Option<usize>>,
    edges: Vec<Edge>,
    /// On the logistic scale, by place.
    strengths: Vec<f64>,
    curvature: Option<Factored>,
}

impl Ladder {
    /// Rates `players` players, of which number 0 is worth 0. Encounters of the same two count together; those of a player with
    /// itself or with a number beyond count for nothing, and so do those without games.
    pub fn new(players: usize, encounters: &[Encounter]) -> Self {
        let mut met: BTreeMap<[usize; 2], Pentanomial> = BTreeMap::new();
        for encounter in encounters.iter().filter(|encounter| encounter.pairs.pairs() > 0) {
            let (players, pairs) = match encounter.players {
                [one, other] if one <= other => ([one, other], encounter.pairs),
                [one, other] => ([other, one], encounter.pairs.reversed()),
            };
            let counted = met.entry(players).or_default();
            counted
                .0
                .iter_mut()
                .zip(pairs.0)
                .for_each(|(sum, more)| *sum += more);
        }
        let edges: Vec<Edge> = met
            .into_iter()
            .filter(|([one, other], _)| one != other && *other < players)
            .map(|(players, pairs)| Edge::new(players, &pairs))
            .collect();
        let mut ladder = Self {
            places: vec![None; players],
            edges: Vec::new(),
            strengths: Vec::new(),
            curvature: None,
        };
        ladder.reach(edges);
        ladder.fit();
        ladder
    }

    /// A player's rating; `None` for one who met nobody that the first player is compared with.
    pub fn rated(&self, player: usize) -> Option<Rated> {
        if player == 0 {
            return (!self.places.is_empty()).then(Rated::default);
        }
        let place = (*self.places.get(player)?)?;
        let elo = ELO * self.strengths[place];
        let mut unit = vec![0.0; self.strengths.len()];
        unit[place] = 1.0;
        let along = self.curvature.as_ref()?.solve(unit);
        let at = |player: usize| self.places[player].map_or(0.0, |place| along[place]);
        let variance: f64 = (self.edges.iter())
            .map(|edge| edge.scatter * (at(edge.players[0]) - at(edge.players[1])).powi(2))
            .sum();
        let half = Z * ELO * variance.sqrt();
        Some(Rated {
            elo,
            low: elo - half,
            high: elo + half,
        })
    }

    /// Takes in the edges that hang together with the first player, and gives each player met a first guess.
    fn reach(&mut self, edges: Vec<Edge>) {
        let mut met: Vec<Vec<usize>> = vec![Vec::new(); self.places.len()];
        for (number, edge) in edges.iter().enumerate() {
            edge.players.iter().for_each(|&player| met[player].push(number));
        }
        let mut is_taken = vec![false; edges.len()];
        let mut next: Vec<usize> = (0..self.places.len().min(1)).collect();
        while let Some(player) = next.pop() {
            let own = self.strength(player);
            for &number in &met[player] {
                if std::mem::replace(&mut is_taken[number], true) {
                    continue;
                }
                let edge = edges[number];
                self.edges.push(edge);
                let [one, other] = edge.players;
                let (unknown, sign) = if one == player { (other, -1.0) } else { (one, 1.0) };
                if unknown != 0 && self.places[unknown].is_none() {
                    self.places[unknown] = Some(self.strengths.len());
                    self.strengths.push(own + sign * edge.log_odds());
                    next.push(unknown);
                }
            }
        }
    }

    fn strength(&self, player: usize) -> f64 {
        self.places[player].map_or(0.0, |place| self.strengths[place])
    }

    fn fit(&mut self) {
        for _ in 0..ITERATIONS {
            let size = self.strengths.len();
            let (mut curvature, mut slope) = (Symmetric::zeros(size), vec![0.0; size]);
            for edge in &self.edges {
                let [one, other] = edge.players;
                let expected = 1.0 / (1.0 + (self.strength(other) - self.strength(one)).exp());
                let weight = edge.games * expected * (1.0 - expected);
                let excess = edge.points - edge.games * expected;
                let (one, other) = (self.places[one], self.places[other]);
                for (place, sign) in [(one, 1.0), (other, -1.0)] {
                    if let Some(place) = place {
                        slope[place] += sign * excess;
                        curvature.add_diagonal(place, weight);
                    }
                }
                if let (Some(one), Some(other)) = (one, other) {
                    curvature.add_pair(one, other, -weight);
                }
            }
            // Every player hangs together with the first, so it can be factored but for numbers too small to be told from 0.
            self.curvature = curvature.factor();
            let Some(factored) = &self.curvature else { return };
            let step = factored.solve(slope);
            let longest = step.iter().fold(0.0f64, |longest, step| longest.max(step.abs()));
            let share = (LONGEST_STEP / longest).min(1.0);
            for (strength, step) in self.strengths.iter_mut().zip(&step) {
                *strength += share * step;
            }
            if longest < PRECISION {
                return;
            }
        }
    }
}

impl Edge {
    fn new(players: [usize; 2], pairs: &Pentanomial) -> Self {
        // Half of the prior's games are won and half are lost: a quarter of a pair at either end for each game.
        let mut counts = pairs.counts();
        counts[0] += PRIOR_GAMES / 4.0;
        counts[4] += PRIOR_GAMES / 4.0;
        let pairs: f64 = counts.iter().sum();
        let moments = moments(&counts.map(|count| count / pairs));
        Self {
            players,
            games: 2.0 * pairs,
            points: 2.0 * pairs * moments.mean,
            scatter: 4.0 * pairs * moments.variance,
        }
    }

    fn log_odds(&self) -> f64 {
        (self.points / (self.games - self.points)).ln()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use search::{Draws, GameKey, Purpose};

    use super::*;
    use crate::statistics::{Estimate, ratings::ratings, score_of_elo};

    fn encounter(players: [usize; 2], pairs: [u64; 5]) -> Encounter {
        Encounter {
            players,
            pairs: Pentanomial(pairs),
        }
    }

    /// Pairs whose openings favour one colour by up to `swing` Elo, so that the games of a pair are not independent.
    fn play(draws: &mut Draws, elo: f64, pairs: u64, swing: f64) -> Pentanomial {
        let mut counted = Pentanomial::default();
        for _ in 0..pairs {
            let favour = swing * (2.0 * draws.unit() - 1.0);
            let won = [favour, -favour].map(|favour| draws.unit() < score_of_elo(elo + favour));
            counted.add(2 * won.iter().filter(|won| **won).count() as u8);
        }
        counted
    }

    /// What a difference looks like on average over such openings: less than it is.
    fn seen(elo: f64, swing: f64) -> f64 {
        let steps = 1000;
        let favours = (0..steps).map(|step| swing * (f64::from(2 * step + 1) / f64::from(steps) - 1.0));
        let score = favours.map(|favour| score_of_elo(elo + favour)).sum::<f64>() / f64::from(steps);
        400.0 * (score / (1.0 - score)).log10()
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // A chain as a run makes it: each player against the best one before it.
        let truth = [0.0, 90.0, 160.0, 130.0, 260.0];
        let played = [[1, 0], [2, 1], [3, 2], [4, 2]];
        let key = GameKey { run_seed: 5, game: 5 };
        let mut draws = Draws::new(key, 0, Purpose::Choice);
        for swing in [0.0, 400.0] {
            let mut seen_truth = [0.0; 5];
            for [player, opponent] in played {
                let difference = truth[player] - truth[opponent];
                seen_truth[player] = seen_truth[opponent] + seen(difference, swing);
            }
            let (mut held, mut all) = (0, 0);
            for _ in 0..300 {
                let encounters: Vec<Encounter> = played
                    .iter()
                    .map(|&players| Encounter {
                        players,
                        pairs: play(&mut draws, truth[players[0]] - truth[players[1]], 100, swing),
                    })
                    .collect();
                let ladder = Ladder::new(5, &encounters);
                for (player, truth) in seen_truth.iter().enumerate().skip(1) {
                    let rated = ladder.rated(player).unwrap();
                    held += u32::from((rated.low..=rated.high).contains(truth));
                    all += 1;
                }
            }
            let share = f64::from(held) / f64::from(all);
            assert!((0.92..0.98).contains(&share), "swing {swing}: {share}");
        }
    }

    #[test]
    fn two_players_are_rated_as_a_match_estimates_them() {
        let pairs = [40, 120, 300, 180, 90];
        let rated = Ladder::new(2, &[encounter([1, 0], pairs)]).rated(1).unwrap();
        let estimate = Estimate::of(&Pentanomial(pairs)).unwrap();
        assert!((rated.elo - estimate.elo.unwrap()).abs() < 0.5);
        let [Some(low), Some(high)] = estimate.elo_interval else {
            panic!("bounded")
        };
        assert!(
            (rated.low - low).abs() < 0.5 && (rated.high - high).abs() < 0.5,
            "{rated:?}"
        );
    }

    #[test]
    fn the_first_is_worth_nothing_strangers_are_not_compared_and_a_sweep_is_finite() {
        let ladder = Ladder::new(
            5,
            &[
                encounter([1, 0], [0, 0, 0, 0, 40]),
                encounter([3, 2], [1, 0, 0, 0, 5]),
                encounter([4, 4], [1, 0, 0, 0, 5]),
                encounter([9, 0], [1, 0, 0, 0, 5]),
            ],
        );
        assert_eq!(ladder.rated(0), Some(Rated::default()));
        let sweep = ladder.rated(1).unwrap();
        assert!(
            sweep.elo > 400.0 && sweep.high.is_finite() && sweep.low > 0.0,
            "{sweep:?}"
        );
        for stranger in [2, 3, 4, 9] {
            assert_eq!(ladder.rated(stranger), None, "{stranger}");
        }
        assert_eq!(Ladder::new(0, &[]).rated(0), None);
        assert_eq!(Ladder::new(1, &[]).rated(0), Some(Rated::default()));
    }

    proptest! {
        /// Any graph of players, cycles included: the ratings are those of the other implementation, by another method.
        #[test]
        fn agrees_with_minorisation(
            others in prop::collection::vec((0usize..4, prop::array::uniform5(0u64..30)), 0..5),
            chain in prop::collection::vec(prop::array::uniform5(1u64..30), 3),
        ) {
            let mut encounters: Vec<Encounter> = (chain.iter().enumerate())
                .map(|(number, &pairs)| encounter([number + 1, number], pairs))
                .collect();
            for (one, pairs) in others {
                encounters.push(encounter([one, (one + 2) % 4], pairs));
            }
            let mut points = vec![vec![0.0; 4]; 4];
            for Encounter { players: [first, second], pairs } in &encounters {
                let scores = pairs.counts().into_iter().zip(Pentanomial::SCORES);
                let took: f64 = scores.map(|(count, score)| 2.0 * count * score).sum();
                points[*first][*second] += took;
                points[*second][*first] += 2.0 * pairs.pairs() as f64 - took;
            }
            let ladder = Ladder::new(4, &encounters);
            let expected = ratings(&points);
            for player in 1..4 {
                let found = ladder.rated(player).unwrap();
                prop_assert!((found.elo - (expected[player] - expected[0])).abs() < 0.01, "{found:?} {expected:?}");
                prop_assert!(found.low < found.elo && found.elo < found.high);
            }
        }
    }
}
