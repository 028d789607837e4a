//! The opened tree as a table: the moves of each opened node, and one line for those that few visits took.

use games::Action;
use maud::{Markup, html};
use search::look::{Child, Stage};

use super::view::{Level, address, number, written};
use crate::figures::words::{count, percent, unknown};

/// Moves of a node that are listed one by one.
const TOP: usize = 8;
/// Deepest indentation.
const DEEPEST: usize = 8;

/// The opened tree as a table.
pub(super) struct Tree<'a> {
    /// Address of the page.
    pub base: &'a str,
    /// Nodes of the opened path, the position first.
    pub levels: &'a [Level],
    /// True if all moves of the last node are listed.
    pub all: bool,
    /// Actions of the last visit.
    pub last: Option<&'a [Action]>,
}

impl Tree<'_> {
    /// Draws the table.
    pub(super) fn table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label="Tree, scrollable" {
                table.nodes {
                    thead { tr {
                        th scope="col" { "Move" }
                        @for name in ["P", "N", "Q", "U", "V"] { th.number scope="col" { (name) } }
                    } }
                    tbody {
                        tr aria-current=[(self.levels.len() == 1).then_some("true")] {
                            th scope="row" { a href=(self.base) id="node-root" { "The position" } }
                            td {} td.number { (count(self.levels.first().map_or(0, |root| root.look.visits).into())) } td {} td {} td {}
                        }
                        (self.rows(0))
                    }
                }
            }
        }
    }

    /// Rows of the children of an opened node, with the rows below the child that is opened too.
    fn rows(&self, depth: usize) -> Markup {
        let Some(level) = self.levels.get(depth) else {
            return Markup::default();
        };
        let is_last = depth + 1 == self.levels.len();
        let opened = self.levels.get(depth + 1).and_then(|below| below.path.last());
        let listed = |number: usize, child: &Child| {
            number < TOP || self.all && is_last || Some(&child.action) == opened
        };
        let rest: Vec<&Child> = level
            .children
            .iter()
            .enumerate()
            .filter(|(number, child)| !listed(*number, child))
            .map(|(_, child)| child)
            .collect();
        let next = next(&level.children);
        let is_next = |child: &Child| next.contains(&child.action);
        html! {
            @for (number, child) in level.children.iter().enumerate() {
                @if listed(number, child) {
                    (self.row(depth, level, child, is_next(child)))
                    @if Some(&child.action) == opened { (self.rows(depth + 1)) }
                }
            }
            @if !rest.is_empty() {
                tr.rest {
                    th scope="row" class=(indentation(depth)) {
                        a href=(format!("{}&all=true", address(self.base, &level.path))) { (rest.len()) " more" }
                        @if rest.iter().any(|child| is_next(child)) { span.next { " ▸" } }
                    }
                    td.number { (percent(rest.iter().map(|child| f64::from(child.prior)).sum())) }
                    td.number { (count(rest.iter().map(|child| child.visits).sum::<u32>().into())) }
                    td {} td {} td {}
                }
            }
        }
    }

    fn row(&self, depth: usize, level: &Level, child: &Child, is_next: bool) -> Markup {
        let path: Vec<Action> = level.path.iter().copied().chain([child.action]).collect();
        let is_current = self.levels.last().is_some_and(|shown| shown.path == path);
        let was_taken = self.last.is_some_and(|last| last.starts_with(&path));
        let text = level.state.write_turn(&[child.action]);
        let share = 40.0 * child.visits as f32 / level.look.visits.max(1) as f32;
        html! {
            tr.taken[was_taken] aria-current=[is_current.then_some("true")] {
                th scope="row" class=(indentation(depth)) {
                    @if child.stage.is_some() { a id=(format!("node-{}", written(&path))) href=(address(self.base, &path)) { (text) } }
                    @else { (text) }
                    @if is_next { span.next title="The next visit takes this move, or another one with this mark" { " ▸" } }
                    @if child.stage == Some(Stage::Terminal) { span.quiet.small { " end" } }
                }
                td.number { (percent(child.prior.into())) }
                td.number {
                    svg.share viewBox="0 0 40 4" preserveAspectRatio="none" aria-hidden="true" { rect width=(format!("{share:.1}")) height="4" {} }
                    (count(child.visits.into()))
                }
                @match child.terms {
                    Some(terms) => {
                        td.number { (number(terms.value)) }
                        td.number { (number(terms.exploration)) }
                        td.number { (number(terms.score())) }
                    }
                    None => { td.number { (unknown()) } td.number { (unknown()) } td.number { (unknown()) } }
                }
            }
        }
    }
}

/// The actions of which the next visit takes one: those with the largest score, and among these those with the largest prior.
fn next(children: &[Child]) -> Vec<Action> {
    let weight = |child: &Child| Some((child.terms?.score(), child.prior));
    let weights = children.iter().filter_map(weight);
    let largest = weights.max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let tied = children
        .iter()
        .filter(|child| largest.is_some() && weight(child) == largest);
    tied.map(|child| child.action).collect()
}

fn indentation(depth: usize) -> String {
    format!("depth-{}", depth.min(DEEPEST))
}
