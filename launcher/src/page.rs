//! The metrics page of a role: fetched by HTTP and read (Prometheus' text exposition format, version 0.0.4).

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, body::Bytes};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Longest time for a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest page that is read, in bytes.
const LARGEST: usize = 1024 * 1024;

/// The samples of a metrics page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Page {
    /// Fetches the page at `address`; `None` if no page answers there.
    pub async fn fetch(address: SocketAddr) -> Option<Self> {
        let body = get(&address.to_string(), "/metrics", LARGEST).await?;
        Some(Self::parse(&String::from_utf8_lossy(&body)))
    }

    /// Parses a page. Skips lines that are not samples, so that one bad line does not hide the others.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self {
            samples: lines.filter_map(parse_line).collect(),
        }
    }

    /// Sum of all samples of this name, over all labels; `None` if there is none.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.named(name)
            .map(|sample| sample.value)
            .reduce(|left, right| left + right)
    }

    /// Sum of the samples of this name that have the label with this value; `None` if there is none.
    pub fn sum_with(&self, name: &str, label: &str, value: &str) -> Option<f64> {
        self.named(name)
            .filter(|sample| sample.label(label) == Some(value))
            .map(|sample| sample.value)
            .reduce(|left, right| left + right)
    }

    /// Values of a label of the samples of this name, in the order of the page, each once.
    pub fn values(&self, name: &str, label: &str) -> Vec<&str> {
        let mut values: Vec<&str> = self
            .named(name)
            .filter_map(|sample| sample.label(label))
            .collect();
        let mut seen = BTreeSet::new();
        values.retain(|value| seen.insert(*value));
        values
    }

    /// Buckets of a histogram, summed over its other labels: the upper end of each and its count, ascending. `name` ends with
    /// `_bucket`.
    pub fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for sample in self.named(name) {
            let Some(end) = sample.label("le").and_then(|end| end.parse().ok()) else {
                continue;
            };
            match buckets.iter_mut().find(|(other, _)| *other == end) {
                Some((_, count)) => *count += sample.value,
                None => buckets.push((end, sample.value)),
            }
        }
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        buckets
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.name == name)
    }
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.as_str())
    }
}

fn parse_line(line: &str) -> Option<Sample> {
    let name_ends = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(name_ends);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(labels) => parse_labels(labels)?,
        None => (Vec::new(), rest),
    };
    // A time stamp may follow the value.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| Sample {
        name: name.into(),
        labels,
        value,
    })
}

/// Parses labels up to the closing brace; returns them and the text behind the brace.
fn parse_labels(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = rest.char_indices();
        let end = loop {
            match letters.next()? {
                (index, '"') => break index,
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, letter) => value.push(letter),
            }
        };
        labels.push((name.trim().to_owned(), value));
        text = rest.get(end + 1..)?;
    }
}

/// Sends a GET request over HTTP/1.1 without TLS. Returns the body of a successful reply, of at most `largest` bytes. `None` if there is none within two seconds. `host` is
/// `host:port`, `path` begins with `/`.
pub(crate) async fn get(host: &str, path: &str, largest: usize) -> Option<Bytes> {
    tokio::time::timeout(TIMEOUT, request(host, path, largest))
        .await
        .ok()?
}

async fn request(host: &str, path: &str, largest: usize) -> Option<Bytes> {
    let stream = TcpStream::connect(host).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let request = Request::get(path)
        .header(hyper::header::HOST, host)
        .body(Empty::<Bytes>::new())
        .ok()?;
    let reading = async {
        let response = sender.send_request(request).await.ok()?;
        let found = response.status().is_success();
        let body = Limited::new(response.into_body(), largest).collect().await.ok()?;
        found.then(|| body.to_bytes())
    };
    tokio::pin!(reading);
    tokio::select! {
        body = &mut reading => body,
        // The connection's task may end before the reply is read.
        _ = connection => reading.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP minuet_learner_loss The loss.
# TYPE minuet_learner_loss gauge
minuet_learner_loss{head=\"policy\"} 2.5
minuet_learner_loss{head=\"value\"} 0.75

minuet_actor_visits_total 1234 1700000000000
minuet_inference_model_info{version=\"a \\\"b\\\" \\\\ {c},d=\\n\",provider=\"cpu\"} 1
minuet_inference_model_info{version=\"old\",provider=\"cpu\"} 0
minuet_wait_seconds_bucket{le=\"+Inf\"} 7
half a line{
minuet_odd NaN
";

    #[test]
    fn samples_are_found_by_name_and_label() {
        let page = Page::parse(PAGE);
        assert_eq!(page.sum("minuet_actor_visits_total"), Some(1234.0));
        assert_eq!(page.sum("minuet_learner_loss"), Some(3.25));
        assert_eq!(page.sum_with("minuet_learner_loss", "head", "value"), Some(0.75));
        assert_eq!(page.sum_with("minuet_learner_loss", "head", "other"), None);
        assert_eq!(page.values("minuet_learner_loss", "head"), ["policy", "value"]);
        assert_eq!(
            page.sum_with("minuet_wait_seconds_bucket", "le", "+Inf"),
            Some(7.0)
        );
        assert_eq!(
            page.sum_with("minuet_inference_model_info", "version", "a \"b\" \\ {c},d=\n"),
            Some(1.0)
        );
        assert_eq!(page.buckets("minuet_wait_seconds_bucket"), [(f64::INFINITY, 7.0)]);
        assert_eq!(page.sum("minuet_absent"), None);
        assert!(page.sum("minuet_odd").is_some_and(f64::is_nan));
        assert_eq!(page.samples.len(), 7);
    }

    #[tokio::test]
    async fn a_real_exporters_page_is_fetched_and_read() {
        let address: SocketAddr = crate::plan::ports::free(std::path::Path::new("page test"), 1).unwrap()[0];
        assert_eq!(Page::fetch(address).await, None);
        service::metrics_page::install(&address.to_string(), "actor").unwrap();
        let page = Page::fetch(address).await.unwrap();
        assert_eq!(page.sum_with("minuet_build_info", "role", "actor"), Some(1.0));
    }
}
