//! The list of all games: as a table ([`find`]), and for generic code that runs for a game by its name ([`visit`]).
//!
//! A game is one line of the list at the end of this file. The compiler checks that each entry implements [`Game`] and
//! [`Notation`]; all programs take names, rules, rows and notation from here.
//!
//! [`Game`]: crate::Game

use crate::{Notation, erased::AnyGame};

/// Code that is generic over games, compiled once for each of them. Code that only needs a fact about a game, or walks through a
/// few of its states, uses [`find`] instead.
///
/// ```
/// use games::{Notation, registry::{self, Visitor}};
///
/// struct ActionCount;
///
/// impl Visitor for ActionCount {
///     type Output = u32;
///
///     fn visit<G: Notation>(self) -> u32 {
///         G::ACTIONS
///     }
/// }
///
/// assert_eq!(registry::visit("othello", ActionCount), Ok(65));
/// assert_eq!(registry::visit("otello", ActionCount).unwrap_err().nearest, Some("othello"));
/// ```
pub trait Visitor {
    /// Result of the code.
    type Output;

    /// Runs the code for one game. An implementation that needs no notation may require `G: Game` only.
    fn visit<G: Notation>(self) -> Self::Output;
}

/// Error: no game has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no game {name:?}{}; there are {}", suggestion(.nearest), NAMES.join(", "))]
pub struct UnknownGame {
    /// Name that is not in [`NAMES`].
    pub name: String,
    /// Most similar name of a game, if one differs by at most three letters.
    pub nearest: Option<&'static str>,
}

impl UnknownGame {
    /// Returns the error for a name that is not in [`NAMES`].
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            nearest: nearest(name),
        }
    }
}

/// Returns the game with the least edit distance to `name`, if that is at most 3.
fn nearest(name: &str) -> Option<&'static str> {
    let distance = |known: &&&str| strsim::damerau_levenshtein(&name.to_lowercase(), known);
    NAMES
        .iter()
        .min_by_key(distance)
        .filter(|known| distance(known) <= 3)
        .copied()
}

fn suggestion(nearest: &Option<&str>) -> String {
    nearest
        .map(|name| format!(" (did you mean {name}?)"))
        .unwrap_or_default()
}

/// Returns the game called `name`, without its type.
///
/// # Errors
/// [`UnknownGame`], whose message lists the names.
pub fn find(name: &str) -> Result<&'static AnyGame, UnknownGame> {
    let found = GAMES.iter().find(|game| game.name == name);
    found.ok_or_else(|| UnknownGame::new(name))
}

/// Makes [`NAMES`], the table for [`find`], and [`visit`] from the list of games.
macro_rules! games {
    ($($game:ty),* $(,)?) => {
        /// Names of all games.
        pub const NAMES: &[&str] = &[$(<$game as crate::Game>::NAME),*];

        static GAMES: &[AnyGame] = &[$(AnyGame::of::<$game>()),*];

        /// Runs `visitor` for the game called `name`.
        ///
        /// # Errors
        /// [`UnknownGame`], whose message lists the names.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownGame> {
            match name {
                $(<$game as crate::Game>::NAME => Ok(visitor.visit::<$game>()),)*
                _ => Err(UnknownGame::new(name)),
            }
        }
    };
}

games![
    crate::paco_sako::PacoSako,
    crate::chess::Chess,
    crate::othello::Othello,
    crate::connect_four::ConnectFour,
    crate::generator::GeneratorGame,
    crate::gomoku::Gomoku,
];

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;

    impl Visitor for Name {
        type Output = &'static str;

        fn visit<G: Notation>(self) -> &'static str {
            G::NAME
        }
    }

    #[test]
    fn every_name_finds_its_game_and_no_name_occurs_twice() {
        for (number, &name) in NAMES.iter().enumerate() {
            assert_eq!(visit(name, Name), Ok(name));
            assert_eq!(find(name).unwrap().name, name);
            assert!(!NAMES[..number].contains(&name));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        let error = find("paco-saco").unwrap_err();
        assert_eq!(error.nearest, Some("paco-sako"));
        assert!(error.to_string().contains("did you mean paco-sako?"), "{error}");
        assert_eq!(visit("tic-tac-toe", Name).unwrap_err().nearest, None);
    }
}
