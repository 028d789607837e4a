//! [`Clan`]: the tree of imps that is the state of play, and its packed form: one `u32` for each imp, `value | role << 8 | parent << 16`,
//! in preorder.

use super::grammar::{self, Color, MAX_DEPTH, MAX_IMPS, R_SHAPES, Size};

/// Tree of 4 to 96 imps with a Generator as its root. The tree always follows the grammar, so that it can be rendered.
///
/// Imps are in preorder, children by ascending role. The number of an imp is its place in that order. Each imp has a
/// one-hot value, a role in its parent, and the number of its parent. The root has role 0 and parent 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clan {
    pub(super) len: u8,
    // Entries from `len` on are 0, so that equal clans have equal bytes.
    pub(super) values: [u8; MAX_IMPS],
    pub(super) roles: [u8; MAX_IMPS],
    pub(super) parents: [u8; MAX_IMPS],
}

impl Clan {
    const EMPTY: Self = Self {
        len: 0,
        values: [0; MAX_IMPS],
        roles: [0; MAX_IMPS],
        parents: [0; MAX_IMPS],
    };

    /// Returns the clan that play begins with: 8×8, black, without shapes.
    pub fn start() -> Self {
        let mut clan = Self::EMPTY;
        for (value, role) in [
            (grammar::GENERATOR, grammar::THIS),
            (Size::nearest(8).value(), grammar::R_WIDTH),
            (Size::nearest(8).value(), grammar::R_HEIGHT),
            (Color::LEAST.value(), grammar::R_BACKGROUND),
        ] {
            clan.push(value, role, 0);
        }
        clan
    }

    /// Returns the number of imps, 4 to 96.
    #[expect(clippy::len_without_is_empty, reason = "a clan is never empty")]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the one-hot values of the imps, in preorder.
    pub fn values(&self) -> &[u8] {
        &self.values[..self.len()]
    }

    /// Returns the roles of the imps in their parents, in preorder. The root has role 0.
    pub fn roles(&self) -> &[u8] {
        &self.roles[..self.len()]
    }

    /// Returns the numbers of the imps' parents, in preorder. The root has parent 0.
    pub fn parents(&self) -> &[u8] {
        &self.parents[..self.len()]
    }

    /// Returns one more than the number of the last imp of the sept rooted at `imp`.
    pub fn end(&self, imp: usize) -> usize {
        if imp == 0 {
            return self.len();
        }
        let behind = self.parents().get(imp + 1..).unwrap_or_default();
        let inside = behind
            .iter()
            .position(|&parent| usize::from(parent) < imp)
            .unwrap_or(behind.len());
        (imp + 1 + inside).min(self.len())
    }

    /// Returns the number of edges between the root and each imp.
    pub fn depths(&self) -> [u8; MAX_IMPS] {
        let mut depths = [0; MAX_IMPS];
        for imp in 1..self.len() {
            depths[imp] = depths[usize::from(self.parents[imp])] + 1;
        }
        depths
    }

    /// Returns the nearest imp at or above `imp` that is a shape. `None` if there is none.
    pub fn enclosing_shape(&self, imp: usize) -> Option<usize> {
        let mut at = imp;
        while at > 0 && at < self.len() {
            if grammar::is_shape(self.values[at]) {
                return Some(at);
            }
            at = usize::from(self.parents[at]);
        }
        None
    }

    /// Returns the width of the grid, 1 to 8.
    pub fn width(&self) -> usize {
        usize::from(Size::read(self.values[1]).get())
    }

    /// Returns the height of the grid, 1 to 8.
    pub fn height(&self) -> usize {
        usize::from(Size::read(self.values[2]).get())
    }

    /// Returns the background colour of the grid, 0 to 9.
    pub fn background(&self) -> u8 {
        Color::read(self.values[3]).get()
    }

    /// Returns the hash of the clan. Equal clans have equal hashes, in every build and on every machine.
    pub fn hash(&self) -> u64 {
        (0..self.len()).fold(0, |sum, imp| {
            sum.wrapping_add(self.hash_of(imp, self.values[imp]))
        })
    }

    /// Returns the summand of [`Clan::hash`] for `imp`, if its value were `value`.
    pub(super) fn hash_of(&self, imp: usize, value: u8) -> u64 {
        let (role, parent) = (self.roles[imp], self.parents[imp]);
        let packed = u64::from(value) | u64::from(role) << 8 | u64::from(parent) << 16 | (imp as u64) << 24;
        mix(packed)
    }

    /// True if `imp`, a width, height or length, is 1.
    pub(super) fn is_least(&self, imp: usize) -> bool {
        Size::read(self.values[imp]) == Size::LEAST
    }

    /// Appends an imp. The caller ensures that there is room and that the grammar allows it.
    pub(super) fn push(&mut self, value: u8, role: u8, parent: u8) {
        let at = self.len();
        if at < MAX_IMPS {
            self.values[at] = value;
            self.roles[at] = role;
            self.parents[at] = parent;
            self.len += 1;
        }
    }

    /// Returns the number of shapes in the list of `imp`.
    pub(super) fn shapes(&self, imp: usize) -> usize {
        let list = |&child: &usize| {
            usize::from(self.parents[child]) == imp && self.roles[child] >= grammar::R_SHAPES
        };
        (imp + 1..self.end(imp)).filter(list).count()
    }
}

/// Scrambles the bits of a number (the finaliser of SplitMix64).
pub(super) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Error: a list of numbers is not a clan. The message names the first imp that does not fit the grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClanError(String);

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
            let imps = packed.len();
            return Err(ClanError(format!(
                "a clan of {imps} imps (4 to {MAX_IMPS} are possible)"
            )));
        }
        let clan = Self::EMPTY;
        let mut reader = Reader { packed, clan };
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
            let role = grammar::role_name(role);
            return Err(ClanError(format!(
                "the clan ends after {imp} imps: imp {parent} has no {role}"
            )));
        };
        if depth > MAX_DEPTH {
            return Err(ClanError(format!(
                "imp {imp} is {depth} edges below the root (at most {MAX_DEPTH} are possible)"
            )));
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
        let (value, role, parent) = (packed & 0xff, packed >> 8 & 0xff, packed >> 16);
        ClanError(format!(
            "imp {imp} (value {value}, role {role}, parent {parent}): {expected} expected"
        ))
    }
}
