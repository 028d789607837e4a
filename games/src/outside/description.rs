//! [`Description`]: what a game from outside says about itself, as data. It is kept in a run's folder, where programs that do not know
//! the rules (store, learner) read the layout of rows, the number of actions and the symmetries.

use serde::{Deserialize, Serialize};

use super::Position;
use crate::{
    codec::{PolicyHead, RowError},
    layout::{RowForm, RowLayout},
    planes::{self, PlaneStack},
    registry,
    symmetries::{RowSymmetries, Symmetry},
};

/// Version of the form of a description.
const VERSION: u32 = 1;

/// Facts about a game from outside: names, players, layout, symmetries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of this form.
    pub version: u32,
    /// Name in configurations, records and metadata: lower-case letters, digits and `-`.
    pub name: String,
    /// Number of players, 1 or 2.
    pub players: u8,
    /// Names of the first and the second player.
    pub player_names: [String; 2],
    /// Layout of the rows, planes of squares, with the number of actions.
    pub layout: RowLayout,
    /// Symmetries besides the identity.
    pub symmetries: Vec<Maps>,
    /// SHA-256 of the source text of the rules, in hexadecimal. A run continues with another text, if nothing else differs
    /// ([`Description::difference`]).
    pub source: String,
    /// Place of the rules, as the host of the rules writes it, e.g. `/home/me/my_game.py:MyGame`. Empty if it is not known.
    #[serde(default)]
    pub rules: String,
    /// Each plane of the host as it is in rows: the largest number of the plane and the factor that made its numbers
    /// whole, or 0 and the factor if it is one number for the whole board. Only the host reads this. Empty if all planes of the host have as
    /// many planes of the layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planes: Vec<[u32; 2]>,
}

/// One symmetry, as permutations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maps {
    /// Image of each square `width·rank + file`.
    pub squares: Vec<u32>,
    /// Image of each action.
    pub actions: Vec<u32>,
}

/// Error: a description contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// The version is of a newer build.
    #[error("the description has version {0}, this build reads {VERSION}")]
    Version(u32),
    /// The name cannot be used.
    #[error(
        "{0:?} cannot be the name of a game: use at most 40 lower-case letters, digits and -, and no name of another game"
    )]
    Name(String),
    /// The number of players is not 1 or 2.
    #[error("{0} players: 1 or 2 are possible")]
    Players(u8),
    /// The layout contradicts itself.
    #[error(transparent)]
    Layout(#[from] RowError),
    /// A symmetry is not a permutation.
    #[error("symmetry {number}: `{what}` is not a permutation of 0 to {last}")]
    Symmetry {
        /// Number of the symmetry, from 1.
        number: usize,
        /// `squares` or `actions`.
        what: &'static str,
        /// Largest number that is permuted.
        last: usize,
    },
}

impl Description {
    /// Returns the description of a game of two players on planes of this height and width, without symmetries.
    pub fn of_planes(name: &str, stack: PlaneStack, actions: u32) -> Self {
        Self {
            version: VERSION,
            name: name.into(),
            players: 2,
            player_names: ["First", "Second"].map(String::from),
            layout: RowLayout {
                game: name.into(),
                options: 0,
                form: RowForm::Planes(stack),
                actions,
                mirrored_actions: false,
                policy_head: PolicyHead::Dense,
            },
            symmetries: Vec::new(),
            source: String::new(),
            rules: String::new(),
            planes: Vec::new(),
        }
    }

    /// Returns the first fact in which `new` differs so that it cannot continue a run of this description. Names of the players, the place
    /// and the text of the rules may differ.
    pub fn difference(&self, new: &Self) -> Option<String> {
        let board = |layout: &RowLayout| match layout.stack() {
            Ok(stack) => format!("{}×{}", stack.height, stack.width),
            Err(_) => "none".into(),
        };
        let planes = |layout: &RowLayout| layout.stack().map_or(0, |stack| stack.planes).to_string();
        let (own, other) = (&self.layout, &new.layout);
        let facts = [
            ("name", self.name.clone(), new.name.clone()),
            (
                "number of players",
                self.players.to_string(),
                new.players.to_string(),
            ),
            ("size of the board", board(own), board(other)),
            (
                "number of actions",
                own.actions.to_string(),
                other.actions.to_string(),
            ),
            ("number of planes in rows", planes(own), planes(other)),
            (
                "number of symmetries",
                self.symmetries.len().to_string(),
                new.symmetries.len().to_string(),
            ),
        ];
        let named = facts.into_iter().find(|(_, was, is)| was != is);
        named
            .map(|(what, was, is)| format!("the {what} is {is}, and was {was}"))
            .or_else(|| (own != other).then(|| "the layout of rows is another one".into()))
            .or_else(|| (self.symmetries != new.symmetries).then(|| "the symmetries are others".into()))
    }

    /// Returns the layout of a process without a game from outside.
    pub(super) fn nothing() -> RowLayout {
        let stack = PlaneStack {
            height: 1,
            width: 1,
            entries: 1,
            planes: 1,
            sparse: vec![0],
            constants: Vec::new(),
            ones: Vec::new(),
        };
        Self::of_planes("outside", stack, 1).layout
    }

    /// Checks that the description does not contradict itself.
    ///
    /// # Errors
    /// [`DescriptionError`] with the first contradiction.
    pub fn check(&self) -> Result<(), DescriptionError> {
        if self.version != VERSION {
            return Err(DescriptionError::Version(self.version));
        }
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_name = (1..=40).contains(&self.name.len()) && self.name.chars().all(is_plain);
        if !is_name || registry::NAMES.contains(&self.name.as_str()) || self.layout.game != self.name {
            return Err(DescriptionError::Name(self.name.clone()));
        }
        if !(1..=2).contains(&self.players) {
            return Err(DescriptionError::Players(self.players));
        }
        self.layout.check()?;
        let (squares, actions) = (self.layout.stack()?.squares(), self.layout.actions as usize);
        for (number, maps) in (1..).zip(&self.symmetries) {
            for (what, map, count) in [
                ("squares", &maps.squares, squares),
                ("actions", &maps.actions, actions),
            ] {
                if !is_permutation(map, count) {
                    let last = count - 1;
                    return Err(DescriptionError::Symmetry { number, what, last });
                }
            }
        }
        Ok(())
    }

    /// Returns the symmetries as maps of rows and policy entries.
    pub fn row_symmetries(&self) -> RowSymmetries {
        let image = |map: fn(&Maps) -> &Vec<u32>| {
            move |Symmetry(number): Symmetry, from: u32| {
                let maps = usize::from(number)
                    .checked_sub(1)
                    .and_then(|at| self.symmetries.get(at));
                maps.and_then(|maps| map(maps).get(from as usize))
                    .copied()
                    .unwrap_or(from)
            }
        };
        let count = 1 + self.symmetries.len().min(usize::from(u8::MAX - 1)) as u8;
        planes::symmetries(
            &self.layout,
            count,
            &[],
            image(|maps| &maps.squares),
            image(|maps| &maps.actions),
        )
    }

    /// Checks that a position keeps the promises of a game.
    ///
    /// # Errors
    /// Sentence with the promise that is broken.
    pub(super) fn check_position(&self, position: &Position) -> Result<(), String> {
        let Position {
            to_move,
            outcome,
            legal,
            row,
            ..
        } = position;
        if self.players == 1 && to_move.index() != 0 {
            return Err("the second player is to move in a game of one player".into());
        }
        if outcome.is_some() != legal.is_empty() {
            return Err(match outcome {
                Some(_) => format!("the game is over, but {} actions are legal", legal.len()),
                None => "the game is not over, but no action is legal".into(),
            });
        }
        if let Some(pair) = legal.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!(
                "the legal actions are not ascending: {} comes before {}",
                pair[0], pair[1]
            ));
        }
        if let Some(action) = legal.last().filter(|&&action| action >= self.layout.actions) {
            let most = self.layout.actions - 1;
            return Err(format!(
                "the legal action {action} is above {most}, the last action"
            ));
        }
        self.layout
            .validate(row)
            .map_err(|error| format!("the row is not valid: {error}"))
    }
}

fn is_permutation(map: &[u32], count: usize) -> bool {
    let mut seen = vec![false; count];
    let is_new = |&to: &u32| {
        seen.get_mut(to as usize)
            .is_some_and(|slot| !std::mem::replace(slot, true))
    };
    map.len() == count && map.iter().all(is_new)
}
