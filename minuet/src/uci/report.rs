//! `info` lines: the current results of a search.

use std::{fmt::Write as _, time::Duration};

use arena::Thinker;
use games::{Action, Game as _, chess::Chess};

use super::score::{centipawns, win_draw_loss};

/// State of a search at one moment, and what to report of it.
pub struct Snapshot<'a> {
    /// The search.
    pub thinker: &'a Thinker<Chess>,
    /// Time since the search was requested.
    pub elapsed: Duration,
    /// Number of lines to report.
    pub multi_pv: usize,
    /// True if the probabilities of win, draw and loss are reported.
    pub show_wdl: bool,
    /// Greatest size of the tree, in bytes.
    pub hash_bytes: u64,
}

/// Returns the lines, best first, each with a line break. `proven` returns the proven mate distance of a line that ends in
/// mate.
pub fn lines(snapshot: &Snapshot<'_>, mut proven: impl FnMut(&[Action]) -> Option<i32>) -> String {
    let thinker = snapshot.thinker;
    let decision = thinker.decision();
    let root = thinker.state();
    let best = thinker.line(None).first().copied();
    let mut order: Vec<usize> = (0..decision.visits.len()).collect();
    // The best line comes first, also among moves of equal visits.
    order.sort_by_key(|&index| {
        let is_best = Some(decision.actions[index]) == best;
        (std::cmp::Reverse((decision.visits[index], is_best)), index)
    });
    let millis = snapshot.elapsed.as_millis().max(1);
    let nodes = thinker.visits();
    let rate = u128::from(nodes) * 1000 / millis;
    let depths = thinker.depths();
    let full = (thinker.counters().bytes_used * 1000 / snapshot.hash_bytes.max(1)).min(1000);
    let mut text = String::new();
    for (number, &index) in order.iter().take(snapshot.multi_pv.max(1)).enumerate() {
        let line = thinker.line(Some(decision.actions[index]));
        let value = decision.values[index].get();
        let _ = write!(
            text,
            "info depth {} seldepth {} multipv {} score ",
            depths.average().round().max(1.0) as u32,
            depths.deepest.max(1),
            number + 1
        );
        let _ = match proven(&line) {
            Some(moves) => write!(text, "mate {moves}"),
            None => write!(text, "cp {}", centipawns(value)),
        };
        if snapshot.show_wdl {
            let [win, draw, loss] = win_draw_loss(value);
            let _ = write!(text, " wdl {win} {draw} {loss}");
        }
        let _ = writeln!(
            text,
            " nodes {nodes} nps {rate} hashfull {full} time {} pv {}",
            snapshot.elapsed.as_millis(),
            uci_line(root, &line).join(" ")
        );
    }
    text
}

/// Returns a line's consecutive moves in UCI notation.
pub fn uci_line(root: &Chess, line: &[Action]) -> Vec<String> {
    let mut state = root.clone();
    line.iter()
        .map(|&action| {
            let text = state.uci(action);
            state.play_legal(action);
            text
        })
        .collect()
}
