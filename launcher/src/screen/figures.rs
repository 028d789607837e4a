//! Formats numbers for people.

use std::time::Duration;

use indicatif::{BinaryBytes, FormattedDuration, HumanFloatCount};

/// Formats a count with separators: 21,340.
pub fn count(value: f64) -> String {
    format!("{:.0}", HumanFloatCount(value))
}

/// Formats a ratio: 93 %.
pub fn percent(ratio: f64) -> String {
    format!("{:.0} %", 100.0 * ratio)
}

/// Formats a rate; small ones have one decimal: 3.2.
pub fn rate(value: f64) -> String {
    if value.abs() < 10.0 {
        format!("{value:.1}")
    } else {
        count(value)
    }
}

/// Formats a size in bytes: 1.40 GiB.
pub fn bytes(value: u64) -> String {
    BinaryBytes(value).to_string()
}

/// Formats a short time: 1.2 ms.
pub fn short_time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

/// Formats an age: 12 s, 3 min, 2.0 h.
pub fn age(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Formats a time since the start: 01:02:03.
pub fn clock(since: Duration) -> String {
    FormattedDuration(since).to_string()
}

/// Draws a ratio (0 to 1) as a bar of ten characters.
pub fn bar(ratio: f64) -> String {
    let filled = (ratio.clamp(0.0, 1.0) * 10.0).round() as usize;
    format!("{}{}", "█".repeat(filled), "░".repeat(10 - filled))
}

/// Formats a value, or returns a dash if there is none.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".into(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_units() {
        let counts = [
            (0.0, "0"),
            (999.4, "999"),
            (1_000.0, "1,000"),
            (1_234_567.0, "1,234,567"),
        ];
        for (value, text) in counts {
            assert_eq!(count(value), text);
        }
        assert_eq!((rate(3.21), rate(3_210.4)), ("3.2".into(), "3,210".into()));
        assert_eq!(
            (bytes(700), bytes(1 << 20), bytes(3 << 29)),
            ("700 B".into(), "1.00 MiB".into(), "1.50 GiB".into())
        );
        assert_eq!(
            (short_time(2.5e-4), short_time(0.0012), short_time(3.0)),
            ("250 µs".into(), "1.2 ms".into(), "3.0 s".into())
        );
        assert_eq!(
            (age(12.2), age(600.0), age(36_000.0)),
            ("12 s".into(), "10 min".into(), "10.0 h".into())
        );
        assert_eq!(clock(Duration::from_secs(3_723)), "01:02:03");
        assert_eq!(
            (bar(0.0), bar(0.44), bar(7.0)),
            ("░░░░░░░░░░".into(), "████░░░░░░".into(), "██████████".into())
        );
        assert_eq!(or_dash(None::<f64>, percent), "–");
    }
}
