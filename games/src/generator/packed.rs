//! Packed form of clans: one `u32` for each imp, `value | role << 8 | parent << 16`, in preorder.

use super::{
    clan::Clan,
    grammar::{self, MAX_DEPTH, MAX_IMPS, R_SHAPES},
};

/// Error: a list of numbers is not a clan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClanError {
    /// The number of imps is wrong.
    #[error("a clan of {0} imps (4 to {MAX_IMPS} are possible)")]
    Imps(usize),
    /// An imp does not fit the grammar.
    #[error("imp {imp} (value {value}, role {role}, parent {parent}): {expected} expected")]
    Imp {
        /// Number of the imp.
        imp: usize,
        /// Value of the imp.
        value: u32,
        /// Role of the imp.
        role: u32,
        /// Parent of the imp.
        parent: u32,
        /// Imp that the grammar requires here.
        expected: String,
    },
    /// The list ends although an imp lacks a child.
    #[error("the clan ends after {imps} imps: imp {imp} has no {role}")]
    Unfinished {
        /// Number of imps.
        imps: usize,
        /// Number of the imp that lacks a child.
        imp: usize,
        /// Role of the child that is missing.
        role: String,
    },
    /// An imp is too deep.
    #[error("imp {imp} is {depth} edges below the root (at most {MAX_DEPTH} are possible)")]
    Depth {
        /// Number of the imp.
        imp: usize,
        /// Number of edges between the root and the imp.
        depth: usize,
    },
}

impl Clan {
    /// Returns the packed form of the clan: one `u32` for each imp, in preorder.
    pub fn packed(&self) -> impl ExactSizeIterator<Item = u32> {
        let imps = self.values().iter().zip(self.roles()).zip(self.parents());
        imps.map(|((&value, &role), &parent)| {
            u32::from(value) | u32::from(role) << 8 | u32::from(parent) << 16
        })
    }

    /// Reads the packed form of a clan (see [`Clan::packed`]). Any list of numbers is safe to read.
    ///
    /// # Errors
    /// [`ClanError`] that names the first imp that does not fit the grammar.
    pub fn unpack(packed: &[u32]) -> Result<Self, ClanError> {
        if packed.len() < 4 || packed.len() > MAX_IMPS {
            return Err(ClanError::Imps(packed.len()));
        }
        let mut reader = Reader {
            packed,
            clan: Self {
                len: 0,
                ..Self::start()
            },
        };
        reader.clan.values = [0; MAX_IMPS];
        reader.clan.roles = [0; MAX_IMPS];
        reader.imp(grammar::THIS, 0, 0)?;
        let clan = reader.clan;
        if clan.len() < packed.len() {
            return Err(reader.unexpected("no further imp"));
        }
        Ok(clan)
    }
}

struct Reader<'a> {
    packed: &'a [u32],
    clan: Clan,
}

impl Reader<'_> {
    /// Reads the sept that fills `role` of `parent`.
    fn imp(&mut self, role: u8, parent: usize, depth: usize) -> Result<(), ClanError> {
        let imp = self.clan.len();
        let Some(&packed) = self.packed.get(imp) else {
            return Err(ClanError::Unfinished {
                imps: imp,
                imp: parent,
                role: grammar::role_name(role),
            });
        };
        if depth > MAX_DEPTH {
            return Err(ClanError::Depth { imp, depth });
        }
        let value = (packed & 0xff) as u8;
        let place = u32::from(role) << 8 | (parent as u32) << 16;
        if packed & !0xff != place {
            return Err(self.unexpected(&format!("{} of imp {parent}", grammar::role_name(role))));
        }
        let values = grammar::values_of(role);
        if !values.contains(&value) {
            return Err(self.unexpected(&format!(
                "value {} to {} as {}",
                values.start(),
                values.end(),
                grammar::role_name(role)
            )));
        }
        self.clan.push(value, role, parent as u8);
        for &role in grammar::fixed_roles(value) {
            self.imp(role, imp, depth + 1)?;
        }
        if let Some(sizes) = grammar::list_sizes(value) {
            for place in 0..*sizes.end() {
                let role = R_SHAPES + place as u8;
                let is_there = self
                    .packed
                    .get(self.clan.len())
                    .is_some_and(|next| next & !0xff == u32::from(role) << 8 | (imp as u32) << 16);
                if !is_there && place >= *sizes.start() {
                    break;
                }
                self.imp(role, imp, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns the error at the next imp.
    fn unexpected(&self, expected: &str) -> ClanError {
        let imp = self.clan.len();
        let packed = self.packed.get(imp).copied().unwrap_or_default();
        ClanError::Imp {
            imp,
            value: packed & 0xff,
            role: packed >> 8 & 0xff,
            parent: packed >> 16,
            expected: expected.into(),
        }
    }
}
