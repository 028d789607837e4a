//! Deadline of a call, from gRPC's header `grpc-timeout` (at most eight digits and a unit).

use std::time::Duration;

use tokio::time::Instant;
use tonic::Request;

const HEADER: &str = "grpc-timeout";
const MOST_DIGITS: usize = 8;
/// Time by which a call is answered before its deadline. At the deadline the transport, which watches the same header, ends the
/// call with CANCELLED, and the runtime's timers tick in milliseconds.
const AHEAD: Duration = Duration::from_millis(2);

/// Returns the time by which a call that has just arrived must be answered; `None` if the client sets no deadline.
pub(crate) fn of<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get(HEADER)?.to_str().ok()?;
    let time = read(text)?;
    Instant::now().checked_add(time.saturating_sub(AHEAD).max(time / 2))
}

fn read(text: &str) -> Option<Duration> {
    let unit = text.char_indices().next_back()?;
    let digits = text.get(..unit.0)?;
    if digits.len() > MOST_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit.1 {
        'H' => Duration::from_secs(3600 * number),
        'M' => Duration::from_secs(60 * number),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_nothing_else() {
        let says = |text: &str| read(text).map(|time| time.as_nanos());
        for (text, nanos) in [
            ("2H", 7_200_000_000_000),
            ("3M", 180_000_000_000),
            ("4S", 4_000_000_000),
            ("50m", 50_000_000),
            ("60u", 60_000),
            ("70n", 70),
            ("99999999H", 359_999_996_400_000_000_000),
        ] {
            assert_eq!(says(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "S",
            "1",
            "-1S",
            "+1S",
            "1.5S",
            "100000000n",
            "1s",
            "1µ",
            "1 S",
        ] {
            assert_eq!(says(text), None, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_before_the_transport_gives_up_on_it() {
        let after = |text: &'static str| {
            let mut request = Request::new(());
            request.metadata_mut().insert(HEADER, text.parse().unwrap());
            of(&request).map(|deadline| (deadline - Instant::now()).as_micros())
        };
        assert_eq!(after("1S"), Some(998_000));
        assert_eq!(after("2m"), Some(1_000));
        assert_eq!(after("soon"), None);
        assert_eq!(of(&Request::new(())), None);
    }
}
