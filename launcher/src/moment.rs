//! Moments in milliseconds since the Unix epoch, as files, pages and messages hold them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Last millisecond of the year 9999. RFC 3339 has no later year.
const LAST: u64 = 253_402_300_799_999;

/// The present moment.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// Time since a moment; zero if it lies in the future.
pub fn age(at_ms: u64) -> Duration {
    Duration::from_millis(now().saturating_sub(at_ms))
}

/// A moment by RFC 3339, to the second. A moment after the year 9999 is given as the last one of that year.
pub fn rfc3339(at_ms: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(at_ms.min(LAST));
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_moment() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_234_567_890_999), "2009-02-13T23:31:30Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(age(u64::MAX), Duration::ZERO);
        assert!(age(0) > Duration::from_secs(1_700_000_000));
    }
}
