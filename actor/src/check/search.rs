//! Repeats the searches of a record with the same network and compares every decision.
//!
//! The settings, the key of the game and the evaluations determine a search. A record names the model of every evaluation, so a
//! game across several checkpoints is repeated whole.

use anyhow::{Context as _, ensure};
use games::{Game, MoverValue, Symmetry};
use network::{PositionBatch, Predictions};
use proto::{
    columns::check_length,
    decisions::{DecisionColumns, Halves, Recorder},
    v1,
};
use search::{LeafId, Search};

use super::{Premises, Problem, RecordedPosition, positions};
use crate::play::record::{record_search, visited};

/// True if no search of the record needed an evaluation, because the rules gave the outcome of every leaf.
pub fn is_without_evaluations(record: &v1::Game) -> bool {
    let evaluations =
        |totals: &v1::VisitTotals| totals.fresh_evaluations + totals.cache_hits + totals.duplicates_in_flight;
    record.model_versions.is_empty() && record.totals.as_ref().map(evaluations) == Some(0)
}

/// Tolerance for root values, which are sums of network values in single precision.
const VALUE_TOLERANCE: f32 = 1e-5;
/// Largest step between two numbers in half precision, relative to the smaller one.
const HALF_STEP: f32 = 1.0 / 1024.0;

/// Result of repeating the searches of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Number of positions whose decision is exactly as recorded: all visits, and the action.
    pub positions: usize,
    /// Largest difference of a root value.
    pub value_difference: f32,
    /// First difference, if there is one.
    pub difference: Option<Problem>,
}

/// Repeats the searches of a record. `evaluate` appends the predictions of a model, an index into the record's `model_versions`, for a
/// batch of leaves. Their priors must be rounded to half precision, as on the wire.
///
/// # Errors
/// The record cannot be replayed (the error is a [`Problem`] then), the network returns no evaluations, or the search refuses an
/// evaluation or an action of the record.
pub fn follow<G: Game>(
    record: &v1::Game,
    mut evaluate: impl FnMut(usize, &PositionBatch, &mut Predictions) -> anyhow::Result<()>,
) -> anyhow::Result<Followed> {
    let premises = Premises::<G>::of(record)?;
    let mut models = Models::of(record)?;
    let mut search = Search::new(premises.start.clone(), premises.settings.clone(), premises.key);
    let mut followed = Followed::default();
    for position in positions(record).map_err(Problem::from)? {
        if let Some(problem) = decide(&mut search, premises.encoding, &mut models, &mut evaluate)? {
            followed.difference = Some(Problem {
                ply: Some(position.ply),
                ..problem
            });
            return Ok(followed);
        }
        let decision = search.decision();
        let state = search.state();
        let index = |action| state.policy_index(premises.encoding, Symmetry::IDENTITY, action);
        let named = visited(&decision);
        let visits: Vec<(u32, u32)> = named
            .iter()
            .map(|&(action, visits)| (index(action), visits))
            .collect();
        let difference = (decision.value.get() - position.root_value).abs();
        let chosen = search.choose(premises.settings.temperature_after(position.ply));
        let problem = compare(&position, &visits, decision.value, chosen).or_else(|| {
            let mut recorder = Recorder::default();
            record_search(&mut recorder, &decision, &named, position.action, index);
            compare_decision(&position, &recorder.finish())
        });
        // A NaN fails the comparison, and the maximum stays as it is.
        if difference > followed.value_difference {
            followed.value_difference = difference;
        }
        if problem.is_some() {
            followed.difference = problem;
            return Ok(followed);
        }
        search
            .advance(position.action)
            .context("the search cannot continue")?;
        followed.positions += 1;
    }
    Ok(followed)
}

fn compare(
    position: &RecordedPosition<'_>,
    visited: &[(u32, u32)],
    value: MoverValue,
    chosen: Option<u32>,
) -> Option<Problem> {
    let problem = |field, problem| {
        Some(Problem {
            ply: Some(position.ply),
            field,
            problem,
        })
    };
    let recorded: Vec<(u32, u32)> = position
        .visit_actions
        .iter()
        .copied()
        .zip(position.visits.iter().copied())
        .collect();
    if !recorded.is_empty() && recorded != visited {
        let first = recorded
            .iter()
            .zip(visited)
            .find(|(recorded, found)| recorded != found);
        let text = match first {
            Some((recorded, found)) => format!(
                "policy index {} with {} visits is recorded, the search comes to index {} with {}",
                recorded.0, recorded.1, found.0, found.1
            ),
            None => format!(
                "{} visited actions are recorded, the search visits {}",
                recorded.len(),
                visited.len()
            ),
        };
        return problem("visits", text);
    }
    let recorded = position.root_value;
    let difference = (value.get() - recorded).abs();
    if difference.is_nan() || difference > VALUE_TOLERANCE {
        let text = format!("{recorded} is recorded, the search comes to {}", value.get());
        return problem("root_values", text);
    }
    if chosen != Some(position.action) {
        let text = format!("{} is recorded, the search chooses {chosen:?}", position.action);
        return problem("actions", text);
    }
    None
}

/// Compares the priors, values and evaluation of a position with those of the repeated search, `expected`. They are rounded to half
/// precision, so a difference within the tolerance of root values may be one of the last digit.
fn compare_decision(position: &RecordedPosition<'_>, expected: &v1::Decisions) -> Option<Problem> {
    let recorded = position.decision?;
    let counts = [position.visits.len() as u32];
    let expected = DecisionColumns::new(expected, &counts).ok()?.next()?;
    let is_equal = |found: Halves<'_>, expected: Halves<'_>| {
        found.bytes().len() == expected.bytes().len()
            && found
                .iter()
                .zip(expected.iter())
                .all(|(found, expected)| is_near(found, expected))
    };
    let checks = [
        (recorded.kind == expected.kind, "decisions.kinds"),
        (
            recorded.unvisited == expected.unvisited,
            "decisions.unvisited_actions",
        ),
        (
            is_equal(recorded.visited_priors, expected.visited_priors),
            "decisions.visited_priors",
        ),
        (
            is_equal(recorded.unvisited_priors, expected.unvisited_priors),
            "decisions.unvisited_priors",
        ),
        (is_equal(recorded.values, expected.values), "decisions.values"),
        (
            is_near(recorded.evaluation, expected.evaluation),
            "decisions.evaluations",
        ),
    ];
    let (_, field) = checks.into_iter().find(|&(holds, _)| !holds)?;
    Some(Problem {
        ply: Some(position.ply),
        field,
        problem: "the search comes to something else".into(),
    })
}

/// True if two numbers in half precision differ by no more than rounding.
fn is_near(found: f32, expected: f32) -> bool {
    (found - expected).abs() <= VALUE_TOLERANCE + HALF_STEP * expected.abs()
}

/// Models of the evaluations, in the order in which the search requests them: index of a model, and number of evaluations in a row
/// that it made; the last run first.
struct Models(Vec<(usize, u32)>);

impl Models {
    fn of(record: &v1::Game) -> Result<Self, Problem> {
        let (models, counts) = (&record.evaluation_models, &record.evaluation_counts);
        check_length("evaluation_counts", counts.len(), models.len())?;
        let runs = models.iter().zip(counts).rev();
        Ok(Self(
            runs.map(|(&model, &count)| (model as usize, count)).collect(),
        ))
    }

    /// Returns the model of the next evaluation; `None` after the last one.
    fn next(&mut self) -> Option<usize> {
        while self.0.last().is_some_and(|&(_, left)| left == 0) {
            self.0.pop();
        }
        let (model, left) = self.0.last_mut()?;
        *left -= 1;
        Some(*model)
    }
}

/// Leaves of a gather that one model evaluates.
struct Part {
    model: usize,
    leaves: Vec<LeafId>,
    batch: PositionBatch,
}

/// Completes one decision. Returns a problem if the search requests more evaluations than are recorded.
fn decide<G: Game>(
    search: &mut Search<G>,
    encoding: G::Encoding,
    models: &mut Models,
    evaluate: &mut impl FnMut(usize, &PositionBatch, &mut Predictions) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Problem>> {
    let mut predictions = Predictions::default();
    while !search.is_decided() {
        let mut parts: Vec<Part> = Vec::new();
        let mut is_short = false;
        search.gather(|leaf| {
            let Some(model) = models.next() else {
                is_short = true;
                return;
            };
            let is_same = parts.last().is_some_and(|part| part.model == model);
            if !is_same {
                parts.push(Part {
                    model,
                    leaves: Vec::new(),
                    batch: PositionBatch::default(),
                });
            }
            if let Some(part) = parts.last_mut() {
                part.leaves.push(leaf.id);
                part.batch.push(&leaf, encoding);
            }
        });
        if is_short {
            let problem = "the search requests more evaluations than are recorded";
            return Ok(Some(Problem::unplayable("evaluation_counts", problem)));
        }
        for part in parts {
            predictions.clear();
            evaluate(part.model, &part.batch, &mut predictions)
                .context("the network returns no evaluations")?;
            apply(search, &part, &predictions)?;
        }
    }
    Ok(None)
}

fn apply<G: Game>(search: &mut Search<G>, part: &Part, predictions: &Predictions) -> anyhow::Result<()> {
    let (priors, values) = (predictions.priors.len(), predictions.values.len());
    ensure!(
        priors == part.batch.legal().len() && values == part.batch.len(),
        "the network gives {priors} priors and {values} values for {} leaves with {} legal actions",
        part.batch.len(),
        part.batch.legal().len()
    );
    for (position, &id) in part.leaves.iter().enumerate() {
        search
            .apply(id, predictions.get(&part.batch, position))
            .context("the search cannot continue")?;
    }
    Ok(())
}
