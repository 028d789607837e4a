//! Games by name: generic code is written once as a [`Visitor`] and run for the game that a
//! configuration or a command line names.

use crate::{
    Game, chess::Chess, connect_four::ConnectFour, generator::GeneratorGame, othello::Othello,
    paco_sako::PacoSako,
};

/// Code that is generic over games.
pub trait Visitor {
    /// What it gives.
    type Output;

    /// Runs it for one game.
    fn visit<G: Game>(self) -> Self::Output;
}

/// There is no game of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no game {name:?}{}; there are {}", suggestion(.nearest), NAMES.join(", "))]
pub struct UnknownGame {
    /// The name that was asked for.
    pub name: String,
    /// The most similar name, where one is similar enough.
    pub nearest: Option<&'static str>,
}

impl UnknownGame {
    /// The error for a name that is not in [`NAMES`].
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            nearest: nearest(name),
        }
    }
}

/// Every game's name.
pub const NAMES: &[&str] = &[
    PacoSako::NAME,
    Chess::NAME,
    Othello::NAME,
    ConnectFour::NAME,
    GeneratorGame::NAME,
];

/// Runs `visitor` for the game called `name`.
///
/// # Errors
/// [`UnknownGame`], which lists the names.
pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownGame> {
    match name {
        PacoSako::NAME => Ok(visitor.visit::<PacoSako>()),
        Chess::NAME => Ok(visitor.visit::<Chess>()),
        Othello::NAME => Ok(visitor.visit::<Othello>()),
        ConnectFour::NAME => Ok(visitor.visit::<ConnectFour>()),
        GeneratorGame::NAME => Ok(visitor.visit::<GeneratorGame>()),
        _ => Err(UnknownGame::new(name)),
    }
}

/// The most similar known name: two or three slips of the pen are forgiven.
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;

    impl Visitor for Name {
        type Output = &'static str;

        fn visit<G: Game>(self) -> &'static str {
            G::NAME
        }
    }

    #[test]
    fn every_name_finds_its_game() {
        for &name in NAMES {
            assert_eq!(visit(name, Name), Ok(name));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        let error = visit("paco-saco", Name).unwrap_err();
        assert_eq!(error.nearest, Some("paco-sako"));
        assert!(error.to_string().contains("did you mean paco-sako?"), "{error}");
        assert_eq!(visit("tic-tac-toe", Name).unwrap_err().nearest, None);
    }
}
