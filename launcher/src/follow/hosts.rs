//! [`Hosts`]: the processes of a run in containers, found by name.
//!
//! In Compose and in Kubernetes (headless services) the name of a role resolves to the address of every container of that role.

use std::net::{IpAddr, SocketAddr};

use config::{ConfigError, RunConfig};
use service::role::Role;

use crate::run::addresses::Member;

/// The roles of a run, and the addresses at which their names were found.
#[derive(Debug)]
pub struct Hosts {
    roles: Vec<RoleHosts>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct RoleHosts {
    role: Role,
    port: u16,
    /// Addresses at the last look-up that found some.
    addresses: Vec<IpAddr>,
}

impl Hosts {
    /// The roles of a run, whose metrics pages have the ports that `config` gives them.
    ///
    /// # Errors
    /// [`ConfigError`] with the key of a role that has no metrics page.
    pub fn of(config: &RunConfig) -> Result<Self, ConfigError> {
        let roles = [
            Role::InferenceServer,
            Role::ReplayStore,
            Role::Learner,
            Role::Actor,
            Role::Rating,
        ];
        let roles = roles.into_iter().map(|role| {
            let port = role.metrics(config).rsplit_once(':');
            let port = port.and_then(|(_, port)| port.parse().ok()).ok_or_else(|| {
                let reason = "must be an address with a port: the figures come from there";
                ConfigError::of_value(role.metrics_key(), reason)
            })?;
            Ok(RoleHosts {
                role,
                port,
                addresses: Vec::new(),
            })
        });
        Ok(Self {
            roles: roles.collect::<Result<_, ConfigError>>()?,
            members: Vec::new(),
        })
    }

    /// Looks up the names of all roles. Returns true if the processes are not those of the last look-up. A role whose name is not
    /// found keeps its last addresses, so that it counts as down.
    pub async fn look_up(&mut self) -> bool {
        for known in &mut self.roles {
            let found = tokio::net::lookup_host((known.role.name(), known.port)).await;
            let mut found: Vec<IpAddr> = found.into_iter().flatten().map(|address| address.ip()).collect();
            found.sort();
            found.dedup();
            if !found.is_empty() {
                known.addresses = found;
            }
        }
        let members: Vec<Member> = self.roles.iter().flat_map(RoleHosts::members).collect();
        let is_changed = members != self.members;
        self.members = members;
        is_changed
    }

    /// The processes at the last look-up.
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

impl RoleHosts {
    /// The role's processes. Roles with replicas are named by address, so that a replica keeps its name when others come and go.
    fn members(&self) -> Vec<Member> {
        let name = self.role.name();
        let at = |address: &IpAddr| Some(SocketAddr::new(*address, self.port));
        let member = |name: String, metrics| Member {
            name,
            role: self.role,
            metrics,
        };
        match (self.role, self.addresses.first()) {
            // Not every run has this role.
            (Role::Rating, None) => Vec::new(),
            (_, None) => vec![member(name.into(), None)],
            (Role::Actor | Role::InferenceServer, Some(_)) => {
                let addresses = self.addresses.iter();
                addresses
                    .map(|address| member(format!("{name}-{address}"), at(address)))
                    .collect()
            }
            (_, Some(first)) => vec![member(name.into(), at(first))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RunConfig {
        let mut config = RunConfig::default();
        for address in [
            &mut config.inference.metrics,
            &mut config.replay.metrics,
            &mut config.learner.metrics,
            &mut config.actor.metrics,
            &mut config.rating.metrics,
        ] {
            *address = "0.0.0.0:9100".into();
        }
        config
    }

    #[test]
    fn replicas_are_named_by_address_and_a_role_that_is_not_found_is_kept() {
        let mut hosts = Hosts::of(&config()).unwrap();
        let actors = hosts
            .roles
            .iter_mut()
            .find(|known| known.role == Role::Actor)
            .unwrap();
        actors.addresses = vec![[10, 0, 0, 5].into(), [10, 0, 0, 9].into()];
        let members: Vec<Member> = hosts.roles.iter().flat_map(RoleHosts::members).collect();
        let names: Vec<(&str, bool)> = members
            .iter()
            .map(|member| (member.name.as_str(), member.metrics.is_some()))
            .collect();
        assert_eq!(
            names,
            [
                ("inference-server", false),
                ("replay-store", false),
                ("learner", false),
                ("actor-10.0.0.5", true),
                ("actor-10.0.0.9", true),
            ]
        );
    }

    #[test]
    fn a_role_without_a_metrics_page_is_refused_by_its_key() {
        let mut config = config();
        config.learner.metrics = String::new();
        let error = Hosts::of(&config).unwrap_err().to_string();
        assert!(error.contains("`learner.metrics`"), "{error}");
    }
}
