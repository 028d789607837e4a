//! Reaching another role: lazily connecting channels that notice a dead peer.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

/// Largest message that a role sends or takes, in bytes. Set it on both sides of every service:
/// tonic's own limit for received messages is 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// HTTP/2 flow-control window of one stream, in bytes: several full requests may be on their way.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// HTTP/2 flow-control window of one connection, in bytes.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// A peer that is silent for this long is asked for a sign of life.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A peer that gives no sign of life for this long is gone.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An address that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` is no address; write host:port")]
pub struct AddressError {
    /// What was given.
    pub address: String,
    /// What is wrong with it.
    #[source]
    pub source: tonic::transport::Error,
}

/// A channel to `address` (`host:port`, or with `http://` before it). It connects when it is first used,
/// and again whenever the connection was lost; calls fail with UNAVAILABLE meanwhile. Cloning shares it.
///
/// # Errors
/// [`AddressError`] for an address that is none. A peer that is away is not an error here.
pub fn channel(address: &str) -> Result<Channel, AddressError> {
    Ok(endpoint(address)?.connect_lazy())
}

/// The settings of [`channel`], for those who connect in another way.
///
/// # Errors
/// [`AddressError`] for an address that is none.
pub fn endpoint(address: &str) -> Result<Endpoint, AddressError> {
    let refused = |source| AddressError {
        address: address.into(),
        source,
    };
    let uri = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let endpoint = Endpoint::from_shared(uri).map_err(refused)?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}
