//! Metrics pages of the processes that are measured.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::Context as _;

const PATIENCE: Duration = Duration::from_secs(5);

/// A metrics page.
pub struct Page(String);

impl Page {
    /// The sum of all samples of this name, whatever their labels.
    pub fn sum(&self, name: &str) -> f64 {
        self.0
            .lines()
            .filter_map(|line| {
                let rest = line.strip_prefix(name)?;
                rest.starts_with(['{', ' ']).then_some(())?;
                rest.rsplit(' ').next()?.parse::<f64>().ok()
            })
            .sum()
    }
}

/// Fetches the page at `address`.
pub fn page(address: SocketAddr) -> anyhow::Result<Page> {
    let fetch = || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(Page(text))
    };
    fetch().with_context(|| format!("no metrics page answers at {address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_are_added_up() {
        let page = Page(
            "HTTP/1.0 200 OK\r\n\r\n# TYPE a_total counter\na_total 3\na_total{b=\"c d\"} 4.5\na_total_more 9\n"
                .into(),
        );
        assert_eq!(page.sum("a_total"), 7.5);
        assert_eq!(page.sum("b"), 0.0);
    }
}
