//! The games of one thread, evaluated together.
//!
//! Every game continues until its search waits for a network. Then all positions that wait for the same network are evaluated in
//! one batch. In each game one player thinks at a time, so the game's place in the table identifies the waiting search.

use std::time::Instant;

use games::{Action, Game, Player as Side};
use network::batched::BatchedEvaluator;
use search::{Evaluation, LeafId};

use super::{
    MatchError,
    plan::{Plan, PlannedGame, seat_key},
    record::{GameRecord, Result as GameResult},
};
use crate::players::{Player, PlayerError, Progress, Seat};

/// A game in progress.
struct Playing<G: Game> {
    slot: PlannedGame,
    start: G,
    start_text: Option<String>,
    opening: usize,
    state: G,
    actions: Vec<Action>,
    seats: [Seat<G>; 2],
    began: Instant,
}

/// The games of one thread.
pub(super) struct Table<'a, G: Game> {
    plan: &'a Plan,
    rules: &'a G::Rules,
    players: &'a [Player<G>],
    /// One evaluator for each network. Players with the same network share one.
    evaluators: Vec<BatchedEvaluator<G>>,
    /// Index of each player's evaluator; `usize::MAX` for a player that does not search.
    evaluator_of: Vec<usize>,
    places: Vec<Option<Playing<G>>>,
}

/// State of a game after it was continued.
enum Advanced {
    /// The game waits for a network.
    Waiting,
    /// The game is over.
    Over(GameRecord),
}

impl<'a, G: Game> Table<'a, G> {
    pub(super) fn new(
        plan: &'a Plan,
        rules: &'a G::Rules,
        players: &'a [Player<G>],
        thread: usize,
        places: usize,
    ) -> Self {
        let mut evaluators: Vec<BatchedEvaluator<G>> = Vec::new();
        let mut evaluator_of = Vec::new();
        for (number, player) in players.iter().enumerate() {
            let shared =
                players[..number]
                    .iter()
                    .position(|earlier| match (player.network(), earlier.network()) {
                        (Some(own), Some(other)) => std::sync::Arc::ptr_eq(own, other),
                        _ => false,
                    });
            let place = match (shared, player.evaluator(thread)) {
                (Some(earlier), _) => evaluator_of[earlier],
                (None, Some(evaluator)) => {
                    evaluators.push(evaluator);
                    evaluators.len() - 1
                }
                // The player does not search.
                (None, None) => usize::MAX,
            };
            evaluator_of.push(place);
        }
        Self {
            plan,
            rules,
            players,
            evaluators,
            evaluator_of,
            places: (0..places.max(1)).map(|_| None).collect(),
        }
    }

    /// True if another game can begin.
    pub(super) fn has_room(&self) -> bool {
        self.places.iter().any(Option::is_none)
    }

    /// True if no game is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// Begins a game.
    pub(super) fn begin(&mut self, slot: PlannedGame) -> Result<(), MatchError> {
        let opening = self.plan.opening(slot.pair);
        let fault =
            |reason: String| MatchError::Other(format!("opening {} cannot be played: {reason}", slot.pair));
        let start =
            G::start(self.rules, opening.start.as_deref()).map_err(|error| fault(error.to_string()))?;
        let mut state = start.clone();
        for &action in &opening.actions {
            state.play(action).map_err(|error| fault(error.to_string()))?;
        }
        let seat = |side: usize| {
            let player = &self.players[slot.players[side]];
            let key = seat_key(self.plan.seed, slot.game, side);
            let mut seat = player
                .seat(&start, key)
                .map_err(|source| self.player_error(slot, side, source))?;
            for &action in &opening.actions {
                seat.played(action)
                    .map_err(|error| fault(service::chain(&error).to_string()))?;
            }
            Ok::<Seat<G>, MatchError>(seat)
        };
        let seats = [seat(0)?, seat(1)?];
        let playing = Playing {
            slot,
            start,
            start_text: opening.start.clone(),
            opening: opening.actions.len(),
            state,
            actions: opening.actions.clone(),
            seats,
            began: Instant::now(),
        };
        if let Some(place) = self.places.iter_mut().find(|place| place.is_none()) {
            *place = Some(playing);
        }
        Ok(())
    }

    /// Continues every game until it waits for a network. Returns the games that are over.
    pub(super) fn advance(&mut self) -> Result<Vec<GameRecord>, MatchError> {
        let mut over = Vec::new();
        for place in 0..self.places.len() {
            if let Advanced::Over(record) = self.advance_one(place)? {
                self.places[place] = None;
                over.push(record);
            }
        }
        Ok(over)
    }

    fn advance_one(&mut self, place: usize) -> Result<Advanced, MatchError> {
        let Some(playing) = self.places[place].as_mut() else {
            return Ok(Advanced::Waiting);
        };
        let slot = playing.slot;
        loop {
            if let Some(record) = playing.finished(self.plan) {
                return Ok(Advanced::Over(record));
            }
            let side = playing.state.to_move().index();
            let player = slot.players[side];
            let chosen = playing.think(place, side, self.evaluators.get_mut(self.evaluator_of[player]));
            let action = match chosen {
                Ok(Some(action)) => action,
                Ok(None) => return Ok(Advanced::Waiting),
                Err(error @ PlayerError::Illegal { .. }) => {
                    tracing::warn!(game = slot.game, "{error}: the game is lost");
                    return Ok(Advanced::Over(playing.lost_by(side, self.plan)));
                }
                Err(source) => return Err(self.player_error(slot, side, source)),
            };
            if let Err(error) = playing.play(action) {
                let source = PlayerError::failed(format!("{}: {error}", self.players[player].name()));
                return Err(self.player_error(slot, side, source));
            }
        }
    }

    /// Evaluates all waiting positions and passes the evaluations to their searches.
    pub(super) fn evaluate(&mut self) -> Result<(), MatchError> {
        let Self {
            evaluators,
            places,
            players,
            evaluator_of,
            ..
        } = self;
        for (number, evaluator) in evaluators.iter_mut().enumerate() {
            let answered: Result<(), PlayerError> = evaluator.flush(|place, leaf, evaluation| {
                match places.get_mut(place).and_then(Option::as_mut) {
                    Some(playing) => playing.apply(leaf, evaluation),
                    None => Ok(()),
                }
            });
            answered.map_err(|source| {
                let asking = evaluator_of.iter().position(|&asked| asked == number);
                MatchError::Player {
                    player: asking.map_or_else(String::new, |player| players[player].name().into()),
                    source: Box::new(source),
                }
            })?;
        }
        Ok(())
    }

    fn player_error(&self, slot: PlannedGame, side: usize, source: PlayerError) -> MatchError {
        MatchError::Player {
            player: self.players[slot.players[side]].name().into(),
            source: Box::new(source),
        }
    }
}

impl<G: Game> Playing<G> {
    /// The action of the player to act; `None` while its search waits for a network.
    fn think(
        &mut self,
        place: usize,
        side: usize,
        evaluator: Option<&mut BatchedEvaluator<G>>,
    ) -> Result<Option<Action>, PlayerError> {
        match (&mut self.seats[side], evaluator) {
            (Seat::Search { search, temperature }, Some(evaluator)) => loop {
                if search.is_decided() {
                    let chosen = search.choose(*temperature);
                    return chosen.map(Some).ok_or_else(|| {
                        PlayerError::no_choice(&format!("the search of game {}", self.slot.game))
                    });
                }
                if search.is_waiting() {
                    return Ok(None);
                }
                search.gather(|leaf| evaluator.add(place, &leaf));
                evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
            },
            (Seat::Search { .. }, None) => Err(PlayerError::no_choice("a search without evaluator")),
            (Seat::Chooser(chooser), _) => chooser
                .choose(Progress {
                    start: &self.start,
                    actions: &self.actions,
                    state: &self.state,
                    stop: None,
                })
                .map(Some),
        }
    }

    fn apply(&mut self, leaf: LeafId, evaluation: Evaluation<'_>) -> Result<(), PlayerError> {
        match &mut self.seats[self.state.to_move().index()] {
            Seat::Search { search, .. } => Ok(search.apply(leaf, evaluation)?),
            Seat::Chooser(_) => Ok(()),
        }
    }

    fn play(&mut self, action: Action) -> Result<(), games::IllegalAction> {
        self.state.play(action)?;
        self.actions.push(action);
        self.seats.iter_mut().try_for_each(|seat| seat.played(action))
    }

    fn finished(&self, plan: &Plan) -> Option<GameRecord> {
        if let Some(outcome) = self.state.outcome() {
            let ending = self.state.ending().unwrap_or_default();
            return Some(self.record(GameResult::of(outcome), ending, plan));
        }
        if self.actions.len() >= plan.max_actions {
            return Some(self.record(self.undecided(), "max-actions", plan));
        }
        let mut legal = Vec::new();
        self.state.legal_actions(&mut legal);
        legal
            .is_empty()
            .then(|| self.record(self.undecided(), "no-action", plan))
    }

    /// Result of a game that ends without an outcome: a draw, or a problem that is not solved.
    fn undecided(&self) -> GameResult {
        match G::PLAYERS {
            1 => GameResult::Second,
            _ => GameResult::Draw,
        }
    }

    fn lost_by(&self, side: usize, plan: &Plan) -> GameRecord {
        let result = if side == Side::First.index() {
            GameResult::Second
        } else {
            GameResult::First
        };
        self.record(result, "illegal-move", plan)
    }

    fn record(&self, result: GameResult, ending: &str, plan: &Plan) -> GameRecord {
        let visits = [0, 1].map(|side: usize| match &self.seats[side] {
            Seat::Search { search, .. } => search.counters().visits,
            Seat::Chooser(_) => 0,
        });
        GameRecord {
            game: self.slot.game,
            players: self.slot.players,
            start: self.start_text.clone(),
            opening: self.opening,
            actions: self.actions.clone(),
            result,
            ending: ending.into(),
            keys: [0, 1].map(|side| seat_key(plan.seed, self.slot.game, side).game),
            visits,
            milliseconds: self.began.elapsed().as_millis() as u64,
        }
    }
}
