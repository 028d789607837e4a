//! `[security]`: who may talk to whom, and how much.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of every server and every client of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct SecurityConfig {
    /// Servers: the certificate chain they show, a PEM file. Empty: they speak plaintext.
    pub certificate: PathBuf,
    /// Servers: the private key of `certificate`, a PEM file.
    pub key: PathBuf,
    /// Servers: only clients with a certificate that one of these authorities has signed may connect, a PEM file (mutual
    /// TLS). Empty: any client may.
    pub client_ca: PathBuf,
    /// Servers: a file of tokens, one on a line: name, rights (evaluate, append, sample, administer; with commas between),
    /// token or sha256:HEX. Empty: whoever can connect may do everything.
    pub tokens: PathBuf,
    /// Clients: authorities that servers' certificates are checked against, a PEM file (the system's are in
    /// /etc/ssl/certs/ca-certificates.crt on Debian). Empty: they speak plaintext.
    pub ca: PathBuf,
    /// Clients: the certificate they show, a PEM file. Empty: none.
    pub client_certificate: PathBuf,
    /// Clients: the private key of `client_certificate`, a PEM file.
    pub client_key: PathBuf,
    /// Clients: the name a server's certificate must hold, where that is not the name it is reached by.
    pub server_name: String,
    /// Clients: a file with the token they send. Empty: none.
    pub token: PathBuf,
    /// Where plaintext may be spoken: `loopback` (within one machine), or `anywhere`, for a network that is trusted or
    /// encrypts by itself.
    pub plaintext: Plaintext,
    /// Servers: connections at the same time, at least 1; more are closed at once.
    pub max_connections: usize,
    /// Servers: clients connect anew after about so many seconds, so that they spread over servers that came later. 0: never.
    pub max_connection_age_seconds: u64,
    /// Servers and clients: a peer that is silent for so many seconds is asked for a sign of life, at least 1.
    pub keep_alive_seconds: u64,
}

/// Where plaintext may be spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plaintext {
    /// Within one machine.
    #[default]
    Loopback,
    /// Over any network.
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
            max_connection_age_seconds: 0,
            keep_alive_seconds: 10,
        }
    }
}

impl SecurityConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
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
        require(
            self.max_connections >= 1,
            "security.max_connections",
            "must be at least 1",
        )?;
        require(
            self.keep_alive_seconds >= 1,
            "security.keep_alive_seconds",
            "must be at least 1",
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
        for path in paths {
            if !path.as_os_str().is_empty() {
                *path = folder.join(&*path);
            }
        }
    }
}
