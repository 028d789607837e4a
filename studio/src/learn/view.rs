//! Drawings of the page: each probe with what a checkpoint thinks of it, and its main moves over training.

use std::sync::Arc;

use games::{
    Action, Player,
    erased::{AnyGame, AnyState},
    probes::Probe,
    registry::UnknownGame,
};
use maud::{Markup, html};
use search::Decision;

use super::answers::{Answer, VISITS, probes};
use crate::{
    board::{self, Figures, View, share},
    chart::{Chart, Curve, Look, chart},
    figures::{
        series::Point,
        words::{percent, unknown},
    },
    run::Run,
};

/// Moves in the table of a probe.
const MOVES: usize = 4;
/// Main moves whose curves are drawn.
const MAIN_MOVES: usize = 3;

/// A probe as the page shows it.
#[derive(Debug)]
pub struct Drawn {
    /// Name of the position.
    pub name: String,
    /// Board, and a table of moves.
    pub position: Markup,
    /// Main moves over training.
    pub lines: Markup,
}

/// Draws all probes of the run's game: what `chosen` thinks (`None`: not known yet), and what `all` answered, in the order of
/// training.
///
/// # Errors
/// [`UnknownGame`] if this build does not know the run's game.
pub fn draw(run: &Run, chosen: Option<&Answer>, all: &[Arc<Answer>]) -> Result<Vec<Drawn>, UnknownGame> {
    let game = run.game()?;
    let probes = probes(run)?.into_iter().enumerate();
    Ok(probes
        .map(|(number, probe)| {
            let is_searched = chosen.is_some_and(Answer::is_searched);
            let decision = chosen.and_then(|answer| answer.on(number));
            Drawn {
                position: position(game, &probe, decision, is_searched),
                lines: lines(&probe, number, all),
                name: probe.name,
            }
        })
        .collect())
}

/// Moves of a decision, the most visited first, then those of the largest priors. Without a search they have no visits.
fn rows(decision: &Decision, is_searched: bool) -> Vec<Figures> {
    let all = decision.visits.iter().sum::<u32>().max(1) as f32;
    let figures = decision.priors.iter().zip(&decision.visits);
    let mut rows: Vec<Figures> = decision
        .actions
        .iter()
        .zip(figures)
        .map(|(&action, (&prior, &visits))| Figures {
            action,
            prior,
            visits: if is_searched { visits as f32 / all } else { 0.0 },
            value: None,
        })
        .collect();
    rows.sort_by(|one, other| {
        let visits = other.visits.total_cmp(&one.visits);
        visits.then(other.prior.total_cmp(&one.prior))
    });
    rows
}

fn position(
    game: &AnyGame,
    probe: &Probe<Box<dyn AnyState>>,
    decision: Option<&Decision>,
    is_searched: bool,
) -> Markup {
    let state = &*probe.state;
    let scene = state.scene(&probe.last_turn);
    let rows = decision
        .map(|decision| rows(decision, is_searched))
        .unwrap_or_default();
    let over = html! {
        @if let Some(board) = scene.boards.first() { (board::overlay(|action| state.clicks(action), board, View::default(), &rows)) }
    };
    let value = |value: f32| share(game, value);
    let raw = decision.map(|decision| value(decision.evaluation.of_first(decision.mover).get()));
    let searched = decision.filter(|_| is_searched);
    let searched = searched.map(|decision| value(decision.value.of_first(decision.mover).get()));
    html! {
        p.quiet.small.to-move {
            @if game.players > 1 { (game.player_name(state.to_move())) " to move. " }
            (scene.remark)
        }
        (board::boards_with(&scene, View::default(), &over))
        table.answer {
            thead {
                tr {
                    th scope="col" { span.hidden-text { "Figure" } }
                    th scope="col" { "Network" }
                    th scope="col" { (VISITS) " visits" }
                }
            }
            tbody {
                tr.value {
                    th scope="row" { @if game.players > 1 { (game.player_name(Player::First)) "’s chances" } @else { "Value" } }
                    (figure(raw))
                    (figure(searched))
                }
                @for number in 0..MOVES {
                    @match rows.get(number) {
                        Some(row) => {
                            tr {
                                th scope="row" { (state.write_turn(&[row.action])) }
                                (figure(Some(row.prior)))
                                (figure(is_searched.then_some(row.visits)))
                            }
                        }
                        // The table keeps its height until the figures come.
                        None => { tr { th scope="row" { (unknown()) } (figure(None)) (figure(None)) } }
                    }
                }
            }
        }
    }
}

/// A share from 0 to 1 as a number and a bar.
fn figure(share: Option<f32>) -> Markup {
    html! {
        td {
            @match share {
                Some(share) => {
                    span.number { (percent(share.into())) }
                    meter min="0" max="1" value=(format!("{share:.3}")) aria-hidden="true" {}
                }
                None => { span.number { (unknown()) } meter min="0" max="1" value="0" aria-hidden="true" {} }
            }
        }
    }
}

/// Priors of the moves that the newest checkpoint prefers, over the steps of training.
fn lines(probe: &Probe<Box<dyn AnyState>>, number: usize, all: &[Arc<Answer>]) -> Markup {
    let known = || {
        all.iter()
            .filter_map(|answer| Some((answer.step, answer.on(number)?)))
    };
    let newest = known().next_back().map(|(_, decision)| rows(decision, false));
    let main: Vec<Action> = newest
        .iter()
        .flatten()
        .take(MAIN_MOVES)
        .map(|row| row.action)
        .collect();
    let points: Vec<Vec<Point>> = main
        .iter()
        .map(|action| {
            let points = known().filter_map(|(step, decision)| {
                let at = decision.actions.iter().position(|found| found == action)?;
                let percent = 100.0 * f64::from(*decision.priors.get(at)?);
                Some(Point::single(step as f64, percent))
            });
            points.collect()
        })
        .collect();
    let names: Vec<String> = main
        .iter()
        .map(|&action| probe.state.write_turn(&[action]))
        .collect();
    let curves: Vec<Curve<'_>> = names
        .iter()
        .zip(&points)
        .zip(Look::ALL)
        .map(|((name, points), look)| Curve { name, points, look })
        .collect();
    chart(&Chart {
        title: &format!("{}: the network’s main moves in percent", probe.name),
        across: "step",
        range: Some([0.0, 20.0]),
        figure: |share| percent(share / 100.0),
        curves: &curves,
        empty: "The checkpoints are being asked.",
    })
}
