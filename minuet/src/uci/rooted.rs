//! Chess as the engine searches it: at the root it may be limited to some of the moves (`searchmoves`).

use std::sync::Arc;

use games::{
    Action, Game, IllegalAction, Outcome, Player, RowLayout, StartError, Symmetry,
    chess::{Chess, Rules},
};

/// A position of a search.
#[derive(Debug)]
pub struct Rooted {
    chess: Chess,
    /// The only moves there are (`searchmoves`); all others are forgotten after the first move.
    only: Option<Arc<[Action]>>,
}

impl Rooted {
    /// The root of a search. `only`, ascending, limits its moves; an empty list does not.
    pub fn new(chess: Chess, only: &[Action]) -> Self {
        Self {
            chess,
            only: (!only.is_empty()).then(|| only.into()),
        }
    }

    /// The position.
    pub fn chess(&self) -> &Chess {
        &self.chess
    }
}

impl Clone for Rooted {
    fn clone(&self) -> Self {
        Self {
            chess: self.chess.clone(),
            only: self.only.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.chess.clone_from(&source.chess);
        self.only.clone_from(&source.only);
    }
}

impl Game for Rooted {
    type Rules = Rules;
    type Encoding = <Chess as Game>::Encoding;

    const NAME: &'static str = Chess::NAME;
    const PLAYERS: u8 = Chess::PLAYERS;
    const ACTIONS: u32 = Chess::ACTIONS;
    const SYMMETRIES: u8 = Chess::SYMMETRIES;

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        Ok(Self::new(Chess::start(rules, position)?, &[]))
    }

    fn encoding(options: u32) -> Result<Self::Encoding, StartError> {
        Chess::encoding(options)
    }

    fn layout(encoding: Self::Encoding) -> RowLayout {
        Chess::layout(encoding)
    }

    fn to_move(&self) -> Player {
        self.chess.to_move()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.chess.outcome()
    }

    fn ending(&self) -> Option<&'static str> {
        self.chess.ending()
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        self.chess.legal_actions(actions);
        if let Some(only) = &self.only {
            actions.retain(|action| only.contains(action));
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.chess.play(action)?;
        self.only = None;
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        self.chess.play_legal(action);
        self.only = None;
    }

    fn position(&self) -> String {
        self.chess.position()
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        self.chess.allows(symmetry)
    }

    fn write_row(&self, encoding: Self::Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        self.chess.write_row(encoding, symmetry, row);
    }

    fn policy_index(&self, encoding: Self::Encoding, symmetry: Symmetry, action: Action) -> u32 {
        self.chess.policy_index(encoding, symmetry, action)
    }
}
