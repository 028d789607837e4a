//! The client of a connection, and pauses in reading from it.
//!
//! Refusing a request costs about as much as answering one with a small network, because the socket, HTTP/2 and the message
//! cost the same. During a pause the next requests gather in the socket and are then read together, and TCP's flow control
//! slows down a client that sends far more than is accepted.

use std::{
    future::Future as _,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// The client of a connection, attached to each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    address: Option<SocketAddr>,
    /// Requested pause in milliseconds, from the connection's next read on; 0 for none.
    requested: Arc<AtomicU32>,
}

impl Peer {
    pub(super) fn new(address: Option<SocketAddr>) -> Self {
        Self {
            address,
            requested: Arc::default(),
        }
    }

    /// Returns the client that sent a request; `None` if the connection was not accepted by this module.
    pub fn of<T>(request: &tonic::Request<T>) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }

    /// Returns the client's address, if it is known.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Stops reading from the connection for `time`, rounded down to milliseconds, from its next read on. Replies are still sent.
    pub fn pause(&self, time: Duration) {
        let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.requested.fetch_max(millis, Ordering::Relaxed);
    }
}

/// The connection's side of [`Peer::pause`].
#[derive(Debug, Default)]
pub(super) struct Pause {
    requested: Arc<AtomicU32>,
    sleeping: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    pub(super) fn of(peer: &Peer) -> Self {
        Self {
            requested: peer.requested.clone(),
            sleeping: None,
        }
    }

    /// Returns ready when the connection may be read.
    pub(super) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.requested.load(Ordering::Relaxed) > 0 {
            let millis = self.requested.swap(0, Ordering::Relaxed);
            let pause = sleep(Duration::from_millis(millis.into()));
            match &mut self.sleeping {
                Some(sleeping) if sleeping.deadline() >= pause.deadline() => {}
                sleeping => *sleeping = Some(Box::pin(pause)),
            }
        }
        if let Some(sleeping) = &mut self.sleeping {
            ready!(sleeping.as_mut().poll(context));
            self.sleeping = None;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_requested_pause_applies_once() {
        let peer = Peer::new(None);
        let mut pause = Pause::of(&peer);
        let began = Instant::now();
        let over = async |pause: &mut Pause| poll_fn(|context| pause.poll_end(context)).await;
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for millis in [3, 7, 5] {
            peer.clone().pause(Duration::from_millis(millis));
        }
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        // A shorter pause requested during another does not end that one early.
        peer.pause(Duration::from_millis(10));
        assert!(
            poll_fn(|context| Poll::Ready(pause.poll_end(context)))
                .await
                .is_pending()
        );
        peer.pause(Duration::from_millis(2));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(17));
    }
}
