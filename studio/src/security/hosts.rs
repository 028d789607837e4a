//! [`Hosts`]: names by which the studio may be asked.

use std::{net::IpAddr, sync::Arc};

use axum::http::{HeaderMap, Uri, header, uri::Authority};

/// Names under which this machine is asked from itself, or through a forwarded port.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Names by which the studio may be asked. Ports do not matter: a forwarded port has another number, and a stranger's page cannot
/// choose the name.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Names in addition to those of this machine.
    names: Arc<[String]>,
    /// True if an address may replace a name. An address in digits cannot be made to point elsewhere.
    takes_addresses: bool,
}

impl Hosts {
    /// The names of this machine, and these names; and every address in digits, if `takes_addresses`.
    pub fn new(names: &[String], takes_addresses: bool) -> Self {
        Self {
            names: names.into(),
            takes_addresses,
        }
    }

    /// True if the request has one `Host`, which is one of the names.
    pub fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        host.to_str().is_ok_and(|host| self.know(host))
            && uri
                .authority()
                .is_none_or(|authority| self.know(authority.as_str()))
    }

    /// Text for a request that names another host.
    pub fn refusal(&self) -> &'static str {
        match self.takes_addresses {
            false => "This address is refused: use http://127.0.0.1 or http://localhost, with the port.\n",
            true => "This address is refused: its name was not given with `minuet studio --name HOST`.\n",
        }
    }

    fn know(&self, authority: &str) -> bool {
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        };
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        LOCAL.into_iter().any(is)
            || self.names.iter().any(|known| is(known))
            || (self.takes_addresses && bare.unwrap_or(name).parse::<IpAddr>().is_ok())
    }
}

/// Reads a host name, which has no port.
///
/// # Errors
/// A sentence, if the text is not a host name.
pub fn host_name(text: &str) -> Result<String, &'static str> {
    let fault = "write the name of a host alone, e.g. studio.example.org";
    let authority: Authority = text.parse().map_err(|_| fault)?;
    match authority.host() == text {
        true => Ok(text.to_owned()),
        false => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn allows(hosts: &Hosts, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
        hosts.allow(&Uri::from_static("/"), &headers)
    }

    /// Names that are never known.
    const STRANGERS: [&str; 8] = [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:7070",
        "evil.example:127.0.0.1",
        "localhost:",
        "localhost@evil.example",
        "127.0.0.1:7070:1",
    ];

    #[test]
    fn only_names_of_this_machine_are_known() {
        let hosts = Hosts::new(&[], false);
        for host in [
            "localhost",
            "LOCALHOST:7070",
            "127.0.0.1:1",
            "[::1]:7070",
            "[::1]",
        ] {
            assert!(allows(&hosts, host), "{host}");
        }
        for host in STRANGERS
            .into_iter()
            .chain(["0.0.0.0:7070", "192.0.2.7:7070", "studio.example.org"])
        {
            assert!(!allows(&hosts, host), "{host}");
        }
        let root = Uri::from_static("/");
        assert!(!hosts.allow(&root, &HeaderMap::new()));
        let mut two = HeaderMap::new();
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(!hosts.allow(&root, &two));
        let one = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        assert!(!hosts.allow(&Uri::from_static("http://evil.example/"), &one));
    }

    #[test]
    fn beyond_this_machine_given_names_and_addresses_are_known() {
        let hosts = Hosts::new(&["studio.example.org".into()], true);
        for host in [
            "studio.example.org",
            "Studio.example.org:7070",
            "192.0.2.7:7070",
            "[2001:db8::7]:7070",
            "localhost",
        ] {
            assert!(allows(&hosts, host), "{host}");
        }
        for host in STRANGERS
            .into_iter()
            .chain(["example.org", "a.studio.example.org"])
        {
            assert!(!allows(&hosts, host), "{host}");
        }
    }

    #[test]
    fn a_name_has_no_port_and_no_scheme() {
        assert_eq!(host_name("studio.example.org").unwrap(), "studio.example.org");
        for text in [
            "",
            "studio:7070",
            "https://studio",
            "a b",
            "user@studio",
            "studio/",
        ] {
            assert!(host_name(text).is_err(), "{text}");
        }
    }
}
