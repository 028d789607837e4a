//! [`Target`]: the peer of a link, and the settings of every connection.

use std::{net::IpAddr, time::Duration};

use config::{Plaintext, SecurityConfig};
use tonic::transport::{Endpoint, Uri};

use crate::security::{
    SecurityError,
    tls::{ClientFiles, ClientPem},
};

/// HTTP/2 flow-control window of one stream, in bytes: room for several full requests in flight.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// HTTP/2 flow-control window of one connection, in bytes.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Time without an answer to a keep-alive ping after which the connection is closed.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Error: an address is malformed, or cannot be used with the settings of `[security]`.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct AddressError {
    /// The fault in a sentence.
    what: String,
    /// Error of the URI parser or of the TLS library, if there is one.
    source: Option<tonic::transport::Error>,
}

impl AddressError {
    pub(super) fn malformed(address: &str, source: Option<tonic::transport::Error>) -> Self {
        Self {
            what: format!("`{address}` is not an address; write host:port"),
            source,
        }
    }
}

impl From<SecurityError> for AddressError {
    fn from(error: SecurityError) -> Self {
        Self {
            what: error.0,
            source: None,
        }
    }
}

/// The peer of a link: address and security settings.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    tls: Option<ClientFiles>,
    server_name: String,
}

impl Target {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError`] if the address or the settings cannot be used.
    pub(super) fn new(address: &str, security: &SecurityConfig) -> Result<Self, AddressError> {
        let (scheme, rest) = address
            .split_once("://")
            .map_or((None, address), |(scheme, rest)| (Some(scheme), rest));
        let none = || AddressError::malformed(address, None);
        let uri: Uri = format!("http://{rest}").parse().map_err(|_| none())?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(none)?
            .to_owned();
        let files = ClientFiles::of(security);
        let (tls, default_port) = match scheme {
            Some("https") if files.is_none() => {
                let what = format!(
                    "{address} is to be reached by TLS, but security.ca gives no authority to check its certificate against"
                );
                return Err(SecurityError(what).into());
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
        };
        if target.tls.is_none() && !target.is_local() && security.plaintext == Plaintext::Loopback {
            let what = format!(
                "{address} is another machine, and without security.ca everything would be plaintext; name the authority of its \
                 certificate, or set security.plaintext = \"anywhere\" if the network is trusted"
            );
            return Err(SecurityError(what).into());
        }
        Ok(target)
    }

    /// Returns the IP address; `None` for a host name.
    pub(super) fn ip(&self) -> Option<IpAddr> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().ok()
    }

    fn is_local(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(|ip| ip.to_canonical().is_loopback())
    }

    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Reads authorities, certificate and key, and checks that connections can use them; `None` for plaintext.
    ///
    /// # Errors
    /// [`AddressError`] if a file cannot be used.
    pub(super) fn read(&self) -> Result<Option<ClientPem>, AddressError> {
        let Some(files) = &self.tls else {
            return Ok(None);
        };
        let pem = Some(files.read()?);
        self.endpoint(&self.authority(), pem.as_ref())?;
        Ok(pem)
    }

    /// Reads the files again, as [`Target::read`] does. Changed files with an expired certificate are an error.
    ///
    /// # Errors
    /// [`AddressError`] if a file cannot be used.
    pub(super) fn read_again(&self, before: &Option<ClientPem>) -> Result<Option<ClientPem>, AddressError> {
        let pem = self.read()?;
        if let Some(files) = self.tls.as_ref().filter(|_| pem != *before) {
            files.check_expiry()?;
        }
        Ok(pem)
    }

    /// Returns the endpoint of one server of this peer. It uses TLS with `pem`.
    pub(super) fn endpoint(
        &self,
        authority: &str,
        pem: Option<&ClientPem>,
    ) -> Result<Endpoint, AddressError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let refused = |source| AddressError::malformed(authority, Some(source));
        let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}")).map_err(refused)?;
        let endpoint = settings(endpoint);
        let endpoint = match pem {
            None => endpoint,
            Some(pem) => endpoint
                .tls_config(pem.config(&self.server_name))
                .map_err(|source| AddressError {
                    what: format!("the certificates of [security] cannot be used for {authority}"),
                    source: Some(source),
                })?,
        };
        // The request carries the host name, not the server's IP address.
        match format!("{scheme}://{}", self.authority()).parse() {
            Ok(origin) => Ok(endpoint.origin(origin)),
            Err(_) => Err(AddressError::malformed(&self.authority(), None)),
        }
    }
}

/// Applies the settings of every connection.
pub(super) fn settings(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(super::KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}
