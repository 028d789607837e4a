//! Drawing of an explorer: the tree opened along a path, the board at its end, the formula with its numbers.

use games::{Action, erased::AnyState};
use maud::{Markup, html};
use search::look::{Child, Look, Stage, Terms};

use super::{
    explorer::{Explorer, Inner},
    tree::Tree,
};
use crate::{
    board::{self, Figures, View, share},
    figures::words::{count, unknown},
};

/// A look at one node on the opened path.
pub(super) struct Level {
    pub path: Vec<Action>,
    pub state: Box<dyn AnyState>,
    pub look: Look,
    /// Children, most visited first, then those of the largest priors.
    pub children: Vec<Child>,
}

/// Draws everything. `None` if the tree has no node at `path`.
pub(super) fn page(
    explorer: &Explorer,
    inner: &Inner,
    base: &str,
    path: &[Action],
    all: bool,
) -> Option<Markup> {
    let levels: Vec<Level> = (0..=path.len())
        .map(|length| level(explorer, inner, path.get(..length)?))
        .collect::<Option<_>>()?;
    let shown = levels.last()?;
    let before = levels.len().checked_sub(2).and_then(|at| levels.get(at));
    let edge = before.and_then(|before| {
        Some((
            before,
            before
                .children
                .iter()
                .find(|child| Some(&child.action) == path.last())?,
        ))
    });
    let tree = Tree {
        base,
        levels: &levels,
        all,
        last: inner.last.as_deref(),
    };
    Some(html! {
        div.explore {
            section.card.looked aria-labelledby="node" {
                h2 #node { (place(&levels)) }
                (drawing(shown))
                (facts(explorer, shown))
                @if let Some((before, child)) = edge { (formula(inner, before, child)) }
                @else { p.quiet.small { "Choose a move in the tree for its board and its formula." } }
            }
            section.card.tree aria-labelledby="tree" {
                h2 #tree { "Tree" }
                (visits(explorer, inner, base, path))
                (last(&levels, inner, base))
                (tree.table())
                p.quiet.small {
                    "P: prior of the network. N: visits. Q and U: the two terms of V. ▸ marks the largest V, which the next visit "
                    "takes. Values go from −1, a loss, to 1, a win for the player to act."
                }
            }
        }
    })
}

fn level(explorer: &Explorer, inner: &Inner, path: &[Action]) -> Option<Level> {
    let look = inner.thinker.search().look(path)?;
    let mut children = look.children.clone();
    children.sort_by_key(|child| std::cmp::Reverse((child.visits, child.prior.to_bits())));
    Some(Level {
        path: path.to_vec(),
        state: explorer.state(path)?,
        look,
        children,
    })
}

/// The moves that lead to the node.
fn place(levels: &[Level]) -> Markup {
    let moves = levels.windows(2).filter_map(|pair| match pair {
        [before, after] => Some(before.state.write_turn(after.path.get(before.path.len()..)?)),
        _ => None,
    });
    let moves: Vec<String> = moves.collect();
    html! { @if moves.is_empty() { "The position" } @else { (moves.join(" · ")) } }
}

fn drawing(shown: &Level) -> Markup {
    let last = shown.path.last().map_or(&[][..], std::slice::from_ref);
    let scene = shown.state.scene(last);
    let all = shown.look.visits.max(1) as f32;
    let figures: Vec<Figures> = shown
        .children
        .iter()
        .map(|child| Figures {
            action: child.action,
            prior: child.prior,
            visits: child.visits as f32 / all,
            value: child.value.map(|value| share(shown.state.game(), value.get())),
        })
        .collect();
    let over = html! {
        @if let Some(first) = scene.boards.first() { (board::overlay(|action| shown.state.clicks(action), first, View::default(), &figures)) }
    };
    html! {
        (board::boards_with(&scene, View::default(), &over))
        (board::notes(&scene))
    }
}

/// Facts about the node itself.
fn facts(explorer: &Explorer, shown: &Level) -> Markup {
    let look = &shown.look;
    html! {
        dl.facts {
            dt { "State" }
            dd {
                @match look.stage {
                    Stage::Terminal => { "the game is over" }
                    Stage::Empty => { "waits for its evaluation" }
                    Stage::Gray | Stage::Active => { (explorer.game().player_name(look.mover)) " to move, " (look.children.len()) " legal moves" }
                }
            }
            dt { @if look.stage == Stage::Terminal { "Result" } @else { (explorer.by) } }
            dd {
                @match look.evaluation {
                    Some(value) => { (number(value.get())) @if look.stage != Stage::Terminal { " for " (explorer.game().player_name(look.mover)) } }
                    None => { (unknown()) }
                }
            }
            dt { "Visits below" }
            dd { (count(look.visits.into())) }
        }
    }
}

/// The formula for one action of a node, term by term.
fn formula(inner: &Inner, before: &Level, child: &Child) -> Markup {
    let settings = inner.thinker.search().settings();
    let Some(Terms {
        first_play,
        total,
        value,
        exploration,
    }) = child.terms
    else {
        return html! { p.quiet.small { "The formula has numbers once the node before has visits." } };
    };
    let (prior, visits, sum) = (child.prior, child.visits, before.look.visits);
    html! {
        h3 { "Why " (before.state.write_turn(&[child.action])) " is taken or not" }
        table.formula {
            tbody {
                tr {
                    th scope="row" { var { "Q" } " = (" var { "F" } " + " var { "W" } ") / (1 + " var { "N" } ")" }
                    td.number { (number(value)) }
                    td { "(" (number(first_play)) " + " (number(total)) ") / (1 + " (visits) ")" }
                }
                tr {
                    th scope="row" { var { "U" } " = " var { "c" } " · " var { "P" } " · √Σ" var { "N" } " / (1 + " var { "N" } ")" }
                    td.number { (number(exploration)) }
                    td { (settings.exploration) " · " (format!("{prior:.3}")) " · √" (sum) " / (1 + " (visits) ")" }
                }
                tr.sum {
                    th scope="row" { var { "V" } " = " var { "Q" } " + " var { "U" } }
                    td.number { (number(value + exploration)) }
                    td {}
                }
            }
        }
        p.quiet.small {
            var { "F" } " is what a move is worth before its first visit, " var { "W" } " the sum of the values of its " var { "N" }
            " visits, Σ" var { "N" } " the visits of all moves, for " (before.state.game().player_name(before.look.mover)) "."
        }
    }
}

/// Buttons that make visits.
fn visits(explorer: &Explorer, inner: &Inner, base: &str, path: &[Action]) -> Markup {
    let done = inner.thinker.search().visits_done();
    html! {
        form.visits method="post" action=(format!("{base}/visit")) {
            input type="hidden" name="at" value=(written(path));
            span { b { (count(done.into())) } @if done == 1 { " visit" } @else { " visits" } " by " (explorer.by) }
            @for number in [1, 10, 100, 1000] {
                button type="submit" name="count" id=(format!("visit-{number}")) value=(number) disabled[done >= explorer.most] {
                    "+" (number) @if number == 1 { " visit" }
                }
            }
        }
    }
}

/// The way of the last visit.
fn last(levels: &[Level], inner: &Inner, base: &str) -> Markup {
    let Some((last, begin)) = inner.last.as_deref().zip(levels.first()) else {
        return html! { p.last {} };
    };
    let mut state = begin.state.copy();
    let mut moves = Vec::new();
    for &action in last {
        moves.push(state.write_turn(&[action]));
        state.play_legal(action);
    }
    let value = inner
        .thinker
        .search()
        .look(last)
        .and_then(|look| look.evaluation.map(|value| (value, look.mover)));
    html! {
        p.last {
            "The last visit took " a href=(address(base, last)) { (moves.join(" · ")) }
            @if let Some((value, mover)) = value { ", which is worth " (number(value.get())) " to " (state.game().player_name(mover)) }
            "."
        }
    }
}

/// Address of a node.
pub(super) fn address(base: &str, path: &[Action]) -> String {
    format!("{base}?at={}", written(path))
}

/// A path as an address has it, e.g. `12.64`.
pub(super) fn written(path: &[Action]) -> String {
    let actions: Vec<String> = path.iter().map(Action::to_string).collect();
    actions.join(".")
}

/// A number from -1 to 1, with a true minus.
pub(super) fn number(value: f32) -> String {
    format!("{value:.3}").replace('-', "−")
}
