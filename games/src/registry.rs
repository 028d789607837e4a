//! The list of all games: as a table ([`find`]), and for generic code that runs for a game by its name ([`visit`]).
//!
//! A game is one line of the list at the end of this file. The compiler checks that each entry implements [`Game`] and
//! [`Notation`]; all programs take names, rules, rows and notation from here.
//!
//! [`Game`]: crate::Game

use std::sync::{LazyLock, OnceLock};

use crate::{Notation, Sizes, erased::AnyGame};

/// Code that is generic over games, compiled once for each of them. Code that only needs a fact about a game, or walks through a
/// few of its states, uses [`find`] instead.
///
/// ```
/// use games::{Notation, registry::{self, Visitor}};
///
/// struct PlayerCount;
///
/// impl Visitor for PlayerCount {
///     type Output = u32;
///
///     fn visit<G: Notation>(self) -> u32 {
///         u32::from(G::PLAYERS)
///     }
/// }
///
/// assert_eq!(registry::visit("othello", PlayerCount), Ok(2));
/// assert_eq!(registry::visit("otello", PlayerCount), Err(registry::UnknownGame::new("otello")));
/// ```
pub trait Visitor {
    /// Result of the code.
    type Output;

    /// Runs the code for one game. An implementation that needs no notation may require `G: Game` only.
    fn visit<G: Notation>(self) -> Self::Output;
}

/// Error: there is no game of this name, or no board of this size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownGame {
    /// No game has the name.
    #[error("there is no game {name:?}{}; there are {}", suggestion(.nearest), NAMES.join(", "))]
    Name {
        /// Name that is not in [`NAMES`].
        name: String,
        /// Most similar name of a game, if one differs by at most three letters.
        nearest: Option<&'static str>,
    },
    /// The game has no board of this size.
    #[error("there is no board of {game} of size {size:?}: write {} to {}, e.g. {game}:{}", sizes.least, sizes.most, sizes.usual)]
    Size {
        /// Name of the game.
        game: &'static str,
        /// Text after the colon.
        size: String,
        /// Sizes that the game has.
        sizes: Sizes,
    },
    /// The board of the game has one size, so that the text may not name one.
    #[error("the board of {game} has one size: write {game}")]
    OneSize {
        /// Name of the game.
        game: &'static str,
    },
}

impl UnknownGame {
    /// Returns the error for a name that is not in [`NAMES`].
    pub fn new(name: &str) -> Self {
        Self::Name {
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

/// Returns the game that a person names, without its type: by its name, and for a board that is not of the usual size by that size
/// after a colon, which is short for the rule `size`. The rules of the returned game have the size.
///
/// ```
/// use games::registry::find;
///
/// assert_eq!(find("chess")?.name, "chess");
/// let game = find("gomoku:15")?;
/// assert_eq!((game.name, &game.rules()["size"]), ("gomoku", &15.into()));
/// assert!(find("chess:9").is_err() && find("gomoku:99").is_err());
/// # Ok::<(), games::registry::UnknownGame>(())
/// ```
///
/// # Errors
/// [`UnknownGame`], whose message lists the names or the sizes.
pub fn find(text: &str) -> Result<&'static AnyGame, UnknownGame> {
    let (name, size) = text
        .split_once(':')
        .map_or((text, None), |(name, size)| (name, Some(size)));
    let game = GAMES.iter().chain(outside()).find(|game| game.name == name);
    let game = game.ok_or_else(|| UnknownGame::new(name))?;
    let Some(size) = size else {
        return Ok(game);
    };
    let sizes = game.sizes.ok_or(UnknownGame::OneSize { game: game.name })?;
    let number = size.parse().ok().and_then(|size| of_size(game, size));
    number.ok_or_else(|| UnknownGame::Size {
        game: game.name,
        size: size.into(),
        sizes,
    })
}

/// Returns the game from outside of this process, if there is one.
fn outside() -> Option<&'static AnyGame> {
    static OUTSIDE: OnceLock<AnyGame> = OnceLock::new();
    crate::outside::name()?;
    Some(OUTSIDE.get_or_init(AnyGame::outside))
}

/// Returns the text, if [`find`] finds a game by it. For arguments of commands.
///
/// # Errors
/// As [`find`].
pub fn checked(text: &str) -> Result<String, UnknownGame> {
    find(text).map(|_| text.to_owned())
}

/// Returns a game with a board of this size; `None` if it has none.
pub(crate) fn of_size(game: &AnyGame, size: u32) -> Option<&'static AnyGame> {
    static SIZED: LazyLock<Vec<AnyGame>> = LazyLock::new(|| {
        let sized = GAMES.iter().filter_map(|game| Some((game, game.sizes?)));
        sized
            .flat_map(|(game, sizes)| (sizes.least..=sizes.most).map(|size| game.with_size(size)))
            .collect()
    });
    SIZED
        .iter()
        .find(|sized| sized.name == game.name && sized.size() == Some(size))
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
                _ if crate::outside::name() == Some(name) => Ok(visitor.visit::<crate::outside::Outside>()),
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
    crate::go::Go,
    crate::hex::Hex,
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
        assert!(error.to_string().contains("did you mean paco-sako?"), "{error}");
        let error = visit("tic-tac-toe", Name).unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }
}
