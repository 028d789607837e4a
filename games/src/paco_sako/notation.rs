//! Paco Ŝako for people and in JSON: the drawing of the board, and the notation of turns.
//!
//! A turn is written as its squares: the square where a piece is lifted, the square where it is placed, the square where a
//! piece released by it is placed, and so on. A promotion is a letter after the square.

use documented::DocumentedFields as _;
use serde_json::{Value, json};

use super::{
    DeadEnd, Encoding, Kind, PacoSako, RequiredAction, Rules, TurnCycles, Victory, action::ACTIONS,
    lessons::LESSONS,
};
use crate::{
    Action, Game, Notation, Player,
    notation::{JsonFields, Lesson},
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, CHESS_BOARD, Cell, Clicks, Hand, Piece, Scene},
};

/// First action that places. Actions below it lift.
const PLACE: Action = 64;
/// First action that promotes.
const PROMOTE: Action = 128;

/// One word of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Square, 0 (a1) to 63 (h8).
    Square(u32),
    /// Action of a promotion.
    Promotion(Action),
    /// Castling, with the file of the king's destination.
    Castle(u32),
}

impl Notation for PacoSako {
    const PLAYER_NAMES: [&'static str; 2] = ["White", "Black"];

    const HELP: &'static str = "\
Moves: the squares of the turn, e.g. e2 e4. If a piece is released, add the square it is placed on: d1 d5 e6.
A promotion is a letter after the pawn's square: b7 b8 q (r rook, n knight, b bishop, q queen). Castling: O-O, O-O-O or e1 g1.
A turn may be entered in parts; undo takes back the last part.";

    const LESSONS: &'static [Lesson] = LESSONS;

    /// Counts of the original engine: two openings, unions, long chains, promotions, Fischer-random castling.
    const KNOWN_PERFT: &'static [KnownPerft] = &[
        KnownPerft {
            position: None,
            counts: &[10, 20, 200, 400, 4472, 8902],
        },
        KnownPerft {
            position: Some("r3kbnr/ppp2ppp/2n5/1B1pp3/1PP1P1bq/5N2/P2P1PPP/RNBQK2R w 0 AHah - -"),
            counts: &[13, 30, 392, 1470, 19400, 47257],
        },
        KnownPerft {
            position: Some("r2q1b2/p1pk1p2/2np1n1r/3QdSpa/4PaP1/3P1B2/PPP5/R3KB1R w 0 AHah - -"),
            counts: &[14, 48, 539, 1889, 20920, 79211],
        },
        KnownPerft {
            position: Some("5rk1/ppp2pep/8/1B1ah2D/4f1b1/2N3SP/PPP2DP1/5L1K w 0 AHah - -"),
            counts: &[14, 55, 833, 2878, 35577, 153889],
        },
        KnownPerft {
            position: Some("4N3/3N3k/3sw1Ta/3p1o1e/hW1J1by1/8/2L4d/h4K2 b 29 - - -"),
            counts: &[14, 97, 1332, 8078, 112575, 765295],
        },
        KnownPerft {
            position: Some("nb3N2/1qpP1P2/B1a1pQ2/1P1RpR1p/2BPr2K/2P3Pd/r1a2p1b/1n2k3 w 0 - - -"),
            counts: &[12, 37, 450, 1329, 13331, 48023],
        },
        KnownPerft {
            position: Some("n1rk1rbb/ppppp1pp/1Bn2pq1/8/5P1Q/8/PPPPP1PP/NNR2RKB b 7 cf - -"),
            counts: &[13, 40, 596, 1624, 21181, 64956],
        },
    ];

    const OPTIONS: u32 = 1;

    const OPTION_NAMES: &'static [&'static str] = &["perspective", "must-lift", "must-promote"];

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("King's pawn", &["e2 e4"]),
        ProbeLine::new("Pawns face to face", &["e2 e4", "e7 e5"]),
        ProbeLine::new("A pawn to unite with", &["e2 e4", "d7 d5"]),
        ProbeLine::new("First union", &["e2 e4", "d7 d5", "e4 d5"]),
        ProbeLine::new("Queen out", &["e2 e4", "e7 e5", "d1 h5", "b8 c6"]),
        ProbeLine {
            name: "A chain to find",
            start: Some("4k3/1P6/4p3/3a4/8/8/8/3RK3 w 0 - - -"),
            turns: &[],
        },
        ProbeLine {
            name: "King in reach",
            start: Some("5k2/8/8/8/1Q6/8/8/4K3 w 0 - - -"),
            turns: &[],
        },
    ];

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    fn scene(&self, last_turn: &[Action]) -> Scene {
        let board = Board::of_squares(CHESS_BOARD, |square| {
            let (white, black) = self.pieces_on(square as u8);
            Cell {
                pieces: [chessman(Player::First, white), chessman(Player::Second, black)]
                    .into_iter()
                    .flatten()
                    .collect(),
                is_last: last_turn
                    .iter()
                    .any(|&action| action < PROMOTE && action % PLACE == square),
                ..Cell::default()
            }
        });
        let mover = self.to_move();
        let hand = self.in_hand().map(|(square, own, partner)| Hand {
            square: CHESS_BOARD.name(square.into()),
            cell: CHESS_BOARD.cell(square.into()),
            pieces: [chessman(mover, Some(own)), chessman(mover.other(), partner)]
                .into_iter()
                .flatten()
                .collect(),
        });
        Scene {
            hand,
            ..self.scene_of(vec![Board {
                pieces_per_cell: 2,
                ..board
            }])
        }
    }

    /// Returns one click to lift, and one to place. A promotion is picked on the pawn's square.
    fn clicks(&self, action: Action) -> Clicks {
        if action < PROMOTE {
            return Clicks::on([CHESS_BOARD.cell(action % PLACE)]);
        }
        Clicks {
            piece: chessman(self.to_move(), promoted(action)),
            ..Clicks::on(self.promotion().map(|square| CHESS_BOARD.cell(square.into())))
        }
    }

    fn remark(&self) -> String {
        if self.outcome().is_some() {
            return String::new();
        }
        match self.required_action() {
            RequiredAction::Lift if self.is_sako(self.to_move().other()) => "Ŝako!".into(),
            RequiredAction::Lift => String::new(),
            RequiredAction::Place => hand_remark(self),
            _ => promotion_remark(self),
        }
    }

    fn is_mid_turn(&self) -> bool {
        !matches!(
            self.required_action(),
            RequiredAction::Lift | RequiredAction::PromoteThenLift
        )
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let words = split_words(text)?;
        let mover = self.to_move();
        let mut now = self.clone();
        let mut actions = Vec::new();
        for word in words {
            if now.outcome().is_some() || now.to_move() != mover {
                return Err(format!(
                    "the turn is over after {}: {} does not belong to it",
                    self.write_turn(&actions),
                    word_text(word)
                ));
            }
            for action in actions_of(&now, word)? {
                let before = now.clone();
                now.play(action)
                    .map_err(|error| explain_illegal(&before, action, error.reason))?;
                actions.push(action);
            }
        }
        Ok(actions)
    }

    fn write_action(&self, action: Action) -> String {
        match action {
            0..PROMOTE => CHESS_BOARD.name(action % PLACE),
            _ => promoted(action).map_or_else(String::new, |kind| kind.letter(Player::Second).into()),
        }
    }

    /// Returns the rules under which turns that cannot be completed are not offered.
    fn people_rules() -> Rules {
        Rules {
            dead_end: DeadEnd::Forbid,
            ..Rules::default()
        }
    }

    /// Returns the rules of the original engine.
    fn json_rules() -> Rules {
        Rules::compatibility()
    }

    /// Reads an action code of the original engine, 1 to 132, which is one more than the action id.
    fn action_from_json(&self, value: &Value) -> Result<Action, String> {
        match value.as_u64().and_then(|code| Action::try_from(code).ok()) {
            Some(code @ 1..=ACTIONS) => Ok(code - 1),
            _ => Err(format!("{value} is not an action code (1 to {ACTIONS})")),
        }
    }

    fn action_to_json(&self, action: Action) -> Value {
        Value::from(action + 1)
    }

    fn outcome_name(&self) -> Option<&'static str> {
        match self.victory_state() {
            Victory::PacoVictoryWhite => Some("first"),
            Victory::PacoVictoryBlack => Some("second"),
            Victory::NoProgressDraw | Victory::RepetitionDraw => Some("draw"),
            // The board has not decided the game, but it is over: the player to act is in a dead end.
            Victory::Running => self.outcome().map(|_| "loss-of-mover"),
        }
    }

    fn json_fields(&self, _: Encoding) -> JsonFields {
        vec![
            ("required_action", json!(self.required_action())),
            ("no_progress", self.no_progress().into()),
            ("victory_state", json!(self.victory_state())),
        ]
    }
}

fn chessman(player: Player, kind: Option<Kind>) -> Option<Piece> {
    Piece::chessman(kind?.letter(player))
}

/// Returns the piece that a promotion makes. `None` for other actions.
fn promoted(action: Action) -> Option<Kind> {
    Kind::PROMOTIONS
        .get(action.checked_sub(PROMOTE)? as usize)
        .copied()
}

/// Returns the piece of the player to act on a square, and the opponent's.
fn own_and_other(state: &PacoSako, square: u8) -> (Option<Kind>, Option<Kind>) {
    let (white, black) = state.pieces_on(square);
    match state.to_move() {
        Player::First => (white, black),
        Player::Second => (black, white),
    }
}

/// Splits the text of a turn into words.
///
/// # Errors
/// Sentence for the person who wrote `text`.
fn split_words(text: &str) -> Result<Vec<Word>, String> {
    let castle = text.trim().to_lowercase().replace('0', "o");
    match castle.as_str() {
        "o-o" => return Ok(vec![Word::Castle(6)]),
        "o-o-o" => return Ok(vec![Word::Castle(2)]),
        _ => {}
    }
    let mut words = Vec::new();
    for part in text
        .split([' ', '\t', '-', '>', ',', 'x', '='])
        .filter(|part| !part.is_empty())
    {
        let fault = || {
            format!(
                "{part:?} is neither a square (e4) nor a promotion (r, n, b, q); `help` shows how moves are entered"
            )
        };
        // Squares may be written without spaces, and a promotion's letter directly after its square.
        let mut rest = part;
        while !rest.is_empty() {
            let (word, length) = match rest.get(..2).and_then(|name| CHESS_BOARD.read(name)) {
                Some(square) => (Word::Square(square), 2),
                None => (promotion(rest).ok_or_else(fault)?, rest.len()),
            };
            words.push(word);
            rest = rest.get(length..).ok_or_else(fault)?;
        }
    }
    if words.is_empty() {
        return Err("the turn is empty: enter its squares, e.g. e2 e4".into());
    }
    Ok(words)
}

fn promotion(text: &str) -> Option<Word> {
    let text = text.to_lowercase();
    let place = Kind::PROMOTIONS
        .iter()
        .position(|kind| text == kind.name() || text == kind.letter(Player::Second).to_string())?;
    Some(Word::Promotion(PROMOTE + place as Action))
}

fn word_text(word: Word) -> String {
    match word {
        Word::Square(square) => CHESS_BOARD.name(square),
        Word::Promotion(action) => promoted(action).map_or("", Kind::name).into(),
        Word::Castle(6) => "O-O".into(),
        Word::Castle(_) => "O-O-O".into(),
    }
}

/// Returns the actions that a word means in this state.
///
/// # Errors
/// Sentence for the person who wrote the word.
fn actions_of(state: &PacoSako, word: Word) -> Result<Vec<Action>, String> {
    let required = state.required_action();
    match (word, required) {
        (Word::Square(square), RequiredAction::Lift) => Ok(vec![square]),
        (Word::Square(square), RequiredAction::Place) => Ok(vec![PLACE + square]),
        (Word::Promotion(action), _) if required.is_promotion() => Ok(vec![action]),
        (Word::Square(_) | Word::Castle(_), _) if required.is_promotion() => Err(promotion_remark(state)),
        (Word::Promotion(action), _) => Err(format!(
            "there is no pawn here to promote to a {}",
            promoted(action).map_or("", Kind::name)
        )),
        (Word::Castle(file), RequiredAction::Lift) => {
            let king = (0..64u8)
                .find(|&square| own_and_other(state, square).0 == Some(Kind::King))
                .ok_or("there is no king to castle with")?;
            let king = Action::from(king);
            let target = king / 8 * 8 + file;
            let mut lifted = state.clone();
            let can = lifted.play(king).is_ok() && lifted.clone().play(PLACE + target).is_ok();
            if can && king.abs_diff(target) >= 2 {
                Ok(vec![king, PLACE + target])
            } else {
                Err("castling is not possible here: the right is lost, a square between king and rook is occupied, or the king would pass a threatened square".into())
            }
        }
        (Word::Castle(_), _) => Err(hand_remark(state)),
        // All promotions are handled above.
        (Word::Square(_), _) => Err(promotion_remark(state)),
    }
}

/// Returns a sentence that names the contents of the hand and the squares where they can be placed.
fn hand_remark(state: &PacoSako) -> String {
    let Some((square, own, partner)) = state.in_hand() else {
        return String::new();
    };
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    let places: Vec<String> = actions
        .iter()
        .map(|action| CHESS_BOARD.name(action % PLACE))
        .collect();
    let contents = match partner {
        Some(partner) => format!("union of {} and {}", own.name(), partner.name()),
        None => own.name().into(),
    };
    let square = CHESS_BOARD.name(square.into());
    let places = match places.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => places.concat(),
    };
    format!("Place the {contents} from {square}: {places}.")
}

/// Returns a sentence that asks for a promotion.
fn promotion_remark(state: &PacoSako) -> String {
    let square = state.promotion().map_or_else(String::new, |square| {
        format!(" on {}", CHESS_BOARD.name(square.into()))
    });
    format!("Promote the pawn{square}: r, n, b or q.")
}

/// Returns a sentence for a person that says why an action is not legal. `reason` is the game's own reason.
fn explain_illegal(state: &PacoSako, action: Action, reason: &str) -> String {
    if action >= PROMOTE {
        return reason.into();
    }
    let square = CHESS_BOARD.name(action % PLACE);
    // The position under rules that allow turns which cannot be completed. A FEN has no form for a pending promotion.
    let unrestricted = PacoSako::start(&Rules::compatibility(), Some(&state.position()));
    let is_legal_without_switches = unrestricted.is_ok_and(|mut state| state.play(action).is_ok());
    if action < PLACE {
        return match own_and_other(state, action as u8) {
            (None, None) => format!("{square} is empty"),
            (None, Some(_)) => format!("you have no piece on {square}"),
            _ if is_legal_without_switches => format!(
                "a turn that begins on {square} cannot be completed: it always ends with a piece in the hand that cannot be placed"
            ),
            (Some(kind), None) => format!("the {} on {square} cannot move", kind.name()),
            (Some(_), Some(_)) => {
                format!("the union on {square} cannot move: unions go to empty squares only")
            }
        };
    }
    let in_hand = state
        .in_hand()
        .map_or_else(String::new, |(at, own, partner)| match partner {
            Some(_) => format!("the union from {}", CHESS_BOARD.name(at.into())),
            None => format!("the {} from {}", own.name(), CHESS_BOARD.name(at.into())),
        });
    if !is_legal_without_switches {
        return format!("{in_hand} cannot be placed on {square}");
    }
    let with_cycles = PacoSako::start(
        &Rules {
            dead_end: DeadEnd::Forbid,
            turn_cycles: TurnCycles::Allow,
            ..Rules::default()
        },
        Some(&state.position()),
    );
    if with_cycles.is_ok_and(|mut state| state.play(action).is_ok()) {
        format!(
            "placing {in_hand} on {square} would repeat an earlier state of this turn, which the rules forbid"
        )
    } else {
        format!(
            "placing {in_hand} on {square} would release a piece that cannot be placed: the turn could not be completed"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

    fn at(fen: Option<&str>) -> PacoSako {
        PacoSako::start(&PacoSako::people_rules(), fen).unwrap()
    }

    fn read(state: &PacoSako, text: &str) -> Result<String, String> {
        state.read_turn(text).map(|actions| state.write_turn(&actions))
    }

    #[test]
    fn a_turn_is_read_in_several_notations() {
        let start = at(None);
        for text in ["e2 e4", "e2e4", "E2-E4", " e2 > e4 ", "e2,e4"] {
            assert_eq!(read(&start, text), Ok("e2 e4".into()), "{text}");
        }
        // A part of a turn: the rest may follow.
        assert_eq!(start.read_turn("e2"), Ok(vec![12]));
    }

    #[test]
    fn chains_promotions_and_castling_are_read() {
        // A white rook enters the union on d5; the released pawn unites with the pawn on e6.
        let chain = at(Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -"));
        assert_eq!(read(&chain, "d1 d5 e6"), Ok("d1 d5 e6".into()));
        let mut now = chain.clone();
        for action in chain.read_turn("d1 d5").unwrap() {
            now.play(action).unwrap();
        }
        assert!(now.is_mid_turn());
        let error = now.remark();
        assert!(
            error.starts_with("Place the pawn from d5: ") && error.ends_with("e6."),
            "{error}"
        );
        assert_eq!(read(&now, "e6"), Ok("e6".into()));

        let promotion = at(Some("4k3/1P6/8/8/8/8/8/4K3 w 0 - - -"));
        assert_eq!(read(&promotion, "b7 b8 q"), Ok("b7 b8 q".into()));
        assert_eq!(read(&promotion, "b7b8=N"), Ok("b7 b8 n".into()));
        assert_eq!(read(&promotion, "b7 b8 queen"), Ok("b7 b8 q".into()));
        assert!(
            read(&promotion, "b7 b8 c8")
                .unwrap_err()
                .contains("Promote the pawn on b8")
        );
        assert!(
            read(&promotion, "q")
                .unwrap_err()
                .contains("no pawn here to promote")
        );

        let castling = at(Some("4k3/8/8/8/8/8/8/R3K2R w 0 AH - -"));
        assert_eq!(read(&castling, "O-O"), Ok("e1 g1".into()));
        assert_eq!(read(&castling, "0-0-0"), Ok("e1 c1".into()));
        assert_eq!(read(&castling, "e1 c1"), Ok("e1 c1".into()));
        assert!(
            read(&at(None), "O-O")
                .unwrap_err()
                .contains("castling is not possible")
        );
    }

    #[test]
    fn an_illegal_turn_is_explained() {
        let start = at(None);
        for (text, says) in [
            ("e3 e4", "e3 is empty"),
            ("e7 e5", "you have no piece on e7"),
            ("a1 a3", "the rook on a1 cannot move"),
            ("e2 e5", "the pawn from e2 cannot be placed on e5"),
            (
                "e2 e4 e5",
                "the turn is over after e2 e4: e5 does not belong to it",
            ),
            ("hello", "\"hello\" is neither a square"),
            ("", "the turn is empty"),
            ("e2 é4", "is neither a square"),
        ] {
            let error = read(&start, text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    /// The rook can only be placed on the union of a8, and the pawn released there cannot move.
    #[test]
    fn a_turn_that_cannot_be_completed_is_explained() {
        // White: rook a1, union of a white pawn and a black rook on a8 (a pawn on its last row cannot move).
        let state = at(Some("C3k3/8/8/8/8/8/8/R3K3 w 0 - - -"));
        let mut lifted = state.clone();
        lifted.play(0).unwrap();
        let error = read(&lifted, "a8").unwrap_err();
        assert!(error.contains("could not be completed"), "{error}");
    }

    #[test]
    fn the_board_shows_unions_as_both_pieces() {
        let state = at(Some("C3k3/8/8/8/8/8/8/R3K3 w 0 - - -"));
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = state.draw(ascii);
        assert_eq!(
            board.lines().nth(1).unwrap(),
            "8 | Pr |    |    |    | k  |    |    |    |"
        );
        assert!(state.draw(Style::default()).contains("♙♜"));
    }
}
