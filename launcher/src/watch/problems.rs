//! [`Problems`]: progress of self-play with one kind of problem.

use serde::{Deserialize, Serialize};
use service::role::Role;

use super::{names, observe::Observation};

/// Progress with one kind of problem at its present level, over all actors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problems {
    /// Name of the kind, e.g. `draw`.
    pub kind: String,
    /// Level of difficulty. The mean if actors are at different levels.
    pub level: f64,
    /// Number of latest problems whose results are known.
    pub recent: u64,
    /// Share of solved ones among them. `None` while no result is known.
    pub solve_rate: Option<f64>,
    /// Mean number of moves of their solutions. `None` if none is solved.
    pub moves: Option<f64>,
}

impl Problems {
    /// Level as text, with one decimal if actors are at different levels.
    pub fn shown_level(&self) -> String {
        let decimals = usize::from(self.level.fract() != 0.0);
        format!("{:.decimals$}", self.level)
    }
}

/// Reads the progress with each kind of problem from the actors' metrics pages.
pub fn problems(observation: &Observation) -> Vec<Problems> {
    let pages = || observation.pages(Role::Actor);
    let kinds: Vec<&str> = pages()
        .next()
        .map(|page| page.values(names::PROBLEM_LEVEL, "kind"))
        .unwrap_or_default();
    let of_kind = |kind: &str| {
        let of = |name| pages().filter_map(move |page| page.sum_with(name, "kind", kind));
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let sum = |name| of(name).sum::<f64>();
        let (recent, solved) = (sum(names::PROBLEM_RECENT), sum(names::PROBLEM_SOLVED));
        Problems {
            kind: kind.into(),
            level: ratio(sum(names::PROBLEM_LEVEL), of(names::PROBLEM_LEVEL).count() as f64)
                .unwrap_or_default(),
            recent: recent as u64,
            solve_rate: ratio(solved, recent),
            moves: ratio(sum(names::PROBLEM_MOVES), solved),
        }
    };
    kinds.into_iter().map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::super::observe::tests::actors as actors_at;
    use super::*;

    fn observed(pages: &[String]) -> Observation {
        let actors: Vec<_> = pages.iter().map(|page| (1, Some(page.as_str()), 0.0)).collect();
        actors_at(Instant::now(), &actors)
    }

    fn page(kind: &str, figures: [u32; 4]) -> String {
        let names = [
            names::PROBLEM_LEVEL,
            names::PROBLEM_RECENT,
            names::PROBLEM_SOLVED,
            names::PROBLEM_MOVES,
        ];
        let lines = names.iter().zip(figures);
        lines
            .map(|(name, figure)| format!("{name}{{kind=\"{kind}\"}} {figure}\n"))
            .collect()
    }

    #[test]
    fn the_figures_of_all_actors_are_joined_by_kind() {
        let one = page("draw", [4, 50, 30, 150]) + &page("pair", [1, 0, 0, 0]);
        let other = page("draw", [5, 10, 0, 0]) + &page("pair", [1, 0, 0, 0]);
        let draw = Problems {
            kind: "draw".into(),
            level: 4.5,
            recent: 60,
            solve_rate: Some(0.5),
            moves: Some(5.0),
        };
        let pair = Problems {
            kind: "pair".into(),
            level: 1.0,
            ..Problems::default()
        };
        assert_eq!(problems(&observed(&[one, other])), [draw, pair]);
        assert_eq!(problems(&observed(&["minuet_actor_visits_total 3\n".into()])), []);
    }
}
