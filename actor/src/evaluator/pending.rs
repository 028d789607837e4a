//! Requests in flight: when each must be answered, and which wait to be sent again.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::Ask;

/// What is to be done at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A request was not answered in time.
    TooLate,
    /// A request that was put off is to be sent again.
    SendAgain(u64),
}

#[derive(Debug, Default)]
pub(super) struct Pending {
    requests: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ask: Ask,
    asked: Instant,
    /// When it must be answered, or sent again if it was put off.
    at: Instant,
    is_put_off: bool,
    malformed: u32,
}

impl Pending {
    pub(super) fn add(&mut self, ask: Ask, deadline: Instant) {
        let waiting = Waiting {
            asked: Instant::now(),
            at: deadline,
            is_put_off: false,
            malformed: 0,
            ask,
        };
        self.requests.insert(waiting.ask.request.id, waiting);
    }

    pub(super) fn get(&self, id: u64) -> Option<&Ask> {
        self.requests.get(&id).map(|waiting| &waiting.ask)
    }

    /// The request is answered; how long that took.
    pub(super) fn remove(&mut self, id: u64) -> Option<Duration> {
        let waiting = self.requests.remove(&id)?;
        Some(waiting.asked.elapsed())
    }

    /// Puts a request off until a later moment.
    pub(super) fn delay(&mut self, id: u64, until: Instant) {
        if let Some(waiting) = self.requests.get_mut(&id) {
            waiting.at = until;
            waiting.is_put_off = true;
        }
    }

    /// How many answers to this request made no sense, this one included.
    pub(super) fn count_malformed(&mut self, id: u64) -> u32 {
        self.requests.get_mut(&id).map_or(0, |waiting| {
            waiting.malformed += 1;
            waiting.malformed
        })
    }

    /// A request that was put off is in flight again.
    pub(super) fn send_again(&mut self, id: u64, deadline: Instant) -> Option<&Ask> {
        let waiting = self.requests.get_mut(&id)?;
        waiting.at = deadline;
        waiting.is_put_off = false;
        Some(&waiting.ask)
    }

    /// A new stream begins: what was on its way is in flight again, in the order in which it was asked. What was put off still is.
    pub(super) fn restart(&mut self, deadline: Instant) -> Vec<Ask> {
        let mut asks: Vec<Ask> = self
            .requests
            .values_mut()
            .filter(|waiting| !waiting.is_put_off)
            .map(|waiting| {
                waiting.at = deadline;
                waiting.ask.clone()
            })
            .collect();
        asks.sort_by_key(|ask| ask.request.id);
        asks
    }

    /// What is to be done next, and when. Few requests are in flight, so looking at all is fine.
    pub(super) fn next_due(&self) -> Option<(Instant, Due)> {
        let (&id, first) = self.requests.iter().min_by_key(|(_, waiting)| waiting.at)?;
        let due = if first.is_put_off {
            Due::SendAgain(id)
        } else {
            Due::TooLate
        };
        Some((first.at, due))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::v1::EvaluateRequest;

    use super::*;

    fn ask(id: u64) -> Ask {
        let request = EvaluateRequest {
            id,
            ..Default::default()
        };
        Ask {
            request: Arc::new(request),
            stamp: id,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_moment_decides_what_is_due() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut pending = Pending::default();
        assert_eq!(pending.next_due(), None);
        for id in 1..=3 {
            pending.add(ask(id), after(30 + id));
        }
        assert_eq!(pending.next_due(), Some((after(31), Due::TooLate)));
        pending.delay(2, after(5));
        assert_eq!(pending.next_due(), Some((after(5), Due::SendAgain(2))));
        assert_eq!(pending.send_again(2, after(35)).unwrap().request.id, 2);
        assert_eq!(pending.next_due(), Some((after(31), Due::TooLate)));

        pending.delay(3, after(50));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(pending.remove(1), Some(Duration::from_secs(2)));
        let again = pending.restart(after(60));
        assert_eq!(again.iter().map(|ask| ask.request.id).collect::<Vec<_>>(), [2]);
        assert_eq!(pending.next_due(), Some((after(50), Due::SendAgain(3))));
        pending.send_again(3, after(70));
        assert_eq!(pending.next_due(), Some((after(60), Due::TooLate)));
        assert_eq!((pending.count_malformed(3), pending.count_malformed(3)), (1, 2));
    }
}
