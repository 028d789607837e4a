//! The connections that a server holds, in all and of each peer.
//!
//! A peer is an IPv4 address, or the first 64 bits of an IPv6 address: one client usually has all addresses of that prefix. A server
//! refuses connections beyond its limits, except one for probes: it closes the oldest connection instead, so that clients that leave
//! connections open cannot keep a probe out.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;

use super::peer::Peer;

const REFUSED: &str = "minuet_server_connections_refused_total";

/// Counts of connections, and their limits.
pub(super) struct Slots {
    max: usize,
    max_of_peer: usize,
    /// True if the oldest connection is closed where there are too many.
    replaces: bool,
    held: Mutex<Held>,
    open: Gauge,
    opened: Counter,
    too_many: Counter,
    too_many_of_peer: Counter,
}

#[derive(Default)]
struct Held {
    of: HashMap<IpAddr, usize>,
    /// Open connections, the oldest first.
    open: BTreeMap<u64, Peer>,
    taken: u64,
}

/// One of the allowed connections, released on drop.
pub(super) struct ConnectionSlot {
    slots: Arc<Slots>,
    number: u64,
}

impl Slots {
    pub(super) fn new(max: usize, max_of_peer: usize, replaces: bool) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_of_peer,
            replaces,
            held: Mutex::default(),
            open: gauge!("minuet_server_connections"),
            opened: counter!("minuet_server_connections_total"),
            too_many: counter!(REFUSED, "reason" => "too-many"),
            too_many_of_peer: counter!(REFUSED, "reason" => "peer"),
        })
    }

    /// Takes a slot for a connection of `peer`; `None` if no more connections are allowed.
    pub(super) fn take(self: &Arc<Self>, peer: &Peer) -> Option<ConnectionSlot> {
        let client = peer.client();
        let mut held = self.held.lock();
        let of_client = client.and_then(|client| held.of.get(&client)).copied();
        let is_client_full = of_client.is_some_and(|of_client| of_client >= self.max_of_peer);
        if held.open.len() >= self.max || is_client_full {
            match is_client_full {
                true => self.too_many_of_peer.increment(1),
                false => self.too_many.increment(1),
            }
            if !self.replaces {
                return None;
            }
            let is_replaced = |other: &Peer| !is_client_full || other.client() == client;
            let oldest = held.open.iter().find(|(_, other)| is_replaced(other));
            let oldest = oldest.map(|(&number, _)| number)?;
            held.remove(oldest, &self.open);
        }
        held.taken += 1;
        if let Some(client) = client {
            *held.of.entry(client).or_default() += 1;
        }
        let number = held.taken;
        held.open.insert(number, peer.clone());
        self.open.increment(1.0);
        self.opened.increment(1);
        Some(ConnectionSlot {
            slots: self.clone(),
            number,
        })
    }
}

impl Held {
    /// Frees the slot of a connection, and closes it if it is open. Does nothing for a connection that was removed before.
    fn remove(&mut self, number: u64, open: &Gauge) {
        let Some(peer) = self.open.remove(&number) else {
            return;
        };
        peer.cut();
        if let Some(client) = peer.client()
            && let Some(of_client) = self.of.get_mut(&client)
        {
            *of_client -= 1;
            if *of_client == 0 {
                self.of.remove(&client);
            }
        }
        open.decrement(1.0);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.held.lock().remove(self.number, &self.slots.open);
    }
}

/// Returns the address under which a client is counted.
pub(super) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(slots: &Arc<Slots>, address: &str) -> Option<ConnectionSlot> {
        slots.take(&Peer::new(Some((address.parse::<IpAddr>().unwrap(), 1).into())))
    }

    #[test]
    fn one_peer_cannot_take_all_connections() {
        let slots = Slots::new(5, 2, false);
        let take = |address: &str| take(&slots, address);
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

    #[test]
    fn the_oldest_connection_of_the_greedy_client_makes_room_for_a_probe() {
        let slots = Slots::new(3, 2, true);
        let probe = take(&slots, "10.0.0.9").unwrap();
        let held: Vec<_> = (0..20).map(|_| take(&slots, "10.0.0.1").unwrap()).collect();
        let numbers = |slots: &Slots| -> Vec<u64> { slots.held.lock().open.keys().copied().collect() };
        assert_eq!(numbers(&slots), [1, 20, 21], "the probe's is left alone");
        let _other = take(&slots, "10.0.0.2").unwrap();
        assert_eq!(numbers(&slots), [20, 21, 22]);
        drop((probe, held));
        assert_eq!(numbers(&slots), [22]);
    }
}
