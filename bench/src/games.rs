//! `minuet bench games`: action-perft nodes per second of each rules engine, on one thread.
//!
//! Every round counts from positions whose numbers are known, and a wrong count fails the benchmark.

use std::{fmt::Write, time::Instant};

use anyhow::ensure;
use clap::builder::PossibleValuesParser;
use games::{
    Game,
    catalogue::{self, Visitor},
    paco_sako::{self, PacoSako},
    perft::{perft, perft_played},
};
use serde::Serialize;

use crate::harness::{self, report};

/// Arguments of `minuet bench games`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet bench games --game paco-sako --json")]
pub struct Arguments {
    /// Only this game.
    #[arg(long, value_parser = PossibleValuesParser::new(catalogue::NAMES))]
    game: Option<String>,
    /// Rounds, of which the median is given.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A position and its known perft numbers; the last one's depth is what a round counts to.
struct Known {
    position: Option<&'static str>,
    counts: &'static [u64],
}

/// What each game is measured on.
const SUITES: &[(&str, &[Known])] = &[
    (
        "paco-sako",
        // Recorded from the original engine: two openings, unions, long chains, promotions, Fischer-random castling.
        &[
            Known {
                position: None,
                counts: &[10, 20, 200, 400, 4472, 8902],
            },
            Known {
                position: Some("r3kbnr/ppp2ppp/2n5/1B1pp3/1PP1P1bq/5N2/P2P1PPP/RNBQK2R w 0 AHah - -"),
                counts: &[13, 30, 392, 1470, 19400, 47257],
            },
            Known {
                position: Some("r2q1b2/p1pk1p2/2np1n1r/3QdSpa/4PaP1/3P1B2/PPP5/R3KB1R w 0 AHah - -"),
                counts: &[14, 48, 539, 1889, 20920, 79211],
            },
            Known {
                position: Some("5rk1/ppp2pep/8/1B1ah2D/4f1b1/2N3SP/PPP2DP1/5L1K w 0 AHah - -"),
                counts: &[14, 55, 833, 2878, 35577, 153889],
            },
            Known {
                position: Some("4N3/3N3k/3sw1Ta/3p1o1e/hW1J1by1/8/2L4d/h4K2 b 29 - - -"),
                counts: &[14, 97, 1332, 8078, 112575, 765295],
            },
            Known {
                position: Some("nb3N2/1qpP1P2/B1a1pQ2/1P1RpR1p/2BPr2K/2P3Pd/r1a2p1b/1n2k3 w 0 - - -"),
                counts: &[12, 37, 450, 1329, 13331, 48023],
            },
            Known {
                position: Some("n1rk1rbb/ppppp1pp/1Bn2pq1/8/5P1Q/8/PPPPP1PP/NNR2RKB b 7 cf - -"),
                counts: &[13, 40, 596, 1624, 21181, 64956],
            },
        ],
    ),
    (
        "chess",
        // The start position, Kiwipete and a board of promotions, as the chess programming wiki counts them.
        &[
            Known {
                position: None,
                counts: &[20, 400, 8902, 197_281, 4_865_609],
            },
            Known {
                position: Some("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
                counts: &[48, 2039, 97_862, 4_085_603],
            },
            Known {
                position: Some("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"),
                counts: &[24, 496, 9483, 182_838, 3_605_103],
            },
        ],
    ),
    (
        "othello",
        &[Known {
            position: None,
            counts: &[4, 12, 56, 244, 1396, 8200, 55_092, 390_216, 3_005_288],
        }],
    ),
    (
        "connect-four",
        &[Known {
            position: None,
            counts: &[7, 49, 343, 2401, 16_807, 117_649, 823_536, 5_673_234, 39_394_572],
        }],
    ),
];

#[derive(Serialize)]
struct Report {
    bench: &'static str,
    games: Vec<Rates>,
}

/// One game's figures.
#[derive(Serialize)]
struct Rates {
    game: &'static str,
    positions: usize,
    /// Nodes of one round: action sequences of every length up to each position's depth.
    nodes: u64,
    rounds: u8,
    /// The last action of each sequence counted by the size of the legal set.
    nodes_per_second: f64,
    /// The last action of each sequence played as well.
    played_nodes_per_second: f64,
}

/// Measures and prints.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let games = SUITES
        .iter()
        .filter(|(game, _)| arguments.game.as_deref().is_none_or(|wanted| wanted == *game))
        .map(|&(game, known)| {
            catalogue::visit(
                game,
                Measuring {
                    known,
                    rounds: arguments.rounds,
                },
            )?
        })
        .collect::<anyhow::Result<_>>()?;
    report::print(
        &Report {
            bench: "games",
            games,
        },
        arguments.json,
        as_text,
    )
}

fn as_text(report: &Report) -> String {
    let mut text = String::from("million nodes a second   counted    played\n");
    for rates in &report.games {
        let (counted, played) = (rates.nodes_per_second / 1e6, rates.played_nodes_per_second / 1e6);
        let _ = writeln!(text, "{:<22}  {counted:>9.2} {played:>9.2}", rates.game);
    }
    text
}

struct Measuring {
    known: &'static [Known],
    rounds: u8,
}

impl Visitor for Measuring {
    type Output = anyhow::Result<Rates>;

    fn visit<G: Game>(self) -> Self::Output {
        let rules = rules::<G>()?;
        let starts = self
            .known
            .iter()
            .map(|known| G::start(&rules, known.position))
            .collect::<Result<Vec<_>, _>>()?;
        let rounds = usize::from(self.rounds);
        let nodes_per_second = rate(&starts, self.known, rounds, perft)?;
        let played_nodes_per_second = rate(&starts, self.known, rounds, perft_played)?;
        Ok(Rates {
            game: G::NAME,
            positions: starts.len(),
            nodes: self.known.iter().flat_map(|known| known.counts).sum(),
            rounds: self.rounds,
            nodes_per_second,
            played_nodes_per_second,
        })
    }
}

/// The rules that the known numbers belong to: Paco Ŝako's of the original engine, other games' defaults.
fn rules<G: Game>() -> anyhow::Result<G::Rules> {
    if G::NAME != PacoSako::NAME {
        return Ok(G::Rules::default());
    }
    let rules = serde_json::to_value(paco_sako::Rules::compatibility())?;
    Ok(serde_json::from_value(rules)?)
}

/// Median nodes per second of a perft function over all positions.
fn rate<G: Game>(
    starts: &[G],
    known: &[Known],
    rounds: usize,
    count: impl Fn(&G, usize) -> Vec<u64>,
) -> anyhow::Result<f64> {
    let mut found = Vec::new();
    let rates = harness::rounds(rounds, || {
        let began = Instant::now();
        found = starts
            .iter()
            .zip(known)
            .map(|(start, known)| count(start, known.counts.len()))
            .collect();
        let nodes: u64 = found.iter().flatten().sum();
        Ok(nodes as f64 / began.elapsed().as_secs_f64())
    })?;
    for ((start, known), counts) in starts.iter().zip(known).zip(&found) {
        ensure!(
            counts == known.counts,
            "perft of {} gave {counts:?}, known are {:?}",
            start.position(),
            known.counts
        );
    }
    Ok(report::median(&rates))
}
