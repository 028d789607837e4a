//! Who is at the other end of a connection, and how to leave it unread for a moment.
//!
//! To refuse a request costs about as much as to answer one of a small network: the socket, HTTP/2 and the message are the same.
//! A connection that is not read meanwhile gathers its next requests in the socket, to be read at once; and a client that
//! sends far more than is taken is held back by TCP itself.

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

/// The other end of a connection; every request of the connection has it.
#[derive(Clone, Debug)]
pub struct Peer {
    address: Option<SocketAddr>,
    /// Milliseconds that the connection is to be left unread from its next read on; 0: none.
    asked: Arc<AtomicU32>,
}

impl Peer {
    pub(super) fn new(address: Option<SocketAddr>) -> Self {
        Self {
            address,
            asked: Arc::default(),
        }
    }

    /// Who sent a request; `None` where the server has another door.
    pub fn of<T>(request: &tonic::Request<T>) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }

    /// Its address, where it is known.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Leaves the connection unread for so long, in whole milliseconds, from its next read on. Answers go out meanwhile.
    pub fn pause(&self, time: Duration) {
        let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.asked.fetch_max(millis, Ordering::Relaxed);
    }
}

/// The connection's side of [`Peer::pause`].
#[derive(Debug, Default)]
pub(super) struct Pause {
    asked: Arc<AtomicU32>,
    sleeping: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    pub(super) fn of(peer: &Peer) -> Self {
        Self {
            asked: peer.asked.clone(),
            sleeping: None,
        }
    }

    /// Ready when the connection may be read.
    pub(super) fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.asked.load(Ordering::Relaxed) > 0 {
            let millis = self.asked.swap(0, Ordering::Relaxed);
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
    async fn the_longest_pause_counts_and_is_kept_once() {
        let peer = Peer::new(None);
        let mut pause = Pause::of(&peer);
        let began = Instant::now();
        let over = async |pause: &mut Pause| poll_fn(|context| pause.poll_over(context)).await;
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for millis in [3, 7, 5] {
            peer.clone().pause(Duration::from_millis(millis));
        }
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        // One that is asked for in the middle of another does not cut that short.
        peer.pause(Duration::from_millis(10));
        assert!(
            poll_fn(|context| Poll::Ready(pause.poll_over(context)))
                .await
                .is_pending()
        );
        peer.pause(Duration::from_millis(2));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(17));
    }
}
