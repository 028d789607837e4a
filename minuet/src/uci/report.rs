//! `info` lines: what a search has found so far.

use std::{fmt::Write as _, time::Duration};

use arena::Thinker;
use games::{Action, Game as _, chess::Chess};

use super::score::{centipawns, win_draw_loss};

/// A search at one moment.
pub struct Snapshot<'a> {
    /// The search.
    pub thinker: &'a Thinker<Chess>,
    /// Time since it was asked for.
    pub elapsed: Duration,
    /// Lines wanted.
    pub multi_pv: usize,
    /// Whether chances are shown.
    pub show_wdl: bool,
    /// Largest size of the tree.
    pub hash_bytes: u64,
}

/// The lines, best first, each ended. `proven` says how a line that ends in mate is proven to end.
pub fn lines(snapshot: &Snapshot<'_>, mut proven: impl FnMut(&[Action]) -> Option<i32>) -> String {
    let thinker = snapshot.thinker;
    let decision = thinker.decision();
    let root = thinker.state();
    let best = thinker.line(None).first().copied();
    let mut order: Vec<usize> = (0..decision.visits.len()).collect();
    // The best line comes first, whatever decides between equal numbers of visits.
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

/// Moves as UCI writes them, played one after the other.
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
