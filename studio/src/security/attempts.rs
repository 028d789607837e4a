//! [`Attempts`]: wrong tokens, which are limited for each address and logged.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use parking_lot::Mutex;
use service::log_throttle::LogThrottle;
use tokio::time::Instant;
use tonic::{Code, Status};

/// Time in which an address may send one wrong token, on average.
const PACE: Duration = Duration::from_secs(3);
/// Wrong tokens that an address may send at once.
const AT_ONCE: u32 = 10;
/// Most addresses whose wrong tokens are counted apart. The others are counted together.
const ADDRESSES: usize = 4096;

/// Counts wrong tokens by address.
#[derive(Debug, Default)]
pub struct Attempts {
    counts: Mutex<Counts>,
    log: LogThrottle,
}

#[derive(Debug, Default)]
struct Counts {
    /// Moment at which the wrong tokens of an address are forgotten. Each one moves it by [`PACE`].
    forgotten: HashMap<Option<IpAddr>, Instant>,
    /// Wrong tokens since the last line of the log, those that were not checked included.
    unlogged: u64,
}

impl Attempts {
    /// Calls `check`, unless the address has sent too many wrong tokens.
    ///
    /// # Errors
    /// The status of `check`; RESOURCE_EXHAUSTED without a check, with the time to wait.
    pub fn check(
        &self,
        from: Option<IpAddr>,
        check: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Status> {
        let mut counts = self.counts.lock();
        let now = Instant::now();
        let from = from.map(network);
        if counts.forgotten.len() >= ADDRESSES {
            counts.forgotten.retain(|_, at| *at > now);
        }
        let is_counted = counts.forgotten.len() < ADDRESSES || counts.forgotten.contains_key(&from);
        let from = from.filter(|_| is_counted);
        let until = counts.forgotten.get(&from).map_or(now, |at| now.max(*at));
        let surplus = (until + PACE).saturating_duration_since(now + AT_ONCE * PACE);
        let checked = match surplus.is_zero() {
            true => check(),
            false => Err(Status::resource_exhausted(format!(
                "Too many wrong tokens came from this address; try again in {} seconds.",
                surplus.as_secs() + 1
            ))),
        };
        match checked.as_ref().map_err(Status::code) {
            Err(Code::Unauthenticated) => drop(counts.forgotten.insert(from, until + PACE)),
            Err(Code::ResourceExhausted) => {}
            _ => return checked,
        }
        counts.unlogged += 1;
        if self.log.allows() {
            let tokens = std::mem::take(&mut counts.unlogged);
            tracing::warn!(tokens, last_from = ?from, "wrong tokens were refused since the last such line");
        }
        checked
    }
}

/// An IPv4 address, or the first 64 bits of an IPv6 address: one client usually has all addresses of that prefix.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_sends_few_wrong_tokens_and_no_other_address_notices() {
        let attempts = Attempts::default();
        let wrong = || Err(Status::unauthenticated("wrong"));
        let from = |text: &str| Some(text.parse().unwrap());
        let code = |from, answer: &dyn Fn() -> Result<(), Status>| {
            attempts.check(from, answer).map_err(|status| status.code())
        };
        for _ in 0..AT_ONCE {
            assert_eq!(code(from("2001:db8::1"), &wrong), Err(Code::Unauthenticated));
        }
        // Not even the right token is checked, from the whole network.
        assert_eq!(
            code(from("2001:db8::2"), &|| Ok(())),
            Err(Code::ResourceExhausted)
        );
        assert_eq!(code(from("192.0.2.1"), &|| Ok(())), Ok(()));
        tokio::time::advance(PACE).await;
        assert_eq!(code(from("2001:db8::2"), &|| Ok(())), Ok(()));
        assert_eq!(code(from("2001:db8::2"), &wrong), Err(Code::Unauthenticated));
        assert_eq!(code(from("2001:db8::2"), &wrong), Err(Code::ResourceExhausted));
        // With many addresses the count stays small, and those that are not counted alone are limited together.
        for number in 0..2 * ADDRESSES as u32 {
            drop(attempts.check(Some(IpAddr::from(number.to_be_bytes())), wrong));
        }
        assert!(attempts.counts.lock().forgotten.len() <= ADDRESSES + 1);
        assert_eq!(code(from("192.0.2.9"), &wrong), Err(Code::ResourceExhausted));
    }
}
