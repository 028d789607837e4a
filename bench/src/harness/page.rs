//! Metrics pages of the processes that are measured.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::Context as _;
use launcher::page::Page;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Fetches the metrics page at `address`.
///
/// # Errors
/// No page answers within five seconds.
pub fn fetch(address: SocketAddr) -> anyhow::Result<Page> {
    let read = || {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = read().with_context(|| format!("no metrics page answers at {address}"))?;
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    Ok(Page::parse(body))
}
