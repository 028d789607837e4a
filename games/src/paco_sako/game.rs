//! [`PacoSako`]: a position with its history and rules, as a [`Game`].

use cozy_chess::Square;

use super::{
    action::{ACTIONS, Act},
    fen,
    history::History,
    legal,
    offer::Offer,
    piece::Kind,
    position::{Position, RequiredAction, Victory},
    row::{self, Encoding},
    rules::{DeadEnd, Rules, TurnCycles},
    threats, turn_draw, turn_win,
};
use crate::{
    Action, Game, IllegalAction, KnownOutcome, MoverValue, Outcome, Player, RowLayout, RowSymmetries,
    StartError, Symmetry,
};

/// Number of lifts without a new union or promotion that ends the game as a draw.
const NO_PROGRESS_LIMIT: u8 = 100;

/// A game of Paco Ŝako. White is [`Player::First`].
#[derive(Debug, PartialEq, Eq)]
pub struct PacoSako {
    position: Position,
    history: History,
    rules: Rules,
}

impl Clone for PacoSako {
    fn clone(&self) -> Self {
        Self {
            position: self.position,
            history: self.history.clone(),
            rules: self.rules,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.position = source.position;
        self.history.clone_from(&source.history);
        self.rules = source.rules;
    }
}

impl PacoSako {
    /// Returns the kind of action that the player to act must take next.
    pub fn required_action(&self) -> RequiredAction {
        self.position.required
    }

    /// Returns the result on the board. A dead end is not included; [`Game::outcome`] covers it.
    pub fn victory_state(&self) -> Victory {
        self.position.victory
    }

    /// Returns the number of lifts since the last new union or promotion, 0 to 100.
    pub fn no_progress(&self) -> u8 {
        self.position.no_progress
    }

    /// Returns the square behind a pawn that has just stepped two rows, 0 (a1) to 63 (h8).
    pub fn en_passant(&self) -> Option<u8> {
        self.position.en_passant.map(|square| square as u8)
    }

    /// Returns the square of the pawn that must be promoted next, 0 (a1) to 63 (h8).
    pub fn promotion(&self) -> Option<u8> {
        self.position.promotion.map(|square| square as u8)
    }

    /// Returns White's and Black's piece on a square, 0 (a1) to 63 (h8). A piece in the hand is on no square.
    pub fn pieces_on(&self, square: u8) -> (Option<Kind>, Option<Kind>) {
        let Some(square) = Square::try_index(square.into()) else {
            return (None, None);
        };
        let board = &self.position.board;
        (
            board.kind_at(Player::First, square),
            board.kind_at(Player::Second, square),
        )
    }

    /// Returns the hand of the player to act: its square (see [`PacoSako::pieces_on`]), the player's own piece, and the partner
    /// of a lifted union.
    pub fn in_hand(&self) -> Option<(u8, Kind, Option<Kind>)> {
        self.position
            .hand
            .map(|hand| (hand.square as u8, hand.own, hand.partner))
    }

    /// Returns the castling rights as a FEN writes them, e.g. `AHah` or `-`.
    pub fn castling(&self) -> String {
        fen::write_castling(&self.position.castling)
    }

    /// Returns the squares that `attacker` threatens, chains included: bit 0 is a1, bit 63 is h8. A piece in the hand is left
    /// out.
    pub fn threatened(&self, attacker: Player) -> u64 {
        threats::threatened(&self.position.board, attacker, self.position.en_passant).0
    }

    /// True if `attacker` could unite with the opponent's king if it were to move. Meant for states with an empty hand; a
    /// pawn that must be promoted counts as a queen.
    pub fn is_sako(&self, attacker: Player) -> bool {
        if !self.position.is_running() {
            return false;
        }
        let mut board = self.position.board;
        if let Some(square) = self.position.promotion {
            board.put(self.position.to_move, square, Kind::Queen);
        }
        let king = board.of(attacker.other(), Kind::King);
        !king.is_empty() && threats::threatens_any(&board, attacker, self.position.en_passant, king)
    }

    /// Returns a value that only looks at wins within a turn: 1 if the player to act knows one ([`Game::known`]), or else -0.5 if the
    /// opponent threatens one ([`PacoSako::is_sako`], the board as it is), or else 0. A reference for searches without a network,
    /// after the player Luna of the original engine's project.
    pub fn threat_value(&self) -> MoverValue {
        MoverValue::new(match self.known() {
            Some(_) => 1.0,
            None if self.is_sako(self.to_move().other()) => -0.5,
            None => 0.0,
        })
    }

    fn offer(&self) -> Offer<'_> {
        Offer {
            position: &self.position,
            rules: &self.rules,
            chain_states: self.history.chain_states(),
        }
    }

    /// Adds the present state to the states of its turn, if a piece is in the hand and cycles are forbidden.
    fn record_chain_state(&mut self) {
        if self.position.hand.is_some() && self.rules.turn_cycles == TurnCycles::Forbid {
            self.history.push_chain_state(self.position.digest());
        }
    }

    /// Records the position at the end of a turn, and ends the game if it is a draw.
    fn record_position(&mut self) {
        if !self.position.is_running() {
            return;
        }
        if self.position.no_progress >= NO_PROGRESS_LIMIT {
            self.position.victory = Victory::NoProgressDraw;
            return;
        }
        let limit = usize::from(self.rules.draw_after_n_repetitions);
        if limit > 0 && self.history.record(self.position.digest()) >= limit {
            self.position.victory = Victory::RepetitionDraw;
        }
    }
}

impl Game for PacoSako {
    type Rules = Rules;
    type Encoding = Encoding;

    const NAME: &'static str = row::NAME;
    const PLAYERS: u8 = 2;

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        let position = fen::read(position.unwrap_or(fen::START)).map_err(StartError::of::<Self>)?;
        if rules.dead_end != DeadEnd::Neutral {
            check_playable(&position).map_err(StartError::of::<Self>)?;
        }
        let mut game = Self {
            position,
            history: History::default(),
            rules: *rules,
        };
        game.record_chain_state();
        Ok(game)
    }

    fn encoding(_: &Rules, options: u32) -> Result<Encoding, StartError> {
        Encoding::new(options)
    }

    fn layout(encoding: Encoding) -> RowLayout {
        row::layout(encoding)
    }

    fn actions(&self) -> u32 {
        ACTIONS
    }

    fn symmetries(&self) -> u8 {
        row::SYMMETRIES
    }

    fn to_move(&self) -> Player {
        self.position.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        match self.position.victory {
            Victory::PacoVictoryWhite => Some(Outcome::Won(Player::First)),
            Victory::PacoVictoryBlack => Some(Outcome::Won(Player::Second)),
            Victory::NoProgressDraw | Victory::RepetitionDraw => Some(Outcome::Draw),
            Victory::Running if self.rules.dead_end == DeadEnd::Neutral => None,
            Victory::Running if self.offer().is_possible() => None,
            Victory::Running => Some(Outcome::Won(self.position.to_move.other())),
        }
    }

    fn ending(&self) -> Option<&'static str> {
        match self.position.victory {
            Victory::PacoVictoryWhite | Victory::PacoVictoryBlack => Some("paco"),
            Victory::NoProgressDraw => Some("no-progress"),
            Victory::RepetitionDraw => Some("repetition"),
            Victory::Running => self.outcome().map(|_| "dead-end"),
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        self.offer().legal().for_each(|act| actions.push(act.number()));
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let refuse = |reason| Err(IllegalAction { action, reason });
        let Some(act) = Act::from_number(action) else {
            return refuse("there is no such action");
        };
        if !self.position.is_running() {
            return refuse("the game is over");
        }
        if !self.offer().legal().has(act) {
            return refuse(match (self.position.required, act) {
                (RequiredAction::Lift, Act::Lift(_)) => "the player has no piece there that can move",
                (RequiredAction::Lift, _) => "a piece must be lifted",
                (RequiredAction::Place, Act::Place(_)) if legal::plain(&self.position).has(act) => {
                    "the rules forbid it: the turn would repeat a state, or could not be completed"
                }
                (RequiredAction::Place, Act::Place(_)) => "the lifted piece cannot be placed there",
                (RequiredAction::Place, _) => "the lifted piece must be placed",
                (_, Act::Promote(_)) => "the turn could not be completed after this promotion",
                _ => "a pawn must be promoted",
            });
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        let Some(act) = Act::from_number(action) else {
            return;
        };
        let mover = self.position.to_move;
        let effect = self.position.apply(act);
        if effect.is_progress {
            self.history.clear();
        }
        if self.position.to_move != mover {
            self.history.end_turn();
        }
        if effect.is_recorded {
            self.record_position();
        }
        if matches!(act, Act::Place(_) | Act::Promote(_)) {
            self.record_chain_state();
        }
    }

    fn position(&self) -> String {
        fen::write(&self.position)
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        match symmetry {
            Symmetry::IDENTITY => true,
            // Castling is the only rule that differs between left and right.
            Symmetry(1) => !self.position.castling.any(),
            _ => false,
        }
    }

    fn write_row(&self, encoding: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        row::write(&self.position, encoding, symmetry, row);
    }

    fn policy_index(&self, encoding: Encoding, symmetry: Symmetry, action: Action) -> u32 {
        row::policy_index(&self.position, encoding, symmetry, action)
    }

    fn row_symmetries(encoding: Encoding) -> RowSymmetries {
        row::symmetries(encoding)
    }

    /// Returns a win within the turn, if the search of its chains finds one.
    fn known(&self) -> Option<KnownOutcome> {
        let line = turn_win::shortest(&self.position, self.history.chain_states())?;
        if self.rules.dead_end == DeadEnd::Forbid {
            // With this rule a second search with its own limit decides which actions are offered, so the line is played by it.
            let mut state = self.clone();
            for &act in &line {
                state.play(act.number()).ok()?;
            }
        }
        Some(KnownOutcome {
            outcome: Outcome::Won(self.position.to_move),
            actions: line.len() as u32,
        })
    }

    /// True if one lift and one placement, or the placement alone, end the game by repetition.
    fn can_draw(&self) -> bool {
        let limit = usize::from(self.rules.draw_after_n_repetitions);
        let is_near = limit > 1 && self.history.most() + 1 >= limit;
        is_near && turn_draw::is_possible(&self.position, |digest| self.history.count(digest) + 1 >= limit)
    }
}

/// Checks that a game can be played to its end from a position. Compatibility rules skip this check.
///
/// # Errors
/// Reason why it cannot.
fn check_playable(position: &Position) -> Result<(), &'static str> {
    let board = &position.board;
    for player in [Player::First, Player::Second] {
        let in_hand = position.hand.map_or([None, None], |hand| {
            if player == position.to_move {
                [Some(hand.own), None]
            } else {
                [hand.partner, None]
            }
        });
        let held = in_hand.into_iter().flatten();
        let kings = board.of(player, Kind::King).len() as usize
            + held.clone().filter(|&kind| kind == Kind::King).count();
        if kings > 1 {
            return Err("a colour has more than one king");
        }
        if !board.of(player, Kind::King).is_disjoint(board.unions()) {
            return Err("a king is in a union, so the game is over");
        }
        if board.occupied(player).len() as usize + held.count() > 16 {
            return Err("a colour has more than sixteen pieces");
        }
    }
    if position.hand.is_some_and(|hand| {
        hand.partner.is_some() && [Some(hand.own), hand.partner].contains(&Some(Kind::King))
    }) {
        return Err("the hand holds a king in a union");
    }
    if board.all().is_empty() && position.hand.is_none() {
        return Err("the board is empty");
    }
    Ok(())
}
