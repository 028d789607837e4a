//! `[security]`: TLS, tokens, and limits of connections.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError,
    error::{at_least, require},
};

/// Settings of every server and every client of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct SecurityConfig {
    /// Servers: certificate chain, a PEM file. Empty: plaintext without TLS.
    pub certificate: PathBuf,
    /// Servers: private key of `certificate`, a PEM file. Required with `certificate`.
    pub key: PathBuf,
    /// Servers: authorities that must have signed a client's certificate (mutual TLS), a PEM file. Empty: clients need no
    /// certificate. Needs `certificate`.
    pub client_ca: PathBuf,
    /// Servers: file of accepted tokens, one per line: name, rights (evaluate, analyze, append, sample, administer; separated by commas),
    /// token or sha256:HEX. Empty: every client that can connect has all rights.
    pub tokens: PathBuf,
    /// Clients: authorities that must have signed a server's certificate, a PEM file (on Debian the system's authorities are in
    /// /etc/ssl/certs/ca-certificates.crt). Empty: plaintext without TLS.
    pub ca: PathBuf,
    /// Clients: certificate for mutual TLS, a PEM file. Empty: none. Needs `ca`.
    pub client_certificate: PathBuf,
    /// Clients: private key of `client_certificate`, a PEM file. Required with `client_certificate`.
    pub client_key: PathBuf,
    /// Clients: host name that a server's certificate must contain. Empty: the host name in the server's address.
    pub server_name: String,
    /// Clients: file with the token sent with each call. Empty: no token.
    pub token: PathBuf,
    /// Connections allowed to be plaintext: `loopback` (within one machine), or `anywhere`, for a network that is trusted or
    /// already encrypted.
    pub plaintext: Plaintext,
    /// Servers: maximum number of connections at the same time, at least 1; half of the process's limit of file descriptors if
    /// that is less. Further connections are closed at once.
    pub max_connections: usize,
    /// Servers: maximum number of connections from one IPv4 address or one IPv6 network of 64 bits, at least 1. Clients behind one
    /// gateway or load balancer count together.
    pub max_connections_per_peer: usize,
    /// Servers: age in seconds at which a connection is closed, so that clients reconnect and use servers that were added later.
    /// 0: never.
    pub max_connection_age_seconds: u64,
}

/// Connections that may be plaintext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plaintext {
    /// Connections within one machine.
    #[default]
    Loopback,
    /// Connections over any network.
    Anywhere,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            client_ca: PathBuf::new(),
            tokens: PathBuf::new(),
            ca: PathBuf::new(),
            client_certificate: PathBuf::new(),
            client_key: PathBuf::new(),
            server_name: String::new(),
            token: PathBuf::new(),
            plaintext: Plaintext::Loopback,
            max_connections: 4096,
            max_connections_per_peer: 1024,
            max_connection_age_seconds: 0,
        }
    }
}

impl SecurityConfig {
    /// Checks that keys which need each other are given together, and that numbers are in range.
    ///
    /// # Errors
    /// [`ConfigError`] that names the first wrong key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let is_given = |path: &Path| !path.as_os_str().is_empty();
        require(
            is_given(&self.certificate) == is_given(&self.key),
            "security.key",
            "must be given together with security.certificate",
        )?;
        require(
            is_given(&self.client_certificate) == is_given(&self.client_key),
            "security.client_key",
            "must be given together with security.client_certificate",
        )?;
        require(
            !is_given(&self.client_ca) || is_given(&self.certificate),
            "security.client_ca",
            "needs security.certificate: without TLS no certificate is shown",
        )?;
        require(
            !is_given(&self.client_certificate) || is_given(&self.ca),
            "security.client_certificate",
            "needs security.ca: without TLS no certificate is shown",
        )?;
        at_least("security.max_connections", self.max_connections, 1)?;
        at_least(
            "security.max_connections_per_peer",
            self.max_connections_per_peer,
            1,
        )
    }

    /// Makes the relative paths absolute: they are relative to the run's folder.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        let paths = [
            &mut self.certificate,
            &mut self.key,
            &mut self.client_ca,
            &mut self.tokens,
            &mut self.ca,
            &mut self.client_certificate,
            &mut self.client_key,
            &mut self.token,
        ];
        super::run::resolve_given(folder, paths);
    }
}
