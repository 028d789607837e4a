//! Addresses in a configuration: their form, and the ports that two services of one machine would share.

use std::net::Ipv6Addr;

use super::{ConfigError, RunConfig, error::require};

/// Hosts by which a server listens on all addresses of its machine.
const EVERY: [&str; 2] = ["0.0.0.0", "[::]"];
/// Names of the same machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// A port that a role listens on.
struct Listener<'a> {
    role: &'static str,
    /// Full key of the address.
    key: String,
    host: &'a str,
    port: u16,
    /// Host by which other roles reach the role; empty if they do not.
    machine: &'a str,
}

impl Listener<'_> {
    fn is_everywhere(&self) -> bool {
        EVERY.contains(&self.host)
    }

    /// Returns a host name of the machine; empty if it is unknown.
    fn place(&self) -> &str {
        if self.is_everywhere() {
            self.machine
        } else {
            self.host
        }
    }

    /// True if both listeners need one port of one machine. Containers have equal addresses on different machines.
    fn collides(&self, other: &Self) -> bool {
        let is_one_place = !self.place().is_empty() && same_host(self.place(), other.place());
        let is_one_process = self.role == other.role && (self.is_everywhere() || other.is_everywhere());
        self.port == other.port && (is_one_place || is_one_process)
    }
}

fn same_host(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right) || (LOOPBACK.contains(&left) && LOOPBACK.contains(&right))
}

/// Checks the form of every address, and that no two services of one machine have the same port.
///
/// # Errors
/// [`ConfigError`] naming the key, and for a port that is used twice also the other key.
pub(super) fn check(run: &RunConfig) -> Result<(), ConfigError> {
    let (inference, replay) = (&run.inference, &run.replay);
    let reached = [
        reached("inference.address", &inference.address, &inference.listen)?,
        reached("replay.address", &replay.address, &replay.listen)?,
    ];
    require(
        !(same_host(reached[0].0, reached[1].0) && reached[0].1 == reached[1].1),
        "replay.address",
        "is the address of the inference server too; give each its own port",
    )?;
    let [inference_host, replay_host] = reached.map(|(host, _)| host);
    // Whoever reaches a server by loopback is on the same machine.
    let mut local = [inference_host, replay_host].into_iter();
    let local = local.find(|host| LOOPBACK.contains(host)).unwrap_or_default();
    let none = String::new();
    let roles = [
        (
            "inference",
            inference_host,
            [
                &inference.address,
                &inference.listen,
                &inference.metrics,
                &inference.health,
            ],
        ),
        (
            "replay",
            replay_host,
            [&replay.address, &replay.listen, &replay.metrics, &replay.health],
        ),
        (
            "actor",
            local,
            [&none, &none, &run.actor.metrics, &run.actor.health],
        ),
        (
            "learner",
            local,
            [&none, &none, &run.learner.metrics, &run.learner.health],
        ),
        (
            "rating",
            local,
            [&none, &none, &run.rating.metrics, &run.rating.health],
        ),
        (
            "analysis",
            local,
            [
                &run.analysis.address,
                &none,
                &run.analysis.metrics,
                &run.analysis.health,
            ],
        ),
    ];
    let mut listeners: Vec<Listener<'_>> = Vec::new();
    for (role, machine, addresses) in roles {
        // A service listens on `listen` in place of `address`.
        let replaced = usize::from(!addresses[1].is_empty());
        let named = ["address", "listen", "metrics", "health"]
            .into_iter()
            .zip(addresses);
        for (name, address) in named.skip(replaced) {
            if address.is_empty() {
                continue;
            }
            let key = format!("{role}.{name}");
            let (host, port) = host_and_port(&key, address)?;
            let one = Listener {
                role,
                key,
                host,
                port,
                machine,
            };
            if let Some(other) = listeners.iter().find(|other| other.collides(&one)) {
                let reason = format!("has the port {port} of `{}`; give each its own", other.key);
                return Err(ConfigError::of_value(&one.key, reason));
            }
            listeners.push(one);
        }
    }
    Ok(())
}

/// Reads the address by which other roles reach a service. If the service listens elsewhere, a scheme may be in front, which
/// says whether they use TLS.
fn reached<'a>(key: &str, address: &'a str, listen: &str) -> Result<(&'a str, u16), ConfigError> {
    require(!address.is_empty(), key, "must not be empty")?;
    match address.split_once("://") {
        Some(("http" | "https", bare)) if !listen.is_empty() => host_and_port(key, bare),
        _ => host_and_port(key, address),
    }
}

/// Reads `host:port`. An IPv6 address is in brackets.
fn host_and_port<'a>(key: &str, address: &'a str) -> Result<(&'a str, u16), ConfigError> {
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
            !host.is_empty() && host.chars().all(is_letter)
        }
    };
    let parts = address.rsplit_once(':').filter(|(host, _)| is_host(host));
    let read = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = read.ok_or_else(|| {
        ConfigError::of_value(
            key,
            format!("must be host:port, e.g. \"127.0.0.1:50051\" or \"[::1]:50051\", not {address:?}"),
        )
    })?;
    require(port > 0, key, "needs a port from 1 to 65535")?;
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// The message of a configuration with these keys; empty if it is accepted.
    fn said(keys: &[(&str, &str)]) -> String {
        let lines: Vec<String> = keys
            .iter()
            .map(|(key, value)| format!("{key} = {value:?}"))
            .collect();
        let read = parse(&lines.join("\n"));
        read.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for key in [
            "replay.address",
            "inference.listen",
            "actor.metrics",
            "rating.health",
        ] {
            for good in [
                "127.0.0.1:9",
                "[::1]:9",
                "replay-store.example.org:9",
                "my_host:65535",
            ] {
                assert_eq!(said(&[(key, good)]), "", "{key} {good}");
            }
            for wrong in [
                "127.0.0.1",
                "localhost",
                ":9",
                "host:",
                "host:65536",
                "::1:9",
                "[::1]",
                "a b:9",
                "http://h:9",
                "h:0",
            ] {
                let said = said(&[(key, wrong)]);
                assert!(said.starts_with(&format!("`{key}` ")), "{key} {wrong}: {said:?}");
            }
        }
        let tls = [
            ("replay.address", "https://store:443"),
            ("replay.listen", "0.0.0.0:443"),
        ];
        assert_eq!(said(&tls), "");
    }

    #[test]
    fn services_of_one_machine_have_different_ports() {
        let twice: [&[(&str, &str)]; 8] = [
            &[("replay.address", "127.0.0.1:50051")],
            &[("replay.address", "localhost:50051")],
            &[
                ("replay.address", "a:9"),
                ("inference.address", "A:9"),
                ("replay.listen", "0.0.0.0:1"),
            ],
            &[("replay.metrics", "127.0.0.1:50052")],
            &[("replay.metrics", "0.0.0.0:50051")],
            &[("actor.health", "0.0.0.0:50051")],
            &[
                ("learner.metrics", "127.0.0.1:9"),
                ("actor.metrics", "127.0.0.1:9"),
            ],
            &[
                ("learner.metrics", "0.0.0.0:9"),
                ("learner.health", "127.0.0.1:9"),
            ],
        ];
        for keys in twice {
            let said = said(keys);
            assert!(said.contains("give each"), "{keys:?}: {said:?}");
        }
        // Containers: each has its own machine.
        let pages =
            ["inference", "replay", "learner", "actor", "rating"].map(|role| format!("{role}.metrics"));
        let mut keys: Vec<(&str, &str)> = pages.iter().map(|key| (key.as_str(), "0.0.0.0:9100")).collect();
        keys.extend([("inference.address", "server:5"), ("replay.address", "store:5")]);
        keys.extend([("inference.listen", "0.0.0.0:5"), ("replay.listen", "0.0.0.0:5")]);
        assert_eq!(said(&keys), "");
    }
}
