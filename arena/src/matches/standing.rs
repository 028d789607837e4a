//! What the games say: [`Standing`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    plan::Plan,
    record::{GameRecord, Result as GameResult},
};
use crate::statistics::{BradleyTerry, Encounter, Estimate, Pentanomial, Sprt, Verdict};

/// A match as far as it was played. Only whole pairs count for estimates; games whose pair is not complete are counted apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The game's name.
    pub game: String,
    /// Games that are over, and games there are to be.
    pub games: [u64; 2],
    /// Every player.
    pub players: Vec<PlayerStanding>,
    /// Every two players.
    pub pairings: Vec<PairingStanding>,
    /// How often games ended in which way.
    pub endings: BTreeMap<String, u64>,
    /// The test, where there is one: between the first two players.
    pub sprt: Option<SprtStanding>,
}

/// One player against all others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayerStanding {
    /// What it is called.
    pub name: String,
    /// Points, a draw being half of one, of so many games.
    pub points: f64,
    /// Games.
    pub games: u64,
    /// Elo of the players' common scale, whose mean is 0 (drawn games half a win for each, half a point for
    /// each side and opponent added).
    pub rating: f64,
    /// Points that it took from each player.
    pub against: Vec<Option<f64>>,
}

/// Two players, as the first of them sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairingStanding {
    /// Their names.
    pub players: [String; 2],
    /// Wins, draws and losses of the first of them, over all games.
    pub wins: u64,
    /// Draws.
    pub draws: u64,
    /// Losses.
    pub losses: u64,
    /// Wins of whoever began, over all games.
    pub first_mover_wins: u64,
    /// Whole pairs in which it took 0, ½, 1, 1½ and 2 points.
    pub pentanomial: Pentanomial,
    /// What the whole pairs say; nothing without any.
    pub estimate: Option<Estimate>,
}

/// A test and what is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SprtStanding {
    /// The hypotheses and probabilities.
    #[serde(flatten)]
    pub settings: crate::statistics::SprtSettings,
    /// Whole pairs that count: in the plan's order, up to the one that decided, or to the first that is missing.
    pub pairs: u64,
    /// The log-likelihood ratio.
    pub log_likelihood_ratio: f64,
    /// Where it decides.
    pub bounds: [f64; 2],
    /// What is known.
    pub verdict: Verdict,
}

impl Standing {
    /// The standing after `records`.
    pub fn of(plan: &Plan, records: &BTreeMap<u64, GameRecord>, sprt: Option<&Sprt>) -> Self {
        let planned = || records.range(..plan.games()).map(|(_, record)| record);
        let count = plan.players.len();
        let mut points = vec![vec![0.0; count]; count];
        let mut games = vec![vec![0u64; count]; count];
        let mut endings = BTreeMap::new();
        for record in planned() {
            let [first, second] = record.players;
            let half = record.result.half_points();
            points[first][second] += f64::from(half) / 2.0;
            points[second][first] += f64::from(2 - half) / 2.0;
            games[first][second] += 1;
            games[second][first] += 1;
            *endings.entry(record.ending.clone()).or_default() += 1;
        }
        let encounters: Vec<Encounter> = (0..count)
            .flat_map(|one| (0..one).map(move |other| [one, other]))
            .map(|[one, other]| Encounter::of_points([one, other], [points[one][other], points[other][one]]))
            .collect();
        let ratings = BradleyTerry::fit(count, &encounters).centred();
        let players = plan
            .players
            .iter()
            .enumerate()
            .map(|(number, player)| PlayerStanding {
                name: player.name.clone(),
                points: points[number].iter().sum(),
                games: games[number].iter().sum(),
                rating: ratings[number],
                against: points[number]
                    .iter()
                    .zip(&games[number])
                    .map(|(&points, &games)| (games > 0).then_some(points))
                    .collect(),
            })
            .collect();
        Self {
            game: plan.game.clone(),
            games: [planned().count() as u64, plan.games()],
            players,
            pairings: plan
                .pairings()
                .into_iter()
                .map(|pairing| PairingStanding::of(plan, records, pairing))
                .collect(),
            endings,
            sprt: sprt.map(|sprt| {
                let mut tested = Tested::new(sprt);
                let verdict = tested.update(plan, records);
                SprtStanding {
                    settings: *sprt.settings(),
                    pairs: tested.pairs.pairs(),
                    log_likelihood_ratio: sprt.log_likelihood_ratio(&tested.pairs),
                    bounds: sprt.bounds(),
                    verdict,
                }
            }),
        }
    }
}

impl PairingStanding {
    /// Two players' standing after `records`.
    pub fn of(plan: &Plan, records: &BTreeMap<u64, GameRecord>, pairing: [usize; 2]) -> Self {
        let (mut wins, mut draws, mut losses, mut first_mover_wins) = (0, 0, 0, 0);
        let mut pentanomial = Pentanomial::default();
        for game in (0..plan.games()).filter(|&game| plan.slot(game).pairing == pairing) {
            let Some(record) = records.get(&game) else {
                continue;
            };
            first_mover_wins += u64::from(record.result == GameResult::First);
            match half_points(record, pairing[0]) {
                2 => wins += 1,
                1 => draws += 1,
                _ => losses += 1,
            }
            if game % 2 == 0
                && let Some(other) = records.get(&(game + 1))
            {
                pentanomial.add(half_points(record, pairing[0]) + half_points(other, pairing[0]));
            }
        }
        Self {
            players: pairing.map(|player| plan.players[player].name.clone()),
            wins,
            draws,
            losses,
            first_mover_wins,
            estimate: Estimate::of(&pentanomial),
            pentanomial,
        }
    }
}

fn half_points(record: &GameRecord, player: usize) -> u8 {
    let half = record.result.half_points();
    if record.players[0] == player {
        half
    } else {
        2 - half
    }
}

/// The pairs of the first two players that a test counts: in the plan's order, so that it does not matter which games happened to
/// end first, up to the pair that decides, or to the first that is missing.
#[derive(Clone, Debug)]
pub struct Tested<'a> {
    sprt: &'a Sprt,
    pairs: Pentanomial,
    /// The game that the next pair begins with.
    next: u64,
    verdict: Verdict,
}

impl<'a> Tested<'a> {
    /// None yet.
    pub fn new(sprt: &'a Sprt) -> Self {
        Self {
            sprt,
            pairs: Pentanomial::default(),
            next: 0,
            verdict: Verdict::Undecided,
        }
    }

    /// The pairs that count.
    pub fn pairs(&self) -> &Pentanomial {
        &self.pairs
    }

    /// Counts what has come since the last call.
    pub fn update(&mut self, plan: &Plan, records: &BTreeMap<u64, GameRecord>) -> Verdict {
        while self.verdict == Verdict::Undecided && self.next < plan.games() {
            if plan.slot(self.next).pairing == [0, 1] {
                let (Some(one), Some(two)) = (records.get(&self.next), records.get(&(self.next + 1))) else {
                    break;
                };
                self.pairs.add(half_points(one, 0) + half_points(two, 0));
                self.verdict = self.sprt.verdict(&self.pairs);
            }
            self.next += 2;
        }
        self.verdict
    }
}
