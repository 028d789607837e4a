//! Gauges about the curriculum: level, solved problems and lengths of solutions, for each kind of problem.

use games::Game;
use metrics::{Gauge, describe_gauge, gauge};

use super::curriculum::Curriculum;

const LEVEL: &str = "minuet_actor_problem_level";
const RECENT: &str = "minuet_actor_problem_recent";
const SOLVED: &str = "minuet_actor_problem_recent_solved";
const MOVES: &str = "minuet_actor_problem_recent_moves";

/// Gauges of one kind of problem. Sums over several actors can be divided: solved by recent, moves by solved.
#[derive(Debug)]
struct Gauges {
    /// Number of the kind in the curriculum.
    kind: usize,
    level: Gauge,
    recent: Gauge,
    solved: Gauge,
    moves: Gauge,
}

/// Gauges of all kinds of problems of a game.
#[derive(Debug)]
pub struct ProgressGauges(Vec<Gauges>);

impl ProgressGauges {
    /// Registers the gauges of the kinds that these rules draw. A game without problems has none.
    pub fn new<G: Game>(rules: &G::Rules) -> Self {
        describe_gauge!(LEVEL, "Level of difficulty of the problems, by kind.");
        describe_gauge!(
            RECENT,
            "Latest problems of the present level, which decide when it is raised."
        );
        describe_gauge!(
            SOLVED,
            "Solved ones among the latest problems of the present level."
        );
        describe_gauge!(MOVES, "Moves of the solutions of these problems, summed.");
        let drawn = G::problem_kinds(rules).into_iter().enumerate();
        let drawn = drawn.filter(|(_, kind)| kind.share > 0);
        Self(
            drawn
                .map(|(kind, described)| Gauges {
                    kind,
                    level: gauge!(LEVEL, "kind" => described.name),
                    recent: gauge!(RECENT, "kind" => described.name),
                    solved: gauge!(SOLVED, "kind" => described.name),
                    moves: gauge!(MOVES, "kind" => described.name),
                })
                .collect(),
        )
    }

    /// Sets the gauges.
    pub fn show(&self, curriculum: &Curriculum) {
        for gauges in &self.0 {
            let progress = curriculum.progress(gauges.kind);
            gauges.level.set(progress.level);
            gauges.recent.set(progress.recent as f64);
            gauges.solved.set(progress.solved as f64);
            gauges.moves.set(progress.moves as f64);
        }
    }
}
