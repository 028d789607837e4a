//! Kinds of changes that moves make to what a clan draws, to count which ones are hard.

use super::{
    clan::Clan,
    grammar::{R_BACKGROUND, R_HEIGHT, R_PIVOT, R_WIDTH, R_X, R_Y},
    moves::Move,
};

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Width or height of the grid.
    GridSize,
    /// Colour of the background.
    Background,
    /// A shape more.
    NewShape,
    /// A copy of a shape.
    Copy,
    /// A shape less.
    Removal,
    /// Order of two shapes, of which the later lies on top.
    Order,
    /// Colour of a shape.
    Color,
    /// Place of a shape.
    Place,
    /// Width, height or length of a shape.
    ShapeSize,
    /// Direction of a line.
    Direction,
    /// Rotation of a shape: a new one, its turns, its pivot.
    Rotation,
    /// A group, a shape taken out of a group or a rotation, a dot as a line or rectangle or the other way round.
    Structure,
}

impl Change {
    /// Returns the kind of change that a move of an imp makes. `None` for marks, and if there is no such imp.
    pub fn of(clan: &Clan, imp: usize, made: Move) -> Option<Self> {
        let role = *clan.roles().get(imp)?;
        let parent = usize::from(*clan.parents().get(imp)?);
        let is_of_pivot = role == R_PIVOT || clan.roles().get(parent) == Some(&R_PIVOT);
        Some(match made.0 {
            Move::APPEND_DOT..=Move::INSERT_RECT => Self::NewShape,
            Move::DELETE => Self::Removal,
            Move::DUPLICATE => Self::Copy,
            Move::SWAP => Self::Order,
            Move::WRAP_ROTATION | Move::TURN_NEXT => Self::Rotation,
            Move::INC..=Move::MOVE_DOWN if is_of_pivot => Self::Rotation,
            Move::WRAP_GROUP..=Move::RECT_TO_DOT => Self::Structure,
            Move::INC | Move::DEC => match role {
                R_WIDTH | R_HEIGHT if parent == 0 => Self::GridSize,
                R_X | R_Y => Self::Place,
                _ => Self::ShapeSize,
            },
            Move::MOVE_LEFT..=Move::MOVE_DOWN => Self::Place,
            Move::SET_COLOR..=Move::SET_COLOR_9 if role == R_BACKGROUND => Self::Background,
            Move::SET_COLOR..=Move::SET_COLOR_9 => Self::Color,
            Move::DIR_CW | Move::DIR_CCW => Self::Direction,
            _ => return None,
        })
    }

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GridSize => "grid size",
            Self::Background => "background",
            Self::NewShape => "new shape",
            Self::Copy => "copy",
            Self::Removal => "removal",
            Self::Order => "order",
            Self::Color => "colour",
            Self::Place => "place",
            Self::ShapeSize => "shape size",
            Self::Direction => "direction",
            Self::Rotation => "rotation",
            Self::Structure => "structure",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::GeneratorGame;

    #[test]
    fn changes_are_told_apart_by_the_move_and_by_what_it_concerns() {
        // The line 4 to 10 is turned: the rotation is 4 then, the line 5, turns 12, the pivot 13.
        let line = Clan::start().after(0, Move(3)).unwrap();
        let turned = line.after(4, Move(Move::WRAP_ROTATION)).unwrap();
        let kinds = |clan: &Clan, moves: &[(usize, u8)]| -> Vec<Option<&str>> {
            let kind = |&(imp, made)| Change::of(clan, imp, Move(made)).map(Change::name);
            moves.iter().map(kind).collect()
        };
        let of_line = [
            (0, 1),
            (1, 20),
            (3, 27),
            (6, 19),
            (8, 27),
            (9, 35),
            (10, 19),
            (5, 22),
            (99, 19),
        ];
        let expected = [
            None,
            Some("grid size"),
            Some("background"),
            Some("place"),
            Some("colour"),
            Some("direction"),
            Some("shape size"),
            Some("place"),
            None,
        ];
        assert_eq!(kinds(&line, &of_line), expected);
        let of_turned = [
            (12, 37),
            (13, 22),
            (14, 19),
            (4, 14),
            (4, 22),
            (5, 11),
            (4, 8),
            (4, 9),
        ];
        let expected = [
            Some("rotation"),
            Some("rotation"),
            Some("rotation"),
            Some("structure"),
            Some("place"),
            Some("structure"),
            Some("removal"),
            Some("copy"),
        ];
        assert_eq!(kinds(&turned, &of_turned), expected);
        let all = (0..turned.len()).flat_map(|imp| (2..38).map(move |made| (imp, Move(made))));
        for (imp, made) in all.filter(|&(imp, made)| turned.after(imp, made).is_some()) {
            assert!(
                Change::of(&turned, imp, made).is_some(),
                "{} of {imp}",
                made.name()
            );
            assert!(GeneratorGame::action(imp, made) > 1);
        }
    }
}
