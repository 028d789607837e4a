//! [`Door`]: the address that the studio serves, and what it demands there.
//!
//! On this machine's own address nothing is demanded. On any other address connections are encrypted, unless the run allows plaintext
//! anywhere, and every request needs a token.

use std::{io, net::SocketAddr};

use anyhow::Context as _;
use config::SecurityConfig;
use futures::Stream;
use service::listener::{Connection, ConnectionPolicy};
use tokio::net::TcpListener;

use super::{gate::Gate, hosts::Hosts};

/// Protection of the studio at its address: TLS, tokens, names of the host.
#[derive(Clone, Debug)]
pub struct Door {
    policy: ConnectionPolicy,
    /// Names by which the studio may be asked.
    pub hosts: Hosts,
    /// The check of tokens; `None` where everybody may do everything.
    pub gate: Option<Gate>,
}

impl Door {
    /// The door at `address`, with the certificate and the tokens of `security` if other machines can reach it. `names` are names by
    /// which browsers may ask, next to those of this machine.
    ///
    /// # Errors
    /// Other machines could reach the door unprotected, or a file of `[security]` cannot be used.
    pub fn at(address: SocketAddr, security: &SecurityConfig, names: &[String]) -> anyhow::Result<Self> {
        if address.ip().to_canonical().is_loopback() {
            return Ok(Self {
                policy: ConnectionPolicy::of_pages(&SecurityConfig::default())?,
                hosts: Hosts::new(names, false),
                gate: None,
            });
        }
        let policy = ConnectionPolicy::of_pages(security)?;
        policy.check(address)?;
        let tokens = policy.tokens().with_context(|| {
            format!(
                "{address} can be reached from other machines, and without security.tokens everybody there could see the run and \
                 play; name a file of tokens in run.toml"
            )
        })?;
        Ok(Self {
            gate: Some(Gate::new(tokens.clone(), policy.has_tls(), address.port())),
            hosts: Hosts::new(names, true),
            policy,
        })
    }

    /// Scheme of the studio's address: `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.policy.has_tls() { "https" } else { "http" }
    }

    /// Accepts connections on `listener`.
    pub(crate) fn connections(
        &self,
        listener: TcpListener,
    ) -> impl Stream<Item = io::Result<Connection>> + Unpin + use<> {
        self.policy.clone().connections(listener)
    }
}
