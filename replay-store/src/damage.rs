//! Damage of a store: games that were acknowledged and cannot be read, and damaged files.

use crate::log::frame::Id;

/// A game that was acknowledged and cannot be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Sequence number.
    pub sequence: u64,
    /// Game id, if the game's name frame is intact.
    pub id: Option<Id>,
}

/// Damage of a store that was found when it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Acknowledged games that cannot be read. Opening a store for writing records them, so that they are found once.
    pub losses: Vec<Loss>,
    /// True if no copy of the ledger file is intact. The counts are then those of the log.
    pub is_ledger_lost: bool,
}

impl Damage {
    /// True if nothing is damaged.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Damage {
    /// Counts the damage, for example `2 acknowledged games cannot be read`.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        match self.losses.len() {
            0 => {}
            1 => parts.push("1 acknowledged game cannot be read".to_owned()),
            games => parts.push(format!("{games} acknowledged games cannot be read")),
        }
        if self.is_ledger_lost {
            parts.push("the ledger file is damaged".into());
        }
        out.write_str(&parts.join(", "))
    }
}
