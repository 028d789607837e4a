//! Replays a game by its rules: start, actions, players, rows and the end must be what the rules give.

use std::sync::Arc;

use games::{
    Outcome, Player, Symmetry,
    erased::{AnyGame, AnyState, Variant},
    outside,
};
use parking_lot::Mutex;
use proto::{
    IMPORTED,
    endings::{ADJUDICATED, MAX_ACTIONS, NO_ACTION},
    v1::{Game, GameResult},
};
use serde_json::Value;

use super::validate::{Refusal, column, require};

/// Replays games in one representation.
#[derive(Debug)]
pub struct Referee {
    game: &'static AnyGame,
    options: u32,
    /// True if the rules are in Python. A store has the description of such a game alone, which its record is checked against before.
    is_outside: bool,
    /// Rules of the newest game, as text and read. All games of a run have the same.
    newest: Mutex<Option<(String, Arc<dyn Variant>)>>,
}

impl Referee {
    /// Returns the referee of a game whose rows have the representation `options`.
    pub fn new(game: &'static AnyGame, options: u32) -> Self {
        Self {
            game,
            options,
            is_outside: outside::description().is_some_and(|found| found.name == game.name),
            newest: Mutex::new(None),
        }
    }

    /// Reads the rules of a record.
    ///
    /// # Errors
    /// [`Refusal`] if they are not rules of the game, or those of another size of the board.
    pub fn rules(&self, text: &str) -> Result<Arc<dyn Variant>, Refusal> {
        const FIELD: &str = "rules_json";

        if let Some((newest, variant)) = &*self.newest.lock()
            && newest == text
        {
            return Ok(Arc::clone(variant));
        }
        let rules: Value =
            serde_json::from_str(text).map_err(|error| Refusal::new(FIELD, error.to_string()))?;
        let variant = self.game.variant(&rules, Some(self.options));
        let variant = variant.map_err(|error| Refusal::new(FIELD, service::chain(&error).to_string()))?;
        require(variant.game().size() == self.game.size(), FIELD, || {
            format!(
                "a game of `{}`, this store is for `{}`",
                variant.game().title(),
                self.game.title()
            )
        })?;
        *self.newest.lock() = Some((text.to_owned(), Arc::clone(&variant)));
        Ok(variant)
    }

    /// Replays a game whose columns have been checked. A game from outside is not replayed.
    ///
    /// # Errors
    /// [`Refusal`] that names the first position which does not follow from the actions before it.
    pub fn replay(&self, game: &Game) -> Result<(), Refusal> {
        if self.is_outside {
            return Ok(());
        }
        let start = (!game.start.is_empty()).then_some(game.start.as_str());
        let start = self.rules(&game.rules_json)?.start(start);
        let mut state = start.map_err(|error| Refusal::new("start", error.to_string()))?;
        let mut expected = Vec::new();
        let positions = column(game.row_columns())?.zip(&game.movers).zip(&game.actions);
        for (ply, ((row, &mover), &action)) in (0..).zip(positions) {
            let refusal = |field, problem| Refusal {
                ply: Some(ply),
                ..Refusal::new(field, problem)
            };
            let to_move = state.to_move().index();
            if usize::from(mover) != to_move {
                return Err(refusal("movers", format!("{mover} is recorded, {to_move} acts")));
            }
            expected.clear();
            state.write_row(Symmetry::IDENTITY, &mut expected);
            if row != expected {
                return Err(refusal("rows", difference(row, &expected)));
            }
            let played = state.play(action);
            played.map_err(|error| refusal("actions", error.to_string()))?;
        }
        self.end(&*state, game)
    }

    /// Checks the end of a game that was played to `state`.
    fn end(&self, state: &dyn AnyState, game: &Game) -> Result<(), Refusal> {
        let undecided = match self.game.players {
            1 => Outcome::Scored(0.0),
            _ => Outcome::Draw,
        };
        let has_no_action = || {
            let mut legal = Vec::new();
            state.legal_actions(&mut legal);
            legal.is_empty()
        };
        let (outcome, ending) = match (state.outcome(), game.ending.as_str()) {
            (Some(outcome), _) => (outcome, state.ending().unwrap_or_default()),
            (None, MAX_ACTIONS) => (undecided, MAX_ACTIONS),
            (None, NO_ACTION) if has_no_action() => (undecided, NO_ACTION),
            (None, ADJUDICATED) if game.provenance == IMPORTED => (outcome_of(game), ADJUDICATED),
            (None, _) => {
                let fault = state
                    .fault()
                    .map(|fault| format!(": the rules fail here: {fault}"));
                let problem = format!("the game is not over at its end{}", fault.unwrap_or_default());
                return Err(Refusal::new("actions", problem));
            }
        };
        let result = result_of(outcome);
        require(game.result() == result, "result", || {
            format!("{} follows from the actions", result.as_str_name())
        })?;
        let score = outcome.value().get();
        require(game.score == score, "score", || {
            format!("{}, but {score} follows from the actions", game.score)
        })?;
        require(game.ending == ending, "ending", || {
            format!("`{ending}` follows from the actions")
        })?;
        if game.territory.is_empty() {
            return Ok(());
        }
        let territory = state.territory().unwrap_or(games::Territory {
            owners: Vec::new(),
            score: 0.0,
        });
        let owners = game.territory.iter().map(|owner| owner.cast_signed());
        let is_right = owners.eq(territory.owners) && game.territory_score == territory.score;
        require(is_right, "territory", || {
            "other owners or another score follow from the actions".into()
        })
    }
}

/// Returns the result of a game in the form of its record.
pub fn result_of(outcome: Outcome) -> GameResult {
    match outcome {
        Outcome::Won(Player::First) => GameResult::FirstWon,
        Outcome::Won(Player::Second) => GameResult::SecondWon,
        Outcome::Draw => GameResult::Draw,
        Outcome::Scored(_) => GameResult::Scored,
    }
}

/// Returns the outcome that a record gives.
fn outcome_of(game: &Game) -> Outcome {
    match game.result() {
        GameResult::FirstWon => Outcome::Won(Player::First),
        GameResult::SecondWon => Outcome::Won(Player::Second),
        GameResult::Scored => Outcome::Scored(game.score),
        GameResult::Draw | GameResult::Unspecified => Outcome::Draw,
    }
}

/// Describes the first difference of a row from the one that follows from the actions.
fn difference(row: &[u32], expected: &[u32]) -> String {
    let mut values = row.iter().zip(expected).zip(0..);
    match values.find(|((found, expected), _)| found != expected) {
        Some(((found, expected), at)) => {
            format!("value {at} is {found}, {expected} follows from the actions")
        }
        None => format!("{} values, {} follow from the actions", row.len(), expected.len()),
    }
}

#[cfg(test)]
mod tests {
    use games::{
        Game as _, Notation,
        connect_four::ConnectFour,
        registry::{self, Visitor},
    };

    use crate::{
        record::validate::{Refusal, Validator},
        synthetic,
    };

    use super::*;

    /// Games of all kinds: long and short, played to the end and cut off.
    struct EachIsStored;

    impl Visitor for EachIsStored {
        type Output = ();

        fn visit<G: Notation>(self) {
            let validator = Validator::new(G::NAME, G::OPTIONS).unwrap();
            let rules = G::Rules::default();
            let mut over = 0;
            for (number, most) in [(1, 1), (2, 12), (3, 60), (4, 400), (5, 400)] {
                let game = synthetic::random::<G>(&rules, G::OPTIONS, "", number, most);
                over += usize::from(game.ending != MAX_ACTIONS);
                validator.check(&game).unwrap();
                // Each game may begin at the position where another one was cut off.
                let mut state = G::start(&rules, None).unwrap();
                let mut plies = game.actions.iter().take(game.actions.len() / 2);
                plies.try_for_each(|&action| state.play(action)).unwrap();
                let later = synthetic::random::<G>(&rules, G::OPTIONS, &state.position(), number, 20);
                validator.check(&later).unwrap();
            }
            assert!(over > 0 || G::NAME == "paco-sako", "{}: no game is over", G::NAME);
        }
    }

    #[test]
    fn games_of_every_kind_by_the_rules_are_stored() {
        for name in registry::NAMES {
            registry::visit(name, EachIsStored).unwrap();
        }
    }

    fn refusal(game: &Game) -> Refusal {
        let validator = Validator::new("connect-four", 1).unwrap();
        validator.check(game).unwrap_err()
    }

    #[test]
    fn an_illegal_game_is_refused_at_its_first_wrong_position() {
        let whole = synthetic::connect_four(5);
        let plies = whole.actions.len();
        let row_len = whole.rows.len() / plies;
        let refused = |change: &dyn Fn(&mut Game)| {
            let mut game = whole.clone();
            change(&mut game);
            let Refusal { field, ply, .. } = refusal(&game);
            (field, ply)
        };
        // Two actions in the other order lead to another row.
        let differs = (1..plies as u32)
            .find(|&ply| whole.actions[ply as usize] != whole.actions[ply as usize - 1])
            .unwrap();
        let at = differs as usize;
        let found = refused(&|game| game.actions.swap(at - 1, at));
        assert_eq!(found, ("rows", Some(differs)));
        assert_eq!(
            refused(&|game| {
                let mut movers = game.movers.to_vec();
                movers[3] = 1 - movers[3];
                game.movers = movers.into();
            }),
            ("movers", Some(3))
        );
        let other_row = |game: &mut Game| {
            let (first, second) = game.rows.split_at_mut(5 * row_len);
            second[..row_len].copy_from_slice(&first[..row_len]);
        };
        assert_eq!(refused(&other_row), ("rows", Some(5)));
        let result = |result: GameResult, score| {
            refused(&move |game: &mut Game| (game.result, game.score) = (result.into(), score))
        };
        let won = whole.result();
        let lost = match won {
            GameResult::FirstWon => (GameResult::SecondWon, -1.0),
            _ => (GameResult::FirstWon, 1.0),
        };
        assert_eq!(result(lost.0, lost.1), ("result", None));
        assert_eq!(result(GameResult::Draw, 0.0), ("result", None));
        assert_eq!(
            refused(&|game| game.ending = "repetition".into()),
            ("ending", None)
        );
        // A game that is over was not cut off.
        assert_eq!(
            refused(&|game| {
                game.ending = MAX_ACTIONS.into();
                (game.result, game.score) = (GameResult::Draw.into(), 0.0);
            }),
            ("result", None)
        );
        let start = "a column of stones".to_owned();
        assert_eq!(refused(&|game| game.start = start.clone()), ("start", None));
        let rules = r#"{"gravity":false}"#.to_owned();
        assert_eq!(
            refused(&|game| game.rules_json = rules.clone()),
            ("rules_json", None)
        );
    }

    /// Returns a game without searches, with a row for each of the columns, of which the last may be illegal.
    fn by_columns(columns: &[u32]) -> Game {
        let count = columns.len();
        let mut state = ConnectFour::EMPTY;
        let mut rows = Vec::new();
        for &column in columns {
            state.write_row(Default::default(), Symmetry::IDENTITY, &mut rows);
            let _ = state.play(column);
        }
        Game {
            actions: columns.to_vec(),
            movers: (0..count).map(|ply| ply as u8 % 2).collect(),
            rows,
            visit_counts: vec![0; count],
            visit_actions: Vec::new(),
            visits: Vec::new(),
            root_values: vec![0.0; count],
            model_of_position: vec![0; count],
            ..synthetic::connect_four(1)
        }
    }

    #[test]
    fn a_game_must_end_where_the_rules_end_it() {
        // The seventh disc in a column of six, and a disc after four in a row.
        for (columns, ply) in [(&[3; 7][..], 6), (&[0, 1, 0, 1, 0, 1, 0, 1], 7)] {
            let found = refusal(&by_columns(columns));
            assert_eq!((found.field, found.ply), ("actions", Some(ply)), "{found}");
            let text = found.to_string();
            assert!(
                text.starts_with(&format!("actions: position {ply}: action ")),
                "{text}"
            );
        }
        let mut unfinished = synthetic::random::<ConnectFour>(&Default::default(), 1, "", 1, 6);
        unfinished.ending = "first-won".into();
        let found = refusal(&unfinished);
        assert_eq!((found.field, found.ply), ("actions", None));
        assert!(found.problem.contains("not over"), "{found}");
        unfinished.ending = NO_ACTION.into();
        assert_eq!(refusal(&unfinished).field, "actions");
    }

    #[test]
    fn a_game_that_others_decided_is_stored_if_it_is_imported() {
        let validator = Validator::new("connect-four", 1).unwrap();
        let mut resigned = synthetic::random::<ConnectFour>(&Default::default(), 1, "", 1, 6);
        (resigned.result, resigned.score) = (GameResult::SecondWon.into(), -1.0);
        resigned.ending = ADJUDICATED.into();
        assert_eq!(refusal(&resigned).field, "actions");
        resigned.provenance = IMPORTED.into();
        validator.check(&resigned).unwrap();
        resigned.score = 1.0;
        assert_eq!(refusal(&resigned).field, "score");
        // The rules decide a game that they end.
        let mut over = synthetic::connect_four(5);
        (over.provenance, over.ending) = (IMPORTED.into(), ADJUDICATED.into());
        assert_eq!(refusal(&over).field, "ending");
    }

    #[test]
    fn territories_follow_from_the_actions() {
        let validator = Validator::new("go:3", 0).unwrap();
        let game = synthetic::go(1);
        validator.check(&game).unwrap();
        let mut other = game.clone();
        other.territory = game.territory.iter().map(|owner| u8::from(*owner == 0)).collect();
        assert_eq!(validator.check(&other).unwrap_err().field, "territory");
        let mut other = game;
        other.territory_score += 1.0;
        assert_eq!(validator.check(&other).unwrap_err().field, "territory");
    }
}
