//! Interval of a share: [`wilson`].

use super::estimate::Z;

/// Interval of the share `count / all` by Wilson (1927), 95 %. Without observations it is `[0, 1]`.
pub fn wilson(count: u64, all: u64) -> [f64; 2] {
    if all == 0 {
        return [0.0, 1.0];
    }
    let (count, all) = (count as f64, all as f64);
    let (share, square) = (count / all, Z * Z / all);
    let middle = share + square / 2.0;
    let half = (share * (1.0 - share) * square + square * square / 4.0).sqrt();
    [middle - half, middle + half].map(|end| (end / (1.0 + square)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the formula from Brown, Cai and DasGupta (2001): 0 of 10 and 5 of 10.
    #[test]
    fn the_interval_is_that_of_wilson() {
        for (count, all, expected) in [
            (0, 10, [0.0, 0.2775]),
            (5, 10, [0.2366, 0.7634]),
            (0, 0, [0.0, 1.0]),
        ] {
            let found = wilson(count, all);
            let mut both = found.iter().zip(expected);
            assert!(
                both.all(|(found, expected)| (found - expected).abs() < 5e-4),
                "{found:?}"
            );
        }
    }
}
