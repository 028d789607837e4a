//! Connections to other roles: links connect when first used, detect a dead peer, use TLS or plaintext, send the client's
//! token, spread calls over all servers of a host name, and use renewed certificates and tokens ([`balance`], [`credentials`]).

pub mod balance;
pub mod credentials;
mod target;

use std::{sync::Arc, time::Duration};

use tonic::{
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};

use balance::{Resolve, SystemResolver};
use config::SecurityConfig;
use credentials::Credentials;
pub use target::{AddressError, CONNECTION_WINDOW_BYTES, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW_BYTES};
use target::{Target, settings};

/// Largest size of a message, in bytes. Set it on both sides of every service, because tonic's default limit for received
/// messages is 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Time without traffic after which a keep-alive ping is sent.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A channel that sends the client's token, if there is one. Clones share the connections.
pub type Link = InterceptedService<Channel, Credentials>;

/// Returns a plaintext channel without a token to `address` (`host:port` or `http://host:port`), for peers on this machine and
/// for tests. The channel connects when first used and reconnects after a loss; calls fail with UNAVAILABLE meanwhile. Clones
/// share the connection.
///
/// # Errors
/// [`AddressError`] if the address is malformed. An unreachable peer is not an error.
pub fn channel(address: &str) -> Result<Channel, AddressError> {
    Ok(endpoint(address)?.connect_lazy())
}

/// Returns the endpoint that [`channel`] connects to, with all its settings.
///
/// # Errors
/// [`AddressError`] if the address is malformed.
pub fn endpoint(address: &str) -> Result<Endpoint, AddressError> {
    let refused = |source| AddressError::malformed(address, Some(source));
    let uri = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let endpoint = Endpoint::from_shared(uri).map_err(refused)?;
    Ok(settings(endpoint))
}

/// Returns a link to `address` with the settings of `[security]`, like [`Connector::link`]. Call it within a runtime.
///
/// # Errors
/// [`AddressError`] if the address or the settings cannot be used. An unreachable peer is not an error.
pub fn link(address: &str, security: &SecurityConfig) -> Result<Link, AddressError> {
    Connector::new(security).link(address)
}

/// Makes links to servers, with the settings of `[security]` and a resolver of host names.
#[derive(Clone, Debug)]
pub struct Connector {
    security: SecurityConfig,
    resolver: Arc<dyn Resolve>,
    pace: balance::Pace,
}

impl Connector {
    /// Makes a connector with the settings of `[security]` and the system's resolver.
    pub fn new(security: &SecurityConfig) -> Self {
        Self {
            security: security.clone(),
            resolver: Arc::new(SystemResolver),
            pace: balance::Pace::default(),
        }
    }

    /// Replaces the resolver and its intervals.
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>, pace: balance::Pace) -> Self {
        self.resolver = resolver;
        self.pace = pace;
        self
    }

    /// Returns a link to `address`: `host:port`, `https://host:port` or `http://host:port`. Without a scheme the link uses
    /// TLS if `security.ca` is given. If the host name resolves to several servers, calls are spread over them, and the name
    /// is resolved again at intervals. Certificates, authorities and the token are read again at intervals. Call it within a
    /// runtime.
    ///
    /// # Errors
    /// [`AddressError`] if the address or the settings cannot be used. An unreachable peer is not an error.
    pub fn link(&self, address: &str) -> Result<Link, AddressError> {
        let target = Target::new(address, &self.security)?;
        let credentials = Credentials::new(&self.security, self.pace.resolve)?;
        // Reports an unusable file now instead of with every call.
        let pem = target.read()?;
        let channel = if target.ip().is_some() && pem.is_none() {
            target.endpoint(&target.authority(), None)?.connect_lazy()
        } else {
            balance::channel(target, pem, self.resolver.clone(), self.pace)
        };
        Ok(InterceptedService::new(channel, credentials))
    }
}

#[cfg(test)]
mod tests {
    use config::Plaintext;

    use super::*;

    #[tokio::test]
    async fn plaintext_is_allowed_on_loopback_only_by_default() {
        let closed = SecurityConfig::default();
        for address in ["127.0.0.1:1", "localhost:1", "[::1]:1", "http://127.0.0.5:1"] {
            assert!(link(address, &closed).is_ok(), "{address}");
        }
        for address in ["10.0.0.1:1", "inference:50051", "http://example.com"] {
            let refused = link(address, &closed).unwrap_err().to_string();
            assert!(refused.contains("security.plaintext = \"anywhere\""), "{refused}");
            let open = SecurityConfig {
                plaintext: Plaintext::Anywhere,
                ..SecurityConfig::default()
            };
            assert!(link(address, &open).is_ok(), "{address}");
        }
        let refused = link("https://127.0.0.1:1", &closed).unwrap_err().to_string();
        assert!(refused.contains("security.ca"), "{refused}");
    }

    #[tokio::test]
    async fn a_malformed_address_is_an_error_at_once() {
        for address in ["", "localhost", ":50051", "ftp://localhost:1", "local host:1"] {
            let refused = link(address, &SecurityConfig::default()).unwrap_err().to_string();
            assert!(refused.contains("write host:port"), "{address}: {refused}");
        }
    }
}
