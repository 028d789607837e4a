//! Converts a value in `[-1, 1]` to centipawns and to probabilities of win, draw and loss.

/// Constants of Leela Chess Zero's formula, in common use for networks: a value of 0.5 is 89 centipawns, a certain win 12,780.
const SCALE: f64 = 90.0;
const STEEPNESS: f64 = 1.563_754_189_7;

/// Returns centipawns from the point of view of the player with this `value`.
pub fn centipawns(value: f32) -> i32 {
    let value = f64::from(value.clamp(-1.0, 1.0));
    (SCALE * (STEEPNESS * value).tan()).round() as i32
}

/// Returns probabilities of win, draw and loss in thousandths, which sum to 1000.
///
/// A network with a scalar value gives no probability of a draw. The result is the distribution of greatest entropy with this
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
