//! The results of a match so far: [`Standing`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    plan::Plan,
    problems::{self, ClassStanding},
    record::{GameRecord, Result as GameResult},
};
use crate::statistics::{BradleyTerry, Encounter, Estimate, Pentanomial, Sprt, Verdict};

/// The results of a match so far. Estimates use complete pairs only; the other numbers count all games. Games in which the rules failed
/// are finished, but count for nobody, nor do their pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Name of the game.
    pub game: String,
    /// Number of finished games and number of planned games.
    pub games: [u64; 2],
    /// Results of each player.
    pub players: Vec<PlayerStanding>,
    /// Results of every two players.
    pub pairings: Vec<PairingStanding>,
    /// Number of games by kind of ending.
    pub endings: BTreeMap<String, u64>,
    /// State of the test between the first two players, if there is one.
    pub sprt: Option<SprtStanding>,
}

/// Results of one player against all others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayerStanding {
    /// Name of the player.
    pub name: String,
    /// Points: 1 for a win, ½ for a draw.
    pub points: f64,
    /// Number of games.
    pub games: u64,
    /// Elo on a scale of all players whose mean is 0, by [`BradleyTerry`].
    pub rating: f64,
    /// Points taken from each player; `None` without games against that player.
    pub against: Vec<Option<f64>>,
}

/// Results between two players, from the point of view of the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairingStanding {
    /// Names of the two players.
    pub players: [String; 2],
    /// Number of games that the first player won.
    pub wins: u64,
    /// Number of drawn games.
    pub draws: u64,
    /// Number of games that the first player lost.
    pub losses: u64,
    /// Number of games that the player who began won.
    pub first_mover_wins: u64,
    /// Numbers of complete pairs in which the first player took 0, ½, 1, 1½ and 2 points.
    pub pentanomial: Pentanomial,
    /// Estimate from the complete pairs; `None` without any.
    pub estimate: Option<Estimate>,
    /// Solved problems by kind and level. Empty if the match is not about problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ClassStanding>,
}

/// State of a sequential test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SprtStanding {
    /// Hypotheses and probabilities.
    #[serde(flatten)]
    pub settings: crate::statistics::SprtSettings,
    /// Number of complete pairs that count: in the order of the plan, up to the deciding pair or to the first missing one.
    pub pairs: u64,
    /// Log-likelihood ratio of these pairs.
    pub log_likelihood_ratio: f64,
    /// Ratios at which the test decides.
    pub bounds: [f64; 2],
    /// Result of the test.
    pub verdict: Verdict,
}

impl Standing {
    /// Computes the results of `records`.
    pub fn of(plan: &Plan, records: &BTreeMap<u64, GameRecord>, sprt: Option<&Sprt>) -> Self {
        let planned = || records.range(..plan.games()).map(|(_, record)| record);
        let count = plan.players.len();
        let mut points = vec![vec![0.0; count]; count];
        let mut games = vec![vec![0u64; count]; count];
        let mut endings = BTreeMap::new();
        for record in planned() {
            *endings.entry(record.ending.clone()).or_default() += 1;
            let [first, second] = record.players;
            let Some(half) = record.result.half_points() else {
                continue;
            };
            points[first][second] += f64::from(half) / 2.0;
            points[second][first] += f64::from(2 - half) / 2.0;
            games[first][second] += 1;
            games[second][first] += 1;
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
    /// Computes the results between two players.
    pub fn of(plan: &Plan, records: &BTreeMap<u64, GameRecord>, pairing: [usize; 2]) -> Self {
        let (mut wins, mut draws, mut losses, mut first_mover_wins) = (0, 0, 0, 0);
        let mut pentanomial = Pentanomial::default();
        for game in (0..plan.games()).filter(|&game| plan.slot(game).pairing == pairing) {
            let Some(record) = records.get(&game) else {
                continue;
            };
            first_mover_wins += u64::from(record.result == GameResult::First);
            match record.half_points_of(pairing[0]) {
                Some(2) => wins += 1,
                Some(1) => draws += 1,
                Some(_) => losses += 1,
                None => {}
            }
            if game % 2 == 0
                && let Some(other) = records.get(&(game + 1))
                && let Some(half) = of_pair(record, other, pairing[0])
            {
                pentanomial.add(half);
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
            problems: problems::standings(plan, records, pairing),
        }
    }
}

/// Half-points of a player in a pair. `None` if one of the games does not count.
fn of_pair(one: &GameRecord, other: &GameRecord, player: usize) -> Option<u8> {
    Some(one.half_points_of(player)? + other.half_points_of(player)?)
}

/// The pairs of the first two players that a test counts: in the order of the plan, up to the deciding pair or to the first missing
/// one. So the result does not depend on which games happened to end first.
#[derive(Clone, Debug)]
pub struct Tested<'a> {
    sprt: &'a Sprt,
    pairs: Pentanomial,
    /// Number of the first game of the next pair.
    next: u64,
    verdict: Verdict,
}

impl<'a> Tested<'a> {
    /// Begins without pairs.
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

    /// Counts the pairs that were completed since the last call.
    pub fn update(&mut self, plan: &Plan, records: &BTreeMap<u64, GameRecord>) -> Verdict {
        while self.verdict == Verdict::Undecided && self.next < plan.games() {
            if plan.slot(self.next).pairing == [0, 1] {
                let (Some(one), Some(two)) = (records.get(&self.next), records.get(&(self.next + 1))) else {
                    break;
                };
                if let Some(half) = of_pair(one, two, 0) {
                    self.pairs.add(half);
                    self.verdict = self.sprt.verdict(&self.pairs);
                }
            }
            self.next += 2;
        }
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        matches::{openings::Opening, plan::Entrant, record::RULES_FAILED},
        statistics::{EloModel, SprtSettings},
    };

    #[test]
    fn a_game_in_which_the_rules_failed_counts_for_nobody_and_neither_does_its_pair() {
        let entrant = |name: &str| Entrant {
            name: name.into(),
            written: name.into(),
            version: None,
            digest: None,
            search: None,
        };
        let plan = Plan {
            schema: super::super::plan::SCHEMA,
            game: "noughts".into(),
            rules: serde_json::json!({}),
            players: ["one", "other"].map(entrant).into(),
            pairs: 2,
            seed: 1,
            openings: vec![Opening::default()],
            max_actions: 9,
        };
        let results = [
            GameResult::First,
            GameResult::Uncounted,
            GameResult::First,
            GameResult::Second,
        ];
        let records = (0..).zip(results).map(|(game, result)| {
            let record = GameRecord {
                game,
                players: plan.slot(game).players,
                start: None,
                opening: 0,
                actions: Vec::new(),
                result,
                ending: match result {
                    GameResult::Uncounted => RULES_FAILED.into(),
                    _ => "row".into(),
                },
                keys: [0; 2],
                visits: [0; 2],
                milliseconds: 0,
            };
            (game, record)
        });
        let settings = SprtSettings {
            elo0: 0.0,
            elo1: 10.0,
            alpha: 0.05,
            beta: 0.05,
            model: EloModel::Logistic,
        };
        let sprt = Sprt::new(settings).unwrap();
        let standing = Standing::of(&plan, &records.collect(), Some(&sprt));
        assert_eq!((standing.games, standing.endings[RULES_FAILED]), ([4, 4], 1));
        assert_eq!(
            standing
                .players
                .iter()
                .map(|player| (player.points, player.games))
                .collect::<Vec<_>>(),
            [(3.0, 3), (0.0, 3)]
        );
        let pairing = &standing.pairings[0];
        assert_eq!((pairing.wins, pairing.draws, pairing.losses), (3, 0, 0));
        assert_eq!(pairing.pentanomial.0, [0, 0, 0, 0, 1]);
        assert_eq!(standing.sprt.unwrap().pairs, 1);
    }
}
