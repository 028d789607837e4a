use proptest::prelude::*;
use search::{Draws, GameKey, Purpose};

use super::*;
use crate::statistics::score_of_elo;

fn encounter(players: [usize; 2], pairs: [u64; 5]) -> Encounter {
    Encounter::of_pairs(players, &Pentanomial(pairs))
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

/// The difference that is measured on average over such openings: less than the true one.
fn measured(elo: f64, swing: f64) -> f64 {
    let steps = 1000;
    let favours = (0..steps).map(|step| swing * (f64::from(2 * step + 1) / f64::from(steps) - 1.0));
    let score = favours.map(|favour| score_of_elo(elo + favour)).sum::<f64>() / f64::from(steps);
    400.0 * (score / (1.0 - score)).log10()
}

/// Fits the model by another method: minorisation–maximisation (Hunter, *MM algorithms for generalized Bradley–Terry
/// models*, 2004). `points[i][j]` are the points that `i` took from `j`; the ratings have mean 0.
fn minorisation(points: &[Vec<f64>]) -> Vec<f64> {
    let count = points.len();
    let mut strengths = vec![1.0f64; count];
    for _ in 0..10_000 {
        for i in 0..count {
            let (mut won, mut expected) = (0.0, 0.0);
            for j in (0..count).filter(|&j| j != i && points[i][j] + points[j][i] > 0.0) {
                won += points[i][j] + PRIOR_GAMES / 2.0;
                expected += (points[i][j] + points[j][i] + PRIOR_GAMES) / (strengths[i] + strengths[j]);
            }
            if expected > 0.0 {
                strengths[i] = won / expected;
            }
        }
    }
    let elo: Vec<f64> = strengths
        .iter()
        .map(|strength| 400.0 * strength.log10())
        .collect();
    let mean = elo.iter().sum::<f64>() / count as f64;
    elo.iter().map(|elo| elo - mean).collect()
}

#[test]
fn intervals_contain_the_truth_in_95_percent_of_cases() {
    // A chain as a run makes it: each player against the best one before it.
    let truth = [0.0, 90.0, 160.0, 130.0, 260.0];
    let played = [[1, 0], [2, 1], [3, 2], [4, 2]];
    let key = GameKey { run_seed: 5, game: 5 };
    let mut draws = Draws::new(key, 0, Purpose::Choice);
    for swing in [0.0, 400.0] {
        let mut expected = [0.0; 5];
        for [player, opponent] in played {
            let difference = truth[player] - truth[opponent];
            expected[player] = expected[opponent] + measured(difference, swing);
        }
        let (mut contained, mut all) = (0, 0);
        for _ in 0..300 {
            let encounters: Vec<Encounter> = played
                .iter()
                .map(|&players| {
                    let pairs = play(&mut draws, truth[players[0]] - truth[players[1]], 100, swing);
                    Encounter::of_pairs(players, &pairs)
                })
                .collect();
            let model = BradleyTerry::fit(5, &encounters);
            for (player, expected) in expected.iter().enumerate().skip(1) {
                let rating = model.rating(player).unwrap();
                contained += u32::from((rating.low..=rating.high).contains(expected));
                all += 1;
            }
        }
        let share = f64::from(contained) / f64::from(all);
        assert!((0.92..0.98).contains(&share), "swing {swing}: {share}");
    }
}

#[test]
fn player_0_has_elo_0_unconnected_players_have_no_rating_and_a_clean_sweep_a_finite_one() {
    let model = BradleyTerry::fit(
        5,
        &[
            encounter([1, 0], [0, 0, 0, 0, 40]),
            encounter([3, 2], [1, 0, 0, 0, 5]),
            encounter([4, 4], [1, 0, 0, 0, 5]),
            encounter([9, 0], [1, 0, 0, 0, 5]),
        ],
    );
    assert_eq!(model.rating(0), Some(Rating::default()));
    let sweep = model.rating(1).unwrap();
    assert!(
        sweep.elo > 400.0 && sweep.high.is_finite() && sweep.low > 0.0,
        "{sweep:?}"
    );
    for unconnected in [2, 3, 4, 9] {
        assert_eq!(model.rating(unconnected), None, "{unconnected}");
    }
    // A group of its own is rated among itself.
    let centred = model.centred();
    assert!(centred[3] > centred[2] + 100.0 && centred.iter().all(|elo| elo.is_finite()));
    assert_eq!(BradleyTerry::fit(0, &[]).rating(0), None);
    assert_eq!(BradleyTerry::fit(1, &[]).rating(0), Some(Rating::default()));
    assert!(BradleyTerry::fit(0, &[]).centred().is_empty());
}

/// A tree of 100,000 players. Along a tree each difference is that of the two players' own games, so the truth is known; and the
/// test would not end soon if the factor had more than one entry for each game.
#[test]
fn a_long_chain_with_branches_takes_time_in_proportion_to_its_players() {
    let players = 100_000;
    let parent = |player: usize| {
        if player.is_multiple_of(3) {
            player / 2
        } else {
            player - 1
        }
    };
    let results = |player: usize| [3, 1, 4, 1 + (player % 5) as u64, 2];
    let encounters: Vec<Encounter> = (1..players)
        .map(|player| encounter([player, parent(player)], results(player)))
        .collect();
    let model = BradleyTerry::fit(players, &encounters);
    assert_eq!(model.factor.as_ref().unwrap().i.len(), 2 * (players - 1) - 1);
    let mut expected = vec![0.0; players];
    for player in 1..players {
        let own = Edge::new([player, parent(player)], Pentanomial(results(player)).counts());
        expected[player] = expected[parent(player)] + own.log_odds();
    }
    for (player, expected) in expected.into_iter().enumerate() {
        let found = model.strength(player);
        assert!((found - expected).abs() < 1e-6, "{player}: {found} {expected}");
    }
}

proptest! {
    /// Any graph of players, cycles included.
    #[test]
    fn ratings_agree_with_those_of_another_method(
        others in prop::collection::vec((0usize..4, prop::array::uniform5(0u64..30)), 0..5),
        chain in prop::collection::vec(prop::array::uniform5(1u64..30), 3),
    ) {
        let mut played: Vec<([usize; 2], Pentanomial)> = (chain.iter().enumerate())
            .map(|(number, &pairs)| ([number + 1, number], Pentanomial(pairs)))
            .collect();
        for (one, pairs) in others {
            played.push(([one, (one + 2) % 4], Pentanomial(pairs)));
        }
        let mut points = vec![vec![0.0; 4]; 4];
        for ([first, second], pairs) in &played {
            let scores = pairs.counts().into_iter().zip(Pentanomial::SCORES);
            let won: f64 = scores.map(|(count, score)| 2.0 * count * score).sum();
            points[*first][*second] += won;
            points[*second][*first] += 2.0 * pairs.pairs() as f64 - won;
        }
        let encounters: Vec<Encounter> = played
            .iter()
            .map(|(players, pairs)| Encounter::of_pairs(*players, pairs))
            .collect();
        let model = BradleyTerry::fit(4, &encounters);
        let expected = minorisation(&points);
        for (found, expected) in model.centred().iter().zip(&expected) {
            prop_assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
        for player in 1..4 {
            let found = model.rating(player).unwrap();
            prop_assert!((found.elo - (expected[player] - expected[0])).abs() < 0.01, "{found:?} {expected:?}");
            prop_assert!(found.low < found.elo && found.elo < found.high);
        }
    }
}
