//! `info` lines: the current results of a search, with values in centipawns and as probabilities of win, draw and loss.

use std::{fmt::Write as _, time::Duration};

use arena::players::searches::AnySearch;
use games::{Action, Game as _, chess::Chess};

/// Constants of Leela Chess Zero's formula, in common use for networks: a value of 0.5 is 89 centipawns, a certain win 12,780.
const SCALE: f64 = 90.0;
const STEEPNESS: f64 = 1.563_754_189_7;

/// State of a search at one moment, and what to report of it.
pub struct Snapshot<'a> {
    /// State in which the search decides.
    pub root: &'a Chess,
    /// The search.
    pub search: &'a dyn AnySearch,
    /// Time since the search was requested.
    pub elapsed: Duration,
    /// Number of lines to report.
    pub multi_pv: usize,
    /// True if the probabilities of win, draw and loss are reported.
    pub show_wdl: bool,
}

/// Returns the lines, best first, each with a line break. `proven` returns the proven mate distance of a line that ends in
/// mate.
pub fn lines(snapshot: &Snapshot<'_>, mut proven: impl FnMut(&[Action]) -> Option<i32>) -> String {
    let (root, search) = (snapshot.root, snapshot.search);
    let decision = search.decision();
    let best = search.principal_variation(None).first().copied();
    let mut order: Vec<usize> = (0..decision.visits.len()).collect();
    // The best line comes first, also among moves of equal visits.
    order.sort_by_key(|&index| {
        let is_best = Some(decision.actions[index]) == best;
        (std::cmp::Reverse((decision.visits[index], is_best)), index)
    });
    let millis = snapshot.elapsed.as_millis().max(1);
    let nodes = search.visits_done();
    let rate = u128::from(nodes) * 1000 / millis;
    let depths = search.depths();
    let full = (search.counters().bytes_used * 1000 / search.settings().tree_bytes.max(1) as u64).min(1000);
    let mut text = String::new();
    for (number, &index) in order.iter().take(snapshot.multi_pv.max(1)).enumerate() {
        let line = search.principal_variation(Some(decision.actions[index]));
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

/// Returns centipawns from the point of view of the player with this `value`.
pub fn centipawns(value: f32) -> i32 {
    let value = f64::from(value.clamp(-1.0, 1.0));
    (SCALE * (STEEPNESS * value).tan()).round() as i32
}

/// Returns probabilities of win, draw and loss in thousandths, which sum to 1000.
///
/// A network with a scalar value gives no probability of a draw. The result is the distribution of maximum entropy with this
/// mean, `p(r) ∝ zʳ` for the results `r` = 1, 0, -1.
pub fn win_draw_loss(value: f32) -> [u32; 3] {
    let mean = f64::from(value.clamp(-1.0, 1.0));
    if mean >= 1.0 {
        return [1000, 0, 0];
    }
    if mean <= -1.0 {
        return [0, 0, 1000];
    }
    // z - 1/z = mean · (z + 1 + 1/z)
    let z = (mean + (4.0 - 3.0 * mean * mean).sqrt()) / (2.0 * (1.0 - mean));
    let sum = z + 1.0 + 1.0 / z;
    let win = (1000.0 * z / sum).round() as u32;
    let loss = ((1000.0 / z / sum).round() as u32).min(1000 - win);
    [win, 1000 - win - loss, loss]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_points() {
        assert_eq!(centipawns(0.0), 0);
        assert_eq!(centipawns(0.5), 89);
        assert_eq!(centipawns(1.0), 12_780);
        assert_eq!(win_draw_loss(0.0), [333, 334, 333]);
        assert_eq!(win_draw_loss(1.0), [1000, 0, 0]);
        assert_eq!(win_draw_loss(-1.0), [0, 0, 1000]);
    }

    proptest! {
        #[test]
        fn both_are_odd_and_rise_with_the_value(value in -1.0f32..=1.0, more in 0.0f32..=1.0) {
            let more = (value + more).min(1.0);
            prop_assert_eq!(centipawns(value), -centipawns(-value));
            prop_assert!(centipawns(value) <= centipawns(more));
            let [win, draw, loss] = win_draw_loss(value);
            prop_assert_eq!(win + draw + loss, 1000);
            let mean = (f64::from(win) - f64::from(loss)) / 1000.0;
            prop_assert!((mean - f64::from(value)).abs() <= 0.0011, "{value}: {mean}");
            prop_assert!(win <= win_draw_loss(more)[0]);
        }
    }
}
