//! [`Prometheus`]: series that a Prometheus recorded, by its HTTP interface.

use std::{collections::BTreeMap, str::FromStr};

use serde::Deserialize;

use crate::page;

/// Largest reply that is read, in bytes.
const LARGEST: usize = 16 << 20;
/// Most points of a series; Prometheus refuses more than 11,000.
const POINTS: u64 = 2_000;
/// Shortest time between two points, in seconds: the learner's own file has a line every ten seconds.
const STEP: u64 = 10;

/// Address of a Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prometheus {
    host: String,
    path: String,
}

impl FromStr for Prometheus {
    type Err = String;

    /// Parses `http://host:port`, perhaps with a path before `/api`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not the address of a Prometheus; write http://host:port");
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, port) = host.rsplit_once(':').ok_or_else(wrong)?;
        if name.is_empty() || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        let path = path.trim_end_matches('/');
        Ok(Self {
            host: host.into(),
            path: if path.is_empty() {
                String::new()
            } else {
                format!("/{path}")
            },
        })
    }
}

#[derive(Deserialize)]
struct Reply {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Matrix>,
}

/// A series: times in seconds, and values as text.
#[derive(Deserialize)]
struct Matrix {
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// Values of a query from `from` to `until`, in seconds since the Unix epoch, by time. The query gives at most one series. `None` if
    /// Prometheus does not answer.
    pub async fn values(&self, query: &str, from: u64, until: u64) -> Option<BTreeMap<u64, f64>> {
        let step = (until.saturating_sub(from) / POINTS).max(STEP);
        // Whole steps, so that all series have the same times.
        let from = from / step * step;
        let path = format!(
            "{}/api/v1/query_range?query={}&start={from}&end={until}&step={step}",
            self.path,
            escaped(query)
        );
        let body = page::get(&self.host, &path, LARGEST).await?;
        let reply: Reply = serde_json::from_slice(&body).ok()?;
        let series = reply.data.result.into_iter().next();
        let values = series.map(|series| series.values).unwrap_or_default();
        let finite = values.into_iter().filter_map(|(at, value)| {
            let value: f64 = value.parse().ok()?;
            value.is_finite().then_some((at as u64, value))
        });
        Some(finite.collect())
    }
}

/// A text with every byte that has a meaning in an address as `%` and two digits.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_wrong_ones_refused() {
        let parsed: Prometheus = "http://prometheus:9090/".parse().unwrap();
        assert_eq!(
            (parsed.host.as_str(), parsed.path.as_str()),
            ("prometheus:9090", "")
        );
        let parsed: Prometheus = "http://[::1]:9090/metrics/".parse().unwrap();
        assert_eq!(
            (parsed.host.as_str(), parsed.path.as_str()),
            ("[::1]:9090", "/metrics")
        );
        for wrong in [
            "prometheus:9090",
            "https://prometheus:9090",
            "http://prometheus",
            "http://:1",
            "http://a:99999",
        ] {
            assert!(wrong.parse::<Prometheus>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(
            escaped(r#"max(a_b{c="d e"})"#),
            "max%28a_b%7Bc%3D%22d%20e%22%7D%29"
        );
    }
}
