//! Reaching another role: lazily connecting links that notice a dead peer, over TLS or plaintext, with a token where one is
//! needed, spread over all servers that a name stands for ([`balance`]).

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

/// Largest message that a role sends or takes, in bytes. Set it on both sides of every service:
/// tonic's own limit for received messages is 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// HTTP/2 flow-control window of one stream, in bytes: several full requests may be on their way.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// HTTP/2 flow-control window of one connection, in bytes.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// A peer that is silent for this long is asked for a sign of life, where no configuration says otherwise.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A peer that gives no sign of life for this long is gone.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel that sends the token it was given, if any. Cloning shares the connections.
pub type Link = InterceptedService<Channel, Credentials>;

/// An address that cannot be one, or not be reached as `[security]` has it.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Not an address.
    #[error("`{address}` is no address; write host:port")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        #[source]
        source: tonic::transport::Error,
    },
    /// An address without a host.
    #[error("`{0}` is no address; write host:port")]
    NoHost(String),
    /// Keys, certificates, tokens, or plaintext where it is not allowed.
    #[error(transparent)]
    Security(#[from] SecurityError),
}

/// A channel to `address` (`host:port`, or with `http://` before it) in plaintext and without a token, for peers of the same
/// machine and tests. It connects when it is first used, and again whenever the connection was lost; calls fail with
/// UNAVAILABLE meanwhile. Cloning shares it.
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

/// A link to `address` as `[security]` says: see [`Connector::link`]. Call it within a runtime.
///
/// # Errors
/// [`AddressError`]. A peer that is away is not an error here.
pub fn link(address: &str, security: &SecurityConfig) -> Result<Link, AddressError> {
    Connector::new(security).link(address)
}

/// How servers are reached.
#[derive(Clone, Debug)]
pub struct Connector {
    security: SecurityConfig,
    resolver: Arc<dyn Resolve>,
    pace: balance::Pace,
}

impl Connector {
    /// As `[security]` says, with the system's resolver.
    pub fn new(security: &SecurityConfig) -> Self {
        Self {
            security: security.clone(),
            resolver: Arc::new(SystemResolver),
            pace: balance::Pace::default(),
        }
    }

    /// With another resolver, asked at another pace.
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>, pace: balance::Pace) -> Self {
        self.resolver = resolver;
        self.pace = pace;
        self
    }

    /// A link to `address`: `host:port`, or with `https://` or `http://` before it; without either, TLS is spoken where
    /// `security.ca` is given. A name may stand for several servers: calls are spread over them, and it is looked up again from
    /// time to time. Call it within a runtime.
    ///
    /// # Errors
    /// [`AddressError`]. A peer that is away is not an error here.
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

/// Whom a link is for.
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
        // What cannot be read is said now, and not by every call.
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

    /// One of its servers. Certificates are read anew.
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
        // Whatever address it has, it is asked as the name it was looked for.
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
    async fn plaintext_is_spoken_on_loopback_only_unless_asked_for() {
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
    async fn what_is_no_address_is_said_at_once() {
        for address in ["", "localhost", ":50051", "ftp://localhost:1", "local host:1"] {
            let refused = link(address, &SecurityConfig::default()).unwrap_err().to_string();
            assert!(refused.contains("write host:port"), "{address}: {refused}");
        }
    }
}
