//! Connections to other roles: links connect when first used, detect a dead peer, use TLS or plaintext, send the client's
//! token, and spread calls over all servers of a host name ([`balance`]).

pub mod balance;
pub mod credentials;

use std::{net::IpAddr, sync::Arc, time::Duration};

use tonic::{
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint, Uri},
};

use crate::security::{SecurityError, tls::ClientFiles};
use balance::{Resolve, SystemResolver};
use config::{Plaintext, SecurityConfig};
use credentials::Credentials;

/// Greatest size of a message, in bytes. Set it on both sides of every service, because tonic's default limit for received
/// messages is 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// HTTP/2 flow-control window of one stream, in bytes: room for several full requests in flight.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// HTTP/2 flow-control window of one connection, in bytes.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Default time without traffic after which a keep-alive ping is sent.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Time without an answer to a keep-alive ping after which the connection is closed.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel that sends the client's token, if there is one. Clones share the connections.
pub type Link = InterceptedService<Channel, Credentials>;

/// Error: an address is malformed, or cannot be used with the settings of `[security]`.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The address is malformed.
    #[error("`{address}` is not an address; write host:port")]
    Address {
        /// The given text.
        address: String,
        /// Error of the URI parser.
        #[source]
        source: tonic::transport::Error,
    },
    /// The address has no host.
    #[error("`{0}` is not an address; write host:port")]
    NoHost(String),
    /// A key, certificate or token cannot be used, or plaintext is not allowed.
    #[error(transparent)]
    Security(#[from] SecurityError),
}

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
    let refused = |source| AddressError::Address {
        address: address.into(),
        source,
    };
    let uri = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let endpoint = Endpoint::from_shared(uri).map_err(refused)?;
    Ok(settings(endpoint, KEEP_ALIVE_INTERVAL))
}

fn settings(endpoint: Endpoint, keep_alive: Duration) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(keep_alive)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
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
    /// is resolved again at intervals. Call it within a runtime.
    ///
    /// # Errors
    /// [`AddressError`] if the address or the settings cannot be used. An unreachable peer is not an error.
    pub fn link(&self, address: &str) -> Result<Link, AddressError> {
        let target = Target::new(address, &self.security)?;
        let credentials = Credentials::new(&self.security)?;
        let channel = if target.is_literal() {
            target.endpoint(&target.authority())?.connect_lazy()
        } else {
            balance::channel(target, self.resolver.clone(), self.pace)
        };
        Ok(InterceptedService::new(channel, credentials))
    }
}

/// The peer of a link: address and security settings.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    tls: Option<ClientFiles>,
    server_name: String,
    keep_alive: Duration,
}

impl Target {
    fn new(address: &str, security: &SecurityConfig) -> Result<Self, AddressError> {
        let (scheme, rest) = address
            .split_once("://")
            .map_or((None, address), |(scheme, rest)| (Some(scheme), rest));
        let none = || AddressError::NoHost(address.to_owned());
        let uri: Uri = format!("http://{rest}").parse().map_err(|_| none())?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(none)?
            .to_owned();
        let files = ClientFiles::of(security);
        let (tls, default_port) = match scheme {
            Some("https") if files.is_none() => {
                let address = address.to_owned();
                return Err(SecurityError::NoAuthority { address }.into());
            }
            Some("https") => (files, Some(443)),
            Some("http") => (None, Some(80)),
            None => (files, None),
            Some(_) => return Err(none()),
        };
        let port = uri.port_u16().or(default_port).ok_or_else(none)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name = if security.server_name.is_empty() {
            bare
        } else {
            security.server_name.clone()
        };
        let target = Self {
            host,
            port,
            tls,
            server_name,
            keep_alive: Duration::from_secs(security.keep_alive_seconds),
        };
        if target.tls.is_none() && !target.is_local() && security.plaintext == Plaintext::Loopback {
            let address = address.to_owned();
            return Err(SecurityError::OpenClient { address }.into());
        }
        // Reports an unreadable file now instead of with every call.
        target.endpoint(&target.authority())?;
        Ok(target)
    }

    fn ip(&self) -> Option<IpAddr> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().ok()
    }

    fn is_literal(&self) -> bool {
        self.ip().is_some()
    }

    fn is_local(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(|ip| ip.to_canonical().is_loopback())
    }

    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the endpoint of one server of this peer. Reads the certificates again.
    pub(crate) fn endpoint(&self, authority: &str) -> Result<Endpoint, AddressError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let refused = |source| AddressError::Address {
            address: authority.into(),
            source,
        };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}")).map_err(refused)?;
        let endpoint = settings(endpoint, self.keep_alive);
        let endpoint = match &self.tls {
            None => endpoint,
            Some(files) => endpoint
                .tls_config(files.read(&self.server_name)?)
                .map_err(refused)?,
        };
        // The request carries the host name, not the server's IP address.
        match format!("{scheme}://{}", self.authority()).parse() {
            Ok(origin) => Ok(endpoint.origin(origin)),
            Err(_) => Err(AddressError::NoHost(self.authority())),
        }
    }
}

#[cfg(test)]
mod tests {
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
