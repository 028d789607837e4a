//! Hex on rhombic boards of 2×2 to 19×19 cells. Red (first) connects the first rank with the last, Blue (second) the first file with
//! the last. The game cannot end in a draw.
//!
//! | module | content |
//! |---|---|
//! | `links` | stones that are linked to the edges |
//! | `text` | positions as text, checked when read |
//! | `notation` | drawing and notation |
//!
//! Action `size·rank + file` (a1 = 0) puts a stone on an empty cell. Cell a1 is in an acute corner, at the top left of the drawing. Its
//! neighbours are b1 and a2; a cell in the middle has six neighbours.
//!
//! Action `size²` is the swap, which Blue may choose as the first action in place of a stone: the red stone leaves the
//! board, a blue one comes to the mirrored cell (rank and file exchanged), and Red is to move. So a player connects the same edges to
//! the end of the game.
//!
//! A network sees the board from the mover's side: for Blue, ranks and files are exchanged, in rows and policy entries, so that the own
//! edges are always the first and the last rank. A row has one entry for each cell, set in one of three planes (own stone, other stone,
//! empty), then 1 if the swap is possible. Next to the board all three planes are 0, and a convolution tells ranks from files, so the
//! edges need no plane. There is one symmetry besides the identity: the turn by 180°.

mod links;
mod notation;
mod text;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use self::links::Links;
use crate::{
    codec::PolicyHead,
    discs,
    game::{Action, Game, IllegalAction, KnownOutcome, Outcome, Sizes, StartError},
    layout::{RowForm, RowLayout},
    planes,
    stones::{self, Stones},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Rules of Hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Number of cells of a side, 2 to 19.
    pub size: u32,
    /// Permission for the second player to take over the first stone instead of placing one. Without it, the first player
    /// wins with perfect play.
    pub swap: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            size: SIZES.usual,
            swap: true,
        }
    }
}

/// A position of Hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hex {
    stones: Stones,
    /// Links of the first player, then of the second.
    links: [Links; 2],
    /// Rule of the same name.
    swap: bool,
    /// True if the player to move may swap.
    can_swap: bool,
    /// True if the other player has connected the edges.
    is_lost: bool,
}

const SIZES: Sizes = Sizes {
    least: 2,
    usual: 11,
    most: 19,
};

const SYMMETRIES: u8 = 2;

/// Exchange of ranks and files, as a symmetry of the square.
const TRANSPOSED: u8 = 7;
/// Turn by 180°, as a symmetry of the square.
const TURNED: u8 = 2;
/// Both of them, in either order.
const BOTH: u8 = 5;

impl Hex {
    fn empty(rules: &Rules) -> Self {
        Self {
            stones: Stones::none(rules.size),
            links: [Links::NONE; 2],
            swap: rules.swap,
            can_swap: false,
            is_lost: false,
        }
    }

    /// Puts a stone of a player on a cell, and follows its links.
    fn place(&mut self, cell: u32, player: Player) {
        self.stones.place(cell, player);
        let links = &mut self.links[player.index()];
        links.add(cell, self.stones.of(player), player, self.stones.side());
        self.is_lost = links.are_joined();
    }

    /// Returns the symmetry of the square in which a network sees the board.
    fn view(&self, symmetry: Symmetry) -> u8 {
        match (self.to_move(), symmetry) {
            (Player::First, Symmetry::IDENTITY) => 0,
            (Player::First, _) => TURNED,
            (Player::Second, Symmetry::IDENTITY) => TRANSPOSED,
            (Player::Second, _) => BOTH,
        }
    }
}

impl Game for Hex {
    type Rules = Rules;
    /// The rows of a board of this size.
    type Encoding = Rules;

    const NAME: &'static str = "hex";
    const PLAYERS: u8 = 2;
    const SIZES: Option<Sizes> = Some(SIZES);

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        SIZES.check::<Self>(rules.size)?;
        position.map_or(Ok(Self::empty(rules)), |text| {
            text::read(text, rules).map_err(StartError::of::<Self>)
        })
    }

    fn encoding(rules: &Rules, options: u32) -> Result<Rules, StartError> {
        SIZES.check::<Self>(rules.size)?;
        StartError::unless_zero::<Self>(options)?;
        Ok(*rules)
    }

    fn layout(Rules { size, .. }: Rules) -> RowLayout {
        // Each action but the swap is a cell, so the policy is a plane and one more entry.
        let mut layout = discs::layout::<Self>((size, size), size * size + 1, PolicyHead::Planes, true);
        layout.mirrored_actions = true;
        if let RowForm::Planes(stack) = &mut layout.form {
            for constant in &mut stack.constants {
                constant.name = "swap is possible".into();
            }
        }
        layout
    }

    fn actions(&self) -> u32 {
        self.stones.area() + 1
    }

    fn symmetries(&self) -> u8 {
        SYMMETRIES
    }

    fn to_move(&self) -> Player {
        self.stones.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        self.is_lost.then(|| Outcome::Won(self.to_move().other()))
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if !self.is_lost {
            self.stones
                .empty()
                .squares()
                .for_each(|square| actions.push(square));
            actions.extend(self.can_swap.then_some(self.stones.area()));
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        if action > self.stones.area() {
            return fault("there is no such cell");
        }
        if self.is_lost {
            return fault("the game is over");
        }
        if action == self.stones.area() {
            if !self.can_swap {
                return fault("only the second player may swap, as the first action, if the rules allow it");
            }
        } else if !self.stones.empty().has(action) {
            return fault("the cell has a stone");
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        // An action that is not legal changes nothing but the player to move.
        let mover = self.to_move();
        let is_first = self.stones.empty().count() == self.stones.area();
        if self.stones.empty().has(action) && !self.is_lost {
            self.place(action, mover);
        } else if action == self.stones.area() && self.can_swap {
            let first = self.stones.of(Player::First).squares().next();
            *self = Self::empty(&Rules {
                size: self.stones.side(),
                swap: self.swap,
            });
            if let Some(cell) = first {
                self.place(stones::turn(cell, self.stones.side(), TRANSPOSED), Player::Second);
            }
        }
        self.can_swap = is_first && self.swap;
        self.stones.to_move = mover.other();
    }

    fn position(&self) -> String {
        self.stones.text()
    }

    fn write_row(&self, _: Rules, symmetry: Symmetry, row: &mut Vec<u32>) {
        self.stones.write_squares(self.view(symmetry), row);
        row.push(u32::from(self.can_swap));
    }

    fn policy_index(&self, _: Rules, symmetry: Symmetry, action: Action) -> u32 {
        stones::turn(action, self.stones.side(), self.view(symmetry))
    }

    fn row_symmetries(rules: Rules) -> RowSymmetries {
        let turn = |_, entry| stones::turn(entry, rules.size, TURNED);
        planes::symmetries(&Self::layout(rules), SYMMETRIES, &[], turn, turn)
    }

    fn known(&self) -> Option<KnownOutcome> {
        let mover = self.to_move();
        let links = &self.links[mover.index()];
        let wins = links.can_join(self.stones.empty(), mover, self.stones.side());
        wins.then(|| KnownOutcome::win_at_once(mover))
    }
}
