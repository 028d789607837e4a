//! Requests in flight: their deadlines, and the delayed ones that will be sent again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use proto::v1::EvaluateRequest;
use tokio::time::Instant;

/// A request of a worker, with the stamp that orders it among the requests of all workers.
#[derive(Clone, Debug)]
pub struct StampedRequest {
    /// The message. Ids ascend within a worker. Shared, because the request is kept until it is answered.
    pub request: Arc<EvaluateRequest>,
    /// Stamp by [`Versions::stamp`](super::Versions::stamp).
    pub stamp: u64,
}

/// The action that is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A request was not answered before its deadline.
    TooLate,
    /// The delayed request with this id is to be sent again.
    SendAgain(u64),
}

/// The requests of one worker that are not answered yet, by id.
#[derive(Debug, Default)]
pub(super) struct Pending {
    requests: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    request: StampedRequest,
    added: Instant,
    /// Deadline for the reply, or, for a delayed request, the time of the next attempt.
    at: Instant,
    is_delayed: bool,
    /// Number of malformed replies.
    malformed: u32,
}

impl Pending {
    pub(super) fn add(&mut self, request: StampedRequest, deadline: Instant) {
        let waiting = Waiting {
            added: Instant::now(),
            at: deadline,
            is_delayed: false,
            malformed: 0,
            request,
        };
        self.requests.insert(waiting.request.request.id, waiting);
    }

    pub(super) fn get(&self, id: u64) -> Option<&StampedRequest> {
        self.requests.get(&id).map(|waiting| &waiting.request)
    }

    /// Removes an answered request and returns the time since it was added.
    pub(super) fn remove(&mut self, id: u64) -> Option<Duration> {
        let waiting = self.requests.remove(&id)?;
        Some(waiting.added.elapsed())
    }

    /// Delays the next attempt of a request.
    pub(super) fn delay(&mut self, id: u64, until: Instant) {
        if let Some(waiting) = self.requests.get_mut(&id) {
            waiting.at = until;
            waiting.is_delayed = true;
        }
    }

    /// Counts a malformed reply to a request and returns their number.
    pub(super) fn count_malformed(&mut self, id: u64) -> u32 {
        self.requests.get_mut(&id).map_or(0, |waiting| {
            waiting.malformed += 1;
            waiting.malformed
        })
    }

    /// Returns a delayed request, which is in flight again from now on.
    pub(super) fn send_again(&mut self, id: u64, deadline: Instant) -> Option<&StampedRequest> {
        let waiting = self.requests.get_mut(&id)?;
        waiting.at = deadline;
        waiting.is_delayed = false;
        Some(&waiting.request)
    }

    /// Returns the requests to send on a new stream: all but the delayed ones, in ascending order of their ids.
    pub(super) fn restart(&mut self, deadline: Instant) -> Vec<StampedRequest> {
        let mut requests: Vec<StampedRequest> = self
            .requests
            .values_mut()
            .filter(|waiting| !waiting.is_delayed)
            .map(|waiting| {
                waiting.at = deadline;
                waiting.request.clone()
            })
            .collect();
        requests.sort_by_key(|request| request.request.id);
        requests
    }

    /// Returns the next action and its time. Few requests are in flight, so a linear search is fast enough.
    pub(super) fn next_due(&self) -> Option<(Instant, Due)> {
        let (&id, first) = self.requests.iter().min_by_key(|(_, waiting)| waiting.at)?;
        let due = if first.is_delayed {
            Due::SendAgain(id)
        } else {
            Due::TooLate
        };
        Some((first.at, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(id: u64) -> StampedRequest {
        let request = EvaluateRequest {
            id,
            ..Default::default()
        };
        StampedRequest {
            request: Arc::new(request),
            stamp: id,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_decides_what_is_due() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut pending = Pending::default();
        assert_eq!(pending.next_due(), None);
        for id in 1..=3 {
            pending.add(stamped(id), after(30 + id));
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
        assert_eq!(
            again.iter().map(|request| request.request.id).collect::<Vec<_>>(),
            [2]
        );
        assert_eq!(pending.next_due(), Some((after(50), Due::SendAgain(3))));
        pending.send_again(3, after(70));
        assert_eq!(pending.next_due(), Some((after(60), Due::TooLate)));
        assert_eq!((pending.count_malformed(3), pending.count_malformed(3)), (1, 2));
    }
}
