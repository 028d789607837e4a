//! Clans as text for people: one line for the Generator and for each shape, with its leaves.

use std::fmt::{self, Write as _};

use super::{
    clan::Clan,
    grammar::{self, COORDS},
};

/// Writes a clan with one line for the Generator and for each shape. A line begins with the imp's number.
pub(super) fn write(clan: &Clan) -> String {
    let depths = clan.depths();
    let mut text = String::new();
    for (imp, &depth) in depths.iter().enumerate().take(clan.len()) {
        let (value, role) = (clan.values[imp], clan.roles[imp]);
        if imp > 0 && !grammar::is_shape(value) {
            continue;
        }
        if imp > 0 {
            text.push('\n');
        }
        let indent = 2 * usize::from(depth);
        let _ = write!(text, "{imp:>2} {:indent$}{}", "", grammar::value_name(value));
        let _ = match role {
            grammar::THIS => Ok(()),
            _ => write!(text, " ({})", grammar::role_name(role)),
        };
        for child in imp + 1..clan.end(imp) {
            if usize::from(clan.parents[child]) == imp {
                write_leaf(clan, child, &mut text);
            }
        }
    }
    text
}

/// Writes ` number:name=value` for a leaf or a Coords. Writes nothing for a shape, which has its own line.
fn write_leaf(clan: &Clan, imp: usize, text: &mut String) {
    let value = clan.values[imp];
    let name = grammar::role_name(clan.roles[imp]);
    let _ = match value {
        COORDS => write!(
            text,
            " {imp}:{name}=({}, {})",
            grammar::value_name(clan.values[imp + 1]),
            grammar::value_name(clan.values[imp + 2])
        ),
        _ if grammar::is_leaf(value) => write!(text, " {imp}:{name}={}", grammar::value_name(value)),
        _ => Ok(()),
    };
}

impl Clan {
    /// Returns the text of the clan, with one line for the Generator and for each shape. Numbers of imps stand before
    /// their names. The x of a Coords has the number after it, the y the number after that.
    pub fn to_text(&self) -> String {
        write(self)
    }
}

impl fmt::Debug for Clan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&write(self))
    }
}
