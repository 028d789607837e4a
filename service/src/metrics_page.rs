//! The Prometheus metrics page of a process, served on a separate address.
//!
//! Names follow the Prometheus convention: `minuet_<role>_<what>_<unit>`, base units, counters end in `_total`.
//! Histograms get buckets by the end of their name: `_seconds` in steps of 1.5 from 15 µs,
//! sizes (`_size`, `_positions`, `_rows`, `_actions`) in powers of two.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use crate::listener::acceptor::Acceptor;

/// Largest number of readers at the same time; further connections are closed at once.
const MAX_READERS: usize = 32;
/// Time limit of a reader, from the connection to the end of the page.
const READ_TIME: Duration = Duration::from_secs(10);
/// Largest size of a request, in bytes.
const REQUEST_BYTES: usize = 8 << 10;
/// Interval at which the recorder sums up histograms.
const UPKEEP: Duration = Duration::from_secs(5);
/// Interval at which the metrics of the process (memory, processor time) are updated.
const PROCESS_INTERVAL: Duration = Duration::from_secs(2);

/// Installs the process's metrics recorder and serves its page on `address` (`ip:port`). Call it within the runtime that serves
/// the page.
///
/// # Errors
/// The address cannot be used, or a recorder is already installed.
pub fn install(address: &str, role: &'static str) -> anyhow::Result<()> {
    let malformed = || format!("`{address}` is not an address for a metrics page; write ip:port");
    let listen_on: SocketAddr = address.parse().ok().with_context(malformed)?;
    let listen = || {
        let listener = std::net::TcpListener::bind(listen_on)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    let listener = listen().with_context(|| format!("cannot serve the metrics page on {address}"))?;
    let handle = builder().and_then(PrometheusBuilder::install_recorder);
    let handle = handle.context("cannot record metrics")?;
    tokio::spawn(serve(listener, handle.clone()));
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            handle.run_upkeep();
        }
    });
    metrics::gauge!("minuet_build_info", "version" => crate::release::version(), "role" => role).set(1.0);
    tokio::spawn(watch_process());
    Ok(())
}

/// Serves the page to each connection; never returns.
async fn serve(listener: TcpListener, page: PrometheusHandle) {
    let readers = Arc::new(Semaphore::new(MAX_READERS));
    let mut acceptor = Acceptor::new(listener);
    loop {
        let stream = acceptor.next().await;
        let Ok(reader) = readers.clone().try_acquire_owned() else {
            continue;
        };
        let page = page.clone();
        tokio::spawn(async move {
            // An error is not logged: the reader gave up or took too long.
            drop(timeout(READ_TIME, answer(stream, page)).await);
            drop(reader);
        });
    }
}

/// Answers one HTTP request with the page, and closes the connection.
async fn answer(mut stream: TcpStream, page: PrometheusHandle) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if request.len() > REQUEST_BYTES || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let page = tokio::task::spawn_blocking(move || page.render())
        .await
        .map_err(io::Error::other)?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    let seconds = geometric(15e-6, 1.5, 38);
    let sizes = geometric(1.0, 2.0, 17);
    let builder =
        PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &seconds)?;
    ["_size", "_positions", "_rows", "_actions"]
        .into_iter()
        .try_fold(builder, |builder, suffix| {
            builder.set_buckets_for_metric(Matcher::Suffix(suffix.into()), &sizes)
        })
}

fn geometric(first: f64, factor: f64, count: i32) -> Vec<f64> {
    (0..count).map(|power| first * factor.powi(power)).collect()
}

/// Updates the metrics of the process, which have the names used by Prometheus' client libraries.
async fn watch_process() {
    let resident = metrics::gauge!("process_resident_memory_bytes");
    let peak = metrics::gauge!("process_peak_resident_memory_bytes");
    let processor = metrics::gauge!("process_cpu_seconds_total");
    let mut ticks = tokio::time::interval(PROCESS_INTERVAL);
    loop {
        ticks.tick().await;
        if let Some(usage) = crate::process::usage(std::process::id()) {
            resident.set(usage.resident_bytes as f64);
            peak.set(usage.peak_resident_bytes as f64);
            processor.set(usage.cpu_seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_microseconds_to_a_minute_and_one_to_65536() {
        let seconds = geometric(15e-6, 1.5, 38);
        assert!(seconds.is_sorted() && seconds.last().is_some_and(|&last| last > 45.0));
        assert_eq!(geometric(1.0, 2.0, 17).last(), Some(&65_536.0));
        let recorder = builder().unwrap().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!("minuet_test_wait_seconds").record(0.5);
            metrics::histogram!("minuet_test_batch_size").record(64.0);
        });
        let page = handle.render();
        assert!(page.contains("minuet_test_wait_seconds_bucket{le="), "{page}");
        assert!(
            page.contains("minuet_test_batch_size_bucket{le=\"64\"} 1"),
            "{page}"
        );
    }
}
