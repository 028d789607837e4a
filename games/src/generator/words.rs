//! Clans in words: what the program draws, one sentence for the grid and for each of its shapes.

use super::{
    clan::Clan,
    grammar::{
        self, DOT, GROUP, LINE, R_COLOR, R_DIRECTION, R_LENGTH, R_PIVOT, R_START, R_TURNS, RECT, ROTATION,
    },
};

impl Clan {
    /// Returns the clan in words: the grid, then its shapes in the order of painting, each on a line with its number from 1.
    /// Cells are (column, row) from (0, 0) at the top left.
    pub fn to_words(&self) -> String {
        let background = grammar::value_name(self.values[3]);
        let mut words = format!(
            "A {background} grid, {} wide and {} high.\n",
            self.width(),
            self.height()
        );
        for (number, shape) in (1..).zip(self.shapes_of(0)) {
            words += &format!("{number}. {}.\n", capitalised(&self.shape_in_words(shape)));
        }
        words
    }

    /// Returns the shapes in the list of `imp`, or the shape of a rotation.
    fn shapes_of(&self, imp: usize) -> impl Iterator<Item = usize> + '_ {
        let is_child = move |&child: &usize| usize::from(self.parents[child]) == imp;
        let children = (imp + 1..self.end(imp)).filter(is_child);
        children.filter(|&child| grammar::is_shape(self.values[child]))
    }

    fn shape_in_words(&self, shape: usize) -> String {
        let child = |role: u8| {
            let mut imps = shape + 1..self.end(shape);
            imps.find(|&imp| usize::from(self.parents[imp]) == shape && self.roles[imp] == role)
        };
        let named =
            |role: u8| child(role).map_or_else(String::new, |imp| grammar::value_name(self.values[imp]));
        let at = |role: u8| {
            let place = |imp: usize| {
                [1, 2]
                    .map(|leaf| grammar::value_name(self.values[imp + leaf]))
                    .join(", ")
            };
            child(role).map_or_else(String::new, |imp| format!("({})", place(imp)))
        };
        match self.values[shape] {
            DOT => format!("a {} dot at {}", named(R_COLOR), at(R_START)),
            LINE => format!(
                "a {} line of length {} from {}, {}",
                named(R_COLOR),
                named(R_LENGTH),
                at(R_START),
                named(R_DIRECTION)
            ),
            RECT => format!(
                "a {} rectangle, {} wide and {} high, at {}",
                named(R_COLOR),
                named(grammar::R_WIDTH),
                named(grammar::R_HEIGHT),
                at(R_START)
            ),
            GROUP => {
                let shapes: Vec<String> = self
                    .shapes_of(shape)
                    .map(|shape| self.shape_in_words(shape))
                    .collect();
                format!("a group ({})", shapes.join("; "))
            }
            ROTATION => {
                let turned: Vec<String> = self
                    .shapes_of(shape)
                    .map(|shape| self.shape_in_words(shape))
                    .collect();
                format!(
                    "{}, turned clockwise by {} about {}",
                    turned.join("; "),
                    named(R_TURNS),
                    at(R_PIVOT)
                )
            }
            value => grammar::value_name(value),
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Move;

    #[test]
    fn every_kind_of_shape_is_put_into_words() {
        let moves = [
            (1, 20),
            (3, 28),
            (0, 4),
            (5, 19),
            (8, 19),
            (0, 3),
            (11, 12),
            (17, 35),
            (0, 2),
            (11, 13),
        ];
        let clan = moves.iter().fold(Clan::start(), |clan, &(imp, made)| {
            clan.after(imp, Move(made)).unwrap()
        });
        let expected = "A green grid, 7 wide and 8 high.\n\
            1. A black rectangle, 2 wide and 1 high, at (1, 0).\n\
            2. A group (a black line of length 1 from (0, 0), down-right, turned clockwise by 90° about (3, 3); a black dot at \
            (0, 0)).\n";
        assert_eq!(clan.to_words(), expected, "{clan:?}");
    }
}
