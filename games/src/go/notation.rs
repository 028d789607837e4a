//! Go for people: the drawing of the board, and moves as points.

use documented::DocumentedFields as _;

use super::{Go, Rules, area, board::Content, sgf};
use crate::{
    Action, Game, Notation, Outcome,
    notation::{JsonFields, Sgf},
    perft::KnownPerft,
    scene::{Board, Cell, Clicks, Piece, Scene, Squares, Surface},
};

/// Letters of the files. Go skips the I.
const LETTERS: &str = "abcdefghjklmnopqrst";

impl Go {
    /// Returns the points of the board with their names.
    pub(super) const fn squares(&self) -> Squares {
        Squares {
            letters: LETTERS,
            ..Squares::new(self.rules.size, self.rules.size)
        }
    }
}

impl Notation for Go {
    const PLAYER_NAMES: [&'static str; 2] = ["Black", "White"];

    const HELP: &'static str = "Moves: the point of the new stone (d4; there is no file i), or pass. Two passes end the game, and the board \
                                counts as it is: capture dead stones first.";

    /// Counts of OpenSpiel. The second position comes from a random game without captures; many chains have one liberty.
    const KNOWN_PERFT: &'static [KnownPerft] = &[
        KnownPerft {
            position: None,
            counts: &[82, 6643, 531_522],
        },
        KnownPerft {
            position: Some(
                "XO-XOX-OXX-O-O--O-XXXOO-X-O-X-OO-OOX--X-OO-XX-OOOXO-OXOXXXX-XOXX-XO-XXO--OXOOO-X- X 0 -",
            ),
            counts: &[25, 621, 14_276, 324_643],
        },
    ];

    const OPENING_PLIES: u32 = 4;

    /// Rules that a file does not name are those that people play by.
    const SGF: Option<Sgf<Self>> = Some(Sgf {
        read: |text| sgf::read(text, &Self::people_rules()),
        write: sgf::write,
    });

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    fn scene(&self, last_turn: &[Action]) -> Scene {
        let pieces = |square: u32| match self.board.content(self.board.point(square as usize)) {
            Content::Stone(player) => vec![Piece::disc(player)],
            Content::Empty | Content::Edge => Vec::new(),
        };
        let squares = self.squares();
        self.scene_of(vec![Board {
            surface: Surface::Lines,
            colors: ["black", "white"],
            is_turned_for_second: false,
            ..Board::of_squares(squares, |square| Cell {
                pieces: pieces(square),
                is_last: last_turn.contains(&square),
                is_star: squares.is_star(square),
                ..Cell::default()
            })
        }])
    }

    /// Returns one click on the point of the stone, and none for a pass, which is offered by its name.
    fn clicks(&self, action: Action) -> Clicks {
        let squares = self.squares();
        Clicks::on((action < squares.count()).then(|| squares.cell(action)))
    }

    fn remark(&self) -> String {
        let [black, white] = self.lost;
        let mut remark = format!(
            "Captured stones: {white} by Black, {black} by White. Komi {}.",
            self.rules.komi
        );
        if self.passes == 1 && self.end.is_none() {
            remark += " The other player has passed: a pass ends the game.";
        }
        remark
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim().to_lowercase();
        let squares = self.squares();
        let action = match text.as_str() {
            "pass" => squares.count(),
            _ => squares.read(&text).ok_or_else(|| {
                format!(
                    "{text:?} is not a point of the board, a1 to {}",
                    squares.name(squares.count() - 1)
                )
            })?,
        };
        self.turn_of(&text, action)
    }

    fn write_action(&self, action: Action) -> String {
        let squares = self.squares();
        match action < squares.count() {
            true => squares.name(action),
            false => "pass".into(),
        }
    }

    fn result_text(&self) -> Option<String> {
        let reason = self.ending()?.replace('-', " ");
        let points = self.score(crate::Player::First).abs() as f32 / 2.0;
        Some(match self.outcome()? {
            Outcome::Won(player) => {
                let winner = Self::PLAYER_NAMES[player.index()];
                match self.end {
                    Some((super::Ending::Decided, _)) => format!("{winner} has won ({reason})."),
                    _ => format!("{winner} has won by {points} points ({reason})."),
                }
            }
            _ => format!("The game is a draw ({reason})."),
        })
    }

    /// Returns the Tromp-Taylor rules, under which only two passes end a game.
    fn json_rules() -> Rules {
        Rules {
            early_end: false,
            ..Rules::default()
        }
    }

    fn json_fields(&self, _: super::Encoding) -> JsonFields {
        vec![("area", area::score(&self.board).into())]
    }
}
