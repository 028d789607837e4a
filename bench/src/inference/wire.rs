//! Bytes of evaluations, counted on sockets: a process between client and server counts what it reads from each. HTTP/2 and
//! gRPC framing are included, headers of TCP and IP are not.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context as _;
use proto::v1::evaluator_client::EvaluatorClient;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;

use super::{arguments::Arguments, served::Served};
use crate::harness::{
    model,
    positions::Positions,
    report::{median, median_of},
};

/// Requests before the count, in which the connection is made.
const WARM_UP: usize = 8;
/// Requests that are counted, one after the other.
const REQUESTS: usize = 400;

/// Median size of a request and of its reply, and of both together, in bytes.
pub struct Bytes {
    pub request: f64,
    pub reply: f64,
    pub both: f64,
}

/// Measures requests of `rows` positions of `game`, which a small network evaluates.
pub fn measure(arguments: &Arguments, game: &str, rows: usize, folder: &Path) -> anyhow::Result<Bytes> {
    let (network, _) = model::find(game, 0, None, (1, 8))?;
    let mut served = Served::start(arguments, "cpu", folder, network)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    served.wait(&runtime)?;
    let positions = Positions::play(game)?;
    let exchanges = runtime.block_on(exchange(served.address(), &positions, rows))?;
    let both: Vec<f64> = exchanges
        .iter()
        .map(|[there, back]| (there + back) as f64)
        .collect();
    Ok(Bytes {
        request: median_of(&exchanges, |[there, _]| *there as f64),
        reply: median_of(&exchanges, |[_, back]| *back as f64),
        both: median(&both),
    })
}

/// Sends requests one after the other, and returns the bytes from and to the client for each.
async fn exchange(server: String, positions: &Positions, rows: usize) -> anyhow::Result<Vec<[u64; 2]>> {
    let (address, counts) = counted(server).await?;
    let mut client = EvaluatorClient::new(service::connect::channel(&address)?);
    let (sender, receiver) = mpsc::channel(1);
    let mut replies = client
        .evaluate_stream(ReceiverStream::new(receiver))
        .await?
        .into_inner();
    let mut exchanges = Vec::new();
    let mut before = [0; 2];
    for number in 0..WARM_UP + REQUESTS {
        sender.send(positions.request(number, rows)).await?;
        let reply = replies.message().await?.context("the server ended the stream")?;
        anyhow::ensure!(reply.error.is_none(), "a request failed: {:?}", reply.error);
        let after = [0, 1].map(|side| counts[side].load(Ordering::Relaxed));
        if number >= WARM_UP {
            exchanges.push([after[0] - before[0], after[1] - before[1]]);
        }
        before = after;
    }
    Ok(exchanges)
}

/// Listens on an address that leads to `server`; returns it with the numbers of bytes read from the client and from the server.
async fn counted(server: String) -> anyhow::Result<(String, Arc<[AtomicU64; 2]>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counted = Arc::clone(&counts);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((mut client_out, mut client_in), (mut server_out, mut server_in)) =
            (client.into_split(), server.into_split());
        tokio::try_join!(
            pass(&mut client_out, &mut server_in, &counted[0]),
            pass(&mut server_out, &mut client_in, &counted[1]),
        )
    });
    Ok((address, counts))
}

/// Passes bytes on until the end, and counts them.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        to.write_all(&buffer[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_directions_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, counts) = counted(listener.local_addr().unwrap().to_string()).await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(&[1; 1000]).await.unwrap();
        server.read_exact(&mut [0; 1000]).await.unwrap();
        server.write_all(&[2; 30]).await.unwrap();
        client.read_exact(&mut [0; 30]).await.unwrap();
        let found = [0, 1].map(|side| counts[side].load(Ordering::Relaxed));
        assert_eq!(found, [1000, 30]);
    }
}
