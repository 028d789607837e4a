//! The connections that a server holds, in all and of each peer.
//!
//! A peer is an IPv4 address, or the first 64 bits of an IPv6 address: one client usually has all addresses of that prefix.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;

const REFUSED: &str = "minuet_server_connections_refused_total";

/// Counts of connections, and their limits.
pub(super) struct Slots {
    max: usize,
    max_of_peer: usize,
    held: Mutex<Held>,
    open: Gauge,
    opened: Counter,
    too_many: Counter,
    too_many_of_peer: Counter,
}

#[derive(Default)]
struct Held {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// One of the allowed connections, released on drop.
pub(super) struct ConnectionSlot {
    slots: Arc<Slots>,
    peer: Option<IpAddr>,
}

impl Slots {
    pub(super) fn new(max: usize, max_of_peer: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_of_peer,
            held: Mutex::default(),
            open: gauge!("minuet_server_connections"),
            opened: counter!("minuet_server_connections_total"),
            too_many: counter!(REFUSED, "reason" => "too-many"),
            too_many_of_peer: counter!(REFUSED, "reason" => "peer"),
        })
    }

    /// Takes a slot for a connection from `address`; `None` if no more connections are allowed.
    pub(super) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ConnectionSlot> {
        let peer = address.map(peer);
        let mut held = self.held.lock();
        if held.all >= self.max {
            self.too_many.increment(1);
            return None;
        }
        if let Some(peer) = peer {
            let of_peer = held.of.entry(peer).or_default();
            if *of_peer >= self.max_of_peer {
                self.too_many_of_peer.increment(1);
                return None;
            }
            *of_peer += 1;
        }
        held.all += 1;
        self.open.increment(1.0);
        self.opened.increment(1);
        Some(ConnectionSlot {
            slots: self.clone(),
            peer,
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut held = self.slots.held.lock();
        held.all -= 1;
        if let Some(peer) = self.peer
            && let Some(of_peer) = held.of.get_mut(&peer)
        {
            *of_peer -= 1;
            if *of_peer == 0 {
                held.of.remove(&peer);
            }
        }
        self.slots.open.decrement(1.0);
    }
}

fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_cannot_take_all_connections() {
        let slots = Slots::new(5, 2);
        let take = |address: &str| slots.take(Some(address.parse().unwrap()));
        let first = take("10.0.0.1").unwrap();
        let _mapped = take("::ffff:10.0.0.1").unwrap();
        assert!(take("10.0.0.1").is_none());
        let _other = take("10.0.0.2").unwrap();
        let _network = (take("2001:db8::1").unwrap(), take("2001:db8::2").unwrap());
        assert!(take("2001:db8::3").is_none() && take("10.0.0.3").is_none());
        drop(first);
        assert!(take("10.0.0.1").is_some());
        assert_eq!(slots.held.lock().of.len(), 3);
    }
}
