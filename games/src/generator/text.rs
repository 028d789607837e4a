//! Clans as text for people: one line for each interior imp, leaves in line.

use std::fmt::Write as _;

use super::{
    clan::Clan,
    grammar::{self, COORDS},
};

/// The whole clan, one line for the Generator and each shape; a line begins with the imp's number.
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

/// ` name=value`, with the imp's number in front; nothing for shapes, which have lines of their own.
fn write_leaf(clan: &Clan, imp: usize, text: &mut String) {
    let value = clan.values[imp];
    let name = grammar::role_name(clan.roles[imp]);
    let _ = match value {
        COORDS => write!(
            text,
            " {imp}:{name}=({}, {})",
            clan.int(imp + 1),
            clan.int(imp + 2)
        ),
        _ if grammar::is_leaf(value) => write!(text, " {imp}:{name}={}", grammar::value_name(value)),
        _ => Ok(()),
    };
}

impl Clan {
    /// The clan as text, one line for the Generator and each shape. Every imp's number stands before it (an x is
    /// one behind its Coords, a y two).
    pub fn to_text(&self) -> String {
        write(self)
    }
}
