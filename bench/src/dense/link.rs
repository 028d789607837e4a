//! A link between two machines on one: a relay that passes bytes on at a limited rate and after a delay. It needs no rights, and counts
//! the bytes on the sockets.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Largest number of bytes that are passed on at once.
const CHUNK: usize = 16 << 10;
/// Chunks on the way of one connection in one direction.
const ON_THE_WAY: usize = 256;

/// Rate and delay of a link.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// Bits per second in each direction.
    pub bits_per_second: f64,
    /// Delay in one direction.
    pub delay: Duration,
}

/// A relay to a server. All connections share the rate. Its threads end with their connections.
pub struct Link {
    /// Address on which the relay listens.
    pub address: SocketAddr,
    ways: [Arc<Way>; 2],
}

/// One direction.
struct Way {
    speed: Speed,
    bytes: AtomicU64,
    free_at: Mutex<Instant>,
}

impl Link {
    /// Starts a relay to the server at `target`.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(target: SocketAddr, speed: Speed) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let way = || {
            Arc::new(Way {
                speed,
                bytes: AtomicU64::new(0),
                free_at: Mutex::new(Instant::now()),
            })
        };
        let link = Self {
            address: listener.local_addr()?,
            ways: [way(), way()],
        };
        let ways = link.ways.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                // A connection that fails ends, and its client reports it.
                let _ = client.and_then(|client| relay(&client, target, &ways));
            }
        });
        Ok(link)
    }

    /// Returns the bytes that have been passed on so far, towards the server and back.
    pub fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|way: usize| self.ways[way].bytes.load(Ordering::Relaxed))
    }
}

fn relay(client: &TcpStream, target: SocketAddr, ways: &[Arc<Way>; 2]) -> std::io::Result<()> {
    let server = TcpStream::connect(target)?;
    for (way, from, to) in [(&ways[0], client, &server), (&ways[1], &server, client)] {
        from.set_nodelay(true)?;
        let (sender, receiver) = sync_channel(ON_THE_WAY);
        let (way, from, to) = (way.clone(), from.try_clone()?, to.try_clone()?);
        thread::spawn(move || take(&way, from, &sender));
        thread::spawn(move || give(to, &receiver));
    }
    Ok(())
}

/// Reads chunks, and computes for each when its last byte arrives at the other end.
fn take(way: &Way, mut from: TcpStream, to: &SyncSender<(Instant, Vec<u8>)>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        way.bytes.fetch_add(count as u64, Ordering::Relaxed);
        let on_the_wire = Duration::from_secs_f64(count as f64 * 8.0 / way.speed.bits_per_second);
        let sent = {
            let mut free_at = way.free_at.lock();
            *free_at = (*free_at).max(Instant::now()) + on_the_wire;
            *free_at
        };
        let arrives = sent + way.speed.delay;
        if to.send((arrives, chunk[..count].to_vec())).is_err() {
            break;
        }
    }
}

fn give(mut to: TcpStream, from: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((arrives, chunk)) = from.recv() {
        thread::sleep(arrives.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk).is_err() {
            return;
        }
    }
    // The other end reads the end of the stream.
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `sent` bytes through a link to a server that answers each connection with its bytes.
    fn echoed(speed: Speed, sent: usize) -> (Duration, [u64; 2]) {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let link = Link::start(server.local_addr().unwrap(), speed).unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut bytes = vec![0; sent];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
        });
        let mut client = TcpStream::connect(link.address).unwrap();
        let bytes: Vec<u8> = (0..sent).map(|number| number as u8).collect();
        let began = Instant::now();
        client.write_all(&bytes).unwrap();
        let mut back = vec![0; sent];
        client.read_exact(&mut back).unwrap();
        let time = began.elapsed();
        echo.join().unwrap();
        assert_eq!(back, bytes);
        (time, link.bytes())
    }

    #[test]
    fn bytes_arrive_as_they_were_sent_after_the_delay_and_at_the_rate() {
        let delay = Duration::from_millis(20);
        let far = Speed {
            bits_per_second: 1e12,
            delay,
        };
        let (time, bytes) = echoed(far, 100);
        assert!(time >= 2 * delay, "{time:?}");
        assert_eq!(bytes, [100, 100]);
        let slow = Speed {
            bits_per_second: 8e6,
            delay: Duration::ZERO,
        };
        let (time, bytes) = echoed(slow, 50_000);
        // A megabyte per second, there and back.
        assert!(time >= Duration::from_millis(100), "{time:?}");
        assert_eq!(bytes, [50_000, 50_000]);
    }
}
