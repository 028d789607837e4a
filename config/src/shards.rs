//! Which of several replay stores a game belongs to.
//!
//! Rendezvous hashing, "highest random weight" (Thaler and Ravishankar 1998): a game goes to the store whose name gives,
//! hashed together with the game's id, the highest number. So a store more takes its fair share from all others and nothing
//! else moves, a store less leaves its games to the others alone, and the order of the list says nothing.
//!
//! A list is written `host:port,host:port,…`. The name that is hashed is the address as it is written, or what stands
//! before it: `name=host:port` keeps its games when the address changes.

use std::{collections::BTreeSet, fmt};

use sha2::{Digest as _, Sha256};

/// A replay store of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// What games are given to it by.
    pub name: String,
    /// Where it is found, `host:port`.
    pub address: String,
}

/// The replay stores of a run, in the order of their names; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards(Vec<Shard>);

/// A list that names no stores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardsError {
    /// There is nothing between two commas, or at an end.
    #[error("`{0}` lists a store without an address; write host:port,host:port")]
    Empty(String),
    /// Two stores cannot be told apart.
    #[error("`{list}` lists {name} twice")]
    Twice {
        /// The list.
        list: String,
        /// The name or address that stands there twice.
        name: String,
    },
}

impl Shards {
    /// Reads a list.
    ///
    /// # Errors
    /// [`ShardsError`]. Whether the addresses are any is not looked at.
    pub fn parse(list: &str) -> Result<Self, ShardsError> {
        let mut shards: Vec<Shard> = list
            .split(',')
            .map(|entry| {
                let entry = entry.trim();
                let (name, address) = entry.split_once('=').unwrap_or((entry, entry));
                (!name.is_empty() && !address.is_empty())
                    .then(|| Shard {
                        name: name.into(),
                        address: address.into(),
                    })
                    .ok_or_else(|| ShardsError::Empty(list.into()))
            })
            .collect::<Result<_, _>>()?;
        shards.sort();
        for part in [
            |shard: &Shard| shard.name.clone(),
            |shard: &Shard| shard.address.clone(),
        ] {
            let mut seen = BTreeSet::new();
            if let Some(name) = shards.iter().map(part).find(|name| !seen.insert(name.clone())) {
                return Err(ShardsError::Twice {
                    list: list.into(),
                    name,
                });
            }
        }
        Ok(Self(shards))
    }

    /// The stores, by name.
    pub fn all(&self) -> &[Shard] {
        &self.0
    }

    /// Number of stores, at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The only store, where there is one.
    pub fn only(&self) -> Option<&Shard> {
        match self.0.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The number (below [`Shards::count`]) of the store that the game with this id belongs to.
    pub fn of(&self, id: &[u8]) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
        let weights = self.0.iter().map(|shard| weight(&shard.name, id));
        // The last of equals, which names in order make the same one for everybody.
        let highest = weights.enumerate().max_by_key(|(_, weight)| *weight);
        highest.map_or(0, |(number, _)| number)
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|shard| shard.name.clone()).collect()
    }
}

impl fmt::Display for Shards {
    /// As it is written, in the order of the names.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Shard { name, address }) in self.0.iter().enumerate() {
            to.write_str(if at > 0 { "," } else { "" })?;
            if name == address {
                to.write_str(address)?;
            } else {
                write!(to, "{name}={address}")?;
            }
        }
        Ok(())
    }
}

/// The first eight bytes (big-endian) of SHA-256 over the name, a zero byte and the id. Part of what a run keeps on its disks:
/// another hash would move games.
fn weight(name: &str, id: &[u8]) -> u64 {
    let digest = Sha256::new()
        .chain_update(name)
        .chain_update([0])
        .chain_update(id)
        .finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shards(names: &[String]) -> Shards {
        Shards::parse(&names.join(",")).unwrap()
    }

    fn owner(shards: &Shards, id: &[u8]) -> String {
        shards.all()[shards.of(id)].name.clone()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count)
            .map(|number| format!("replay-{number}:50052"))
            .collect()
    }

    proptest! {
        #[test]
        fn the_order_of_the_list_says_nothing(count in 1usize..9, turn in any::<prop::sample::Index>(), ids in prop::collection::vec(any::<[u8; 16]>(), 1..50)) {
            let straight = names(count);
            let mut turned = straight.clone();
            turned.rotate_left(turn.index(count));
            turned.reverse();
            for id in ids {
                prop_assert_eq!(owner(&shards(&straight), &id), owner(&shards(&turned), &id));
            }
        }

        #[test]
        fn a_store_more_takes_games_and_moves_no_other(count in 1usize..9, ids in prop::collection::vec(any::<[u8; 16]>(), 1..200)) {
            let (before, after) = (shards(&names(count)), shards(&names(count + 1)));
            let new = format!("replay-{count}:50052");
            for id in ids {
                let now = owner(&after, &id);
                prop_assert!(now == new || now == owner(&before, &id));
            }
        }

        /// Ids as actors make them: one prefix, numbers that count up.
        #[test]
        fn shares_are_fair(count in 2usize..9, prefix in any::<[u8; 10]>()) {
            const GAMES: u64 = 4000;
            let shards = shards(&names(count));
            let mut shares = vec![0u64; count];
            for number in 0..GAMES {
                let mut id = [0; 16];
                id[..10].copy_from_slice(&prefix);
                id[10..].copy_from_slice(&number.to_be_bytes()[2..]);
                shares[shards.of(&id)] += 1;
            }
            let fair = GAMES as f64 / count as f64;
            // Six deviations of the binomial distribution.
            let bound = 6.0 * (fair * (1.0 - 1.0 / count as f64)).sqrt();
            for share in shares {
                prop_assert!((share as f64 - fair).abs() < bound, "{} of {}", share, fair);
            }
        }

        #[test]
        fn lists_come_back(entries in prop::collection::btree_map("[a-z][a-z0-9-]{0,8}", 1u16..60_000, 1..6)) {
            let list: Vec<String> = entries.iter().map(|(name, port)| format!("{name}={name}.svc:{port}")).collect();
            let shards = Shards::parse(&list.join(" , ")).unwrap();
            prop_assert_eq!(shards.names(), entries.keys().cloned().collect::<Vec<_>>());
            prop_assert_eq!(Shards::parse(&shards.to_string()).unwrap(), shards);
        }
    }

    /// Which store keeps a game is written on disks all over a run: this must never change.
    #[test]
    fn the_hash_is_what_it_was() {
        let three = Shards::parse("a=h:1,b=h:2,c=h:3").unwrap();
        let owners: String = (0..24u128).map(|id| owner(&three, &id.to_be_bytes())).collect();
        assert_eq!(owners, "bcbabaaaacaacacbcbbbacaa");
        // As `(printf 'a'; head -c 17 /dev/zero) | sha256sum` begins.
        assert_eq!(weight("a", &[0; 16]), 0x7676_af26_e414_2ac9);
    }

    #[test]
    fn an_address_is_its_name_unless_it_has_one() {
        let mixed = Shards::parse("host:1, second=host:2").unwrap();
        assert_eq!(mixed.names(), ["host:1", "second"]);
        assert_eq!(mixed.all()[1].address, "host:2");
        assert_eq!(mixed.only(), None);
        assert_eq!(Shards::parse("host:1").unwrap().only().unwrap().address, "host:1");
    }

    #[test]
    fn lists_that_name_no_stores_say_so() {
        for list in ["", "a:1,", ",a:1", "a:1,,b:1", "=a:1", "a=", " "] {
            assert_eq!(Shards::parse(list), Err(ShardsError::Empty(list.into())));
        }
        for (list, twice) in [
            ("a:1,b:2,a:1", "a:1"),
            ("x=a:1,x=b:1", "x"),
            ("x=a:1,y=a:1", "a:1"),
        ] {
            let said = Shards::parse(list).unwrap_err().to_string();
            assert!(said.contains(&format!("lists {twice} twice")), "{said}");
        }
    }
}
