//! The plan of a match: [`Plan`]. The plan numbers the games, so that an interrupted match knows which games are missing.

use std::sync::Arc;

use anyhow::ensure;
use checkpoints::version::sha256_hex;
use games::{erased::Variant, registry};
use search::GameKey;
use serde::{Deserialize, Serialize};

use super::openings::Opening;
use crate::players::Player;

/// Version of the plan's format. A match with another version is not continued.
pub const SCHEMA: u32 = 1;

/// The plan of a match. Everything that affects a game is in the plan, so equal plans play the same games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// Name of the game.
    pub game: String,
    /// Rules of the game.
    pub rules: serde_json::Value,
    /// The players, at least two.
    pub players: Vec<Entrant>,
    /// Number of pairs of games for every two players.
    pub pairs: u64,
    /// Seed of all random draws.
    pub seed: u64,
    /// Openings: pair `k` of any two players begins from opening `k` modulo the number of openings.
    pub openings: Vec<Opening>,
    /// Number of actions after which a game ends as a draw.
    pub max_actions: usize,
}

/// A player of a plan: its name and everything that identifies how it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// Name of the player.
    pub name: String,
    /// The description given on the command line.
    pub written: String,
    /// Version of its network, if it has one.
    pub version: Option<String>,
    /// SHA-256 of the network's file, if the network is a file.
    pub digest: Option<String>,
    /// Search settings, if it searches.
    pub search: Option<String>,
}

impl Entrant {
    fn of(player: &Player) -> Self {
        let network = player.network();
        let digest = network.map(|network| network.digest().to_owned());
        Self {
            name: player.name().into(),
            written: player.written().into(),
            version: network.map(|network| network.description().version.clone()),
            digest: digest.filter(|digest| !digest.is_empty()),
            search: player.settings().map(|settings| format!("{settings:?}")),
        }
    }
}

/// A game of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedGame {
    /// Number of the game.
    pub game: u64,
    /// Number of its pair among the pairs of these two players.
    pub pair: u64,
    /// The two players, the smaller number first.
    pub pairing: [usize; 2],
    /// The player who begins, then the other player.
    pub players: [usize; 2],
}

impl Plan {
    /// Returns the plan of a match of these players.
    ///
    /// # Errors
    /// The plan cannot be played.
    pub fn new(
        variant: &dyn Variant,
        players: &[Player],
        pairs: u64,
        seed: u64,
        openings: Vec<Opening>,
        max_actions: usize,
    ) -> anyhow::Result<Self> {
        let plan = Self {
            schema: SCHEMA,
            game: variant.game().name.into(),
            rules: variant.rules(),
            players: players.iter().map(Entrant::of).collect(),
            pairs,
            seed,
            openings,
            max_actions,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.players.len() >= 2, "a match needs at least two players");
        for (number, Entrant { name, .. }) in self.players.iter().enumerate() {
            ensure!(
                self.players[..number].iter().all(|other| other.name != *name),
                "two players are called `{name}`; give one of them a name of its own: {name},name=…"
            );
        }
        ensure!(self.pairs > 0, "a match has at least one pair of games");
        ensure!(!self.openings.is_empty(), "a match needs an opening");
        Ok(())
    }

    /// The game with its rules.
    ///
    /// # Errors
    /// This build knows no such game or rules.
    pub fn variant(&self) -> anyhow::Result<Arc<dyn Variant>> {
        Ok(registry::find(&self.game)?.variant(&self.rules, None)?)
    }

    /// Every two players, in order.
    pub fn pairings(&self) -> Vec<[usize; 2]> {
        let count = self.players.len();
        (0..count)
            .flat_map(|first| (first + 1..count).map(move |second| [first, second]))
            .collect()
    }

    /// Number of games.
    pub fn games(&self) -> u64 {
        2 * self.pairs * self.pairings().len() as u64
    }

    /// The game with this number. The two games of a pair have successive numbers; the same pair of the next two players follows.
    pub fn slot(&self, game: u64) -> PlannedGame {
        let pairings = self.pairings();
        let pairing = pairings[((game / 2) % pairings.len() as u64) as usize];
        let [first, second] = pairing;
        PlannedGame {
            game,
            pair: game / 2 / pairings.len() as u64,
            pairing,
            players: if game.is_multiple_of(2) {
                [first, second]
            } else {
                [second, first]
            },
        }
    }

    /// Opening of a pair.
    pub fn opening(&self, pair: u64) -> &Opening {
        &self.openings[(pair % self.openings.len() as u64) as usize]
    }

    /// Eight hexadecimal digits that identify the players and settings, but not the number of games, so that a longer match
    /// continues a shorter one.
    pub fn identity(&self) -> String {
        let identity = Self {
            pairs: 0,
            openings: self.openings.first().cloned().into_iter().collect(),
            ..self.clone()
        };
        // Plain data can always be written as JSON.
        let digest = sha256_hex(&serde_json::to_vec(&identity).unwrap_or_default());
        digest.chars().take(8).collect()
    }

    /// True if the games of `other` are games of this plan: the plans differ only in the number of pairs and of random openings.
    pub fn continues(&self, other: &Self) -> bool {
        let shared = self.openings.len().min(other.openings.len());
        let alike = |plan: &Self| Self {
            pairs: 0,
            openings: plan.openings[..shared].to_vec(),
            ..plan.clone()
        };
        alike(self) == alike(other)
    }
}

/// Key of all random draws of one player in one game. `side` is 0 for the player who begins, else 1.
pub fn seat_key(seed: u64, game: u64, side: usize) -> GameKey {
    GameKey {
        run_seed: seed,
        game: 2 * game + side as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn plan(players: usize, pairs: u64) -> Plan {
        Plan {
            schema: SCHEMA,
            game: "othello".into(),
            rules: serde_json::json!({}),
            players: (0..players)
                .map(|number| Entrant {
                    name: format!("player {number}"),
                    written: "uct".into(),
                    version: None,
                    digest: None,
                    search: None,
                })
                .collect(),
            pairs,
            seed: 1,
            openings: vec![Opening::default(); pairs as usize],
            max_actions: 100,
        }
    }

    #[test]
    fn every_two_players_play_both_colours_from_every_opening() {
        let plan = plan(4, 5);
        assert_eq!(plan.games(), 60);
        let mut seen: HashMap<([usize; 2], u64), u32> = HashMap::new();
        for game in 0..plan.games() {
            let slot = plan.slot(game);
            *seen.entry((slot.players, slot.pair)).or_default() += 1;
            let mut sorted = slot.players;
            sorted.sort_unstable();
            assert_eq!(sorted, slot.pairing);
            assert_eq!(
                plan.slot(game ^ 1).pair,
                slot.pair,
                "a pair's games are neighbours"
            );
        }
        assert_eq!(seen.len(), 4 * 3 * 5);
        assert!(seen.values().all(|&count| count == 1));
    }

    #[test]
    fn more_pairs_are_the_same_match_another_seed_is_not() {
        let begun = plan(2, 5);
        assert!(plan(2, 50).continues(&begun) && begun.continues(&plan(2, 50)));
        let other = Plan {
            seed: 2,
            ..plan(2, 5)
        };
        assert!(!other.continues(&begun));
        assert!(!plan(3, 5).continues(&begun));
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        let says = |plan: &Plan, words: &str| {
            let said = plan.check().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        says(&plan(1, 5), "two players");
        let mut twins = plan(2, 5);
        twins.players[1].name = "player 0".into();
        says(&twins, "`player 0`");
        says(&plan(2, 0), "one pair");
        plan(2, 1).check().unwrap();
    }
}
