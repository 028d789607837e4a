//! Accepting connections from a listening socket. Errors such as a lack of descriptors are waited out.

use std::{io, time::Duration};

use metrics::{Counter, counter};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::{backoff::Backoff, log_throttle::LogThrottle};

/// Delays after errors of `accept`.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Interval between two log lines about errors of `accept`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A listening socket.
pub(crate) struct Acceptor {
    listener: TcpListener,
    backoff: Backoff,
    log: LogThrottle,
    errors: Counter,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY, 0),
            log: LogThrottle::new(LOG_INTERVAL),
            errors: counter!("minuet_server_accept_errors_total"),
        }
    }

    /// Returns the next connection.
    pub(crate) async fn next(&mut self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.backoff.reset();
                    return stream;
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    self.errors.increment(1);
                    if self.log.allows() {
                        tracing::warn!(%error, "cannot accept connections; trying again");
                    }
                    sleep(self.backoff.next_delay()).await;
                }
            }
        }
    }
}

/// True if the client has gone before its connection was accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
