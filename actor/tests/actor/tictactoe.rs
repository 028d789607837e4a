//! Tic-tac-toe on the corner of an 8×8 board: short games, many transpositions, one symmetry in addition to the identity.

use games::{
    Action, ConstantPlane, Game, IllegalAction, Outcome, PlaneStack, Player, RowForm, RowLayout, StartError,
    Symmetry,
};
use serde::{Deserialize, Serialize};

const LINES: [[usize; 3]; 8] = [
    [0, 1, 2],
    [3, 4, 5],
    [6, 7, 8],
    [0, 3, 6],
    [1, 4, 7],
    [2, 5, 8],
    [0, 4, 8],
    [2, 4, 6],
];

#[derive(Clone, Debug)]
pub struct TicTacToe {
    cells: [Option<Player>; 9],
    to_move: Player,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// The start is the end of the game, which an actor must refuse.
    pub nothing_to_play: bool,
}

impl TicTacToe {
    fn has_line(&self, player: Player) -> bool {
        LINES
            .iter()
            .any(|line| line.iter().all(|&cell| self.cells[cell] == Some(player)))
    }

    fn mirrored(symmetry: Symmetry, cell: usize) -> usize {
        if symmetry == Symmetry::IDENTITY {
            cell
        } else {
            cell / 3 * 3 + 2 - cell % 3
        }
    }
}

/// The first player, the second player, an empty cell.
const SIGNS: [char; 3] = ['X', 'O', '.'];

/// Returns the player of a sign; `None` if it is not a sign.
fn player(sign: char) -> Option<Option<Player>> {
    match sign {
        'X' => Some(Some(Player::First)),
        'O' => Some(Some(Player::Second)),
        '.' => Some(None),
        _ => None,
    }
}

impl Game for TicTacToe {
    type Rules = Rules;
    type Encoding = ();

    const NAME: &'static str = "tic-tac-toe";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = 9;
    const SYMMETRIES: u8 = 2;

    /// Reads a position: nine characters, `X`, `O` or `.`, then the player to act, `X` or `O`.
    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        let text = position.unwrap_or(".........X");
        let reason = || StartError {
            game: Self::NAME,
            reason: format!("no position: {text}"),
        };
        let players: Vec<Option<Player>> = text
            .chars()
            .map(player)
            .collect::<Option<_>>()
            .ok_or_else(reason)?;
        let (&to_move, cells) = players.split_last().ok_or_else(reason)?;
        Ok(Self {
            cells: cells.try_into().map_err(|_| reason())?,
            to_move: to_move.ok_or_else(reason)?,
            rules: *rules,
        })
    }

    fn encoding(options: u32) -> Result<(), StartError> {
        if options == 0 {
            return Ok(());
        }
        Err(StartError {
            game: Self::NAME,
            reason: format!("no options {options}"),
        })
    }

    fn layout((): ()) -> RowLayout {
        RowLayout {
            game: Self::NAME.into(),
            options: 0,
            form: RowForm::Planes(PlaneStack {
                entries: 9,
                planes: 4,
                sparse: vec![0, 1, 2],
                constants: vec![ConstantPlane {
                    name: "second to move".into(),
                    plane: 3,
                    divisor: 1,
                    max: 1,
                }],
                ones: vec![],
            }),
            actions: 9,
            mirrored_actions: false,
            policy_head: games::PolicyHead::Dense,
        }
    }

    fn to_move(&self) -> Player {
        self.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.rules.nothing_to_play {
            return Some(Outcome::Draw);
        }
        [Player::First, Player::Second]
            .into_iter()
            .find(|&player| self.has_line(player))
            .map(Outcome::Won)
            .or_else(|| self.cells.iter().all(Option::is_some).then_some(Outcome::Draw))
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_none() {
            actions.extend((0..9).filter(|&cell| self.cells[cell as usize].is_none()));
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let mut legal = Vec::new();
        self.legal_actions(&mut legal);
        if !legal.contains(&action) {
            return Err(IllegalAction {
                action,
                reason: "taken",
            });
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        self.cells[action as usize] = Some(self.to_move);
        self.to_move = self.to_move.other();
    }

    fn position(&self) -> String {
        let players = self.cells.iter().copied().chain([Some(self.to_move)]);
        players
            .map(|player| SIGNS[player.map_or(2, Player::index)])
            .collect()
    }

    fn allows(&self, _: Symmetry) -> bool {
        true
    }

    fn write_row(&self, (): (), symmetry: Symmetry, row: &mut Vec<u32>) {
        for cell in 0..9 {
            let plane = match self.cells[cell] {
                None => 0,
                Some(player) if player == self.to_move => 1,
                Some(_) => 2,
            };
            let seen = Self::mirrored(symmetry, cell);
            row.push((64 * plane + 8 * (seen / 3) + seen % 3) as u32);
        }
        row.push(self.to_move.index() as u32);
    }

    fn policy_index(&self, (): (), symmetry: Symmetry, action: Action) -> u32 {
        Self::mirrored(symmetry, action as usize) as u32
    }
}
