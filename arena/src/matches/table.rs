//! The games of one thread, evaluated together.
//!
//! Every game continues until its search waits for a network. Then all positions that wait for the same network are evaluated in
//! one batch.

use std::{sync::Arc, time::Instant};

use anyhow::Context as _;
use config::ConfigError;
use games::{
    Action, Player as Side,
    erased::{AnyState, Variant},
    outside::Failures,
};

use super::{
    plan::{Plan, PlannedGame, seat_key},
    record::{GameRecord, RULES_FAILED, Result as GameResult},
};
use crate::players::{
    Player,
    chooser::{Chooser, GameSoFar},
    engine::Forfeit,
    searches::Searches,
};

/// A game in progress.
struct Playing {
    slot: PlannedGame,
    start: Box<dyn AnyState>,
    start_text: Option<String>,
    opening: usize,
    state: Box<dyn AnyState>,
    actions: Vec<Action>,
    seats: [Seat; 2],
    began: Instant,
}

/// A player in one game.
enum Seat {
    /// A search of the player's network.
    Search {
        /// Index of the network's searches in the table.
        network: usize,
        /// Slot of the search among them.
        slot: usize,
        temperature: f32,
    },
    /// A player that chooses in one call.
    Chooser(Box<dyn Chooser>),
}

/// The games of one thread.
pub(super) struct Table<'a> {
    plan: &'a Plan,
    variant: &'a dyn Variant,
    players: &'a [Player],
    /// The searches of each network. Players with the same network share them.
    searches: Vec<Box<dyn Searches>>,
    /// Index of each player's searches; `None` for a player that does not search.
    searches_of: Vec<Option<usize>>,
    places: Vec<Option<Playing>>,
    failures: &'a Failures,
}

/// State of a game after it was continued.
enum Advanced {
    /// The game waits for a network.
    Waiting,
    /// The game is over.
    Over(GameRecord),
}

impl<'a> Table<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        variant: &'a dyn Variant,
        players: &'a [Player],
        thread: usize,
        places: usize,
        failures: &'a Failures,
    ) -> anyhow::Result<Self> {
        let mut searches: Vec<Box<dyn Searches>> = Vec::new();
        let mut searches_of: Vec<Option<usize>> = Vec::new();
        for (number, player) in players.iter().enumerate() {
            let shared = players[..number].iter().position(|earlier| {
                let networks = player.network().zip(earlier.network());
                networks.is_some_and(|(own, other)| Arc::ptr_eq(own, other))
            });
            let place = match shared {
                Some(earlier) => searches_of[earlier],
                None if player.settings().is_some() => {
                    let own = player.searches(thread);
                    searches.push(own.with_context(|| cannot_continue(player))?.1);
                    Some(searches.len() - 1)
                }
                None => None,
            };
            searches_of.push(place);
        }
        Ok(Self {
            plan,
            variant,
            players,
            searches,
            searches_of,
            places: (0..places.max(1)).map(|_| None).collect(),
            failures,
        })
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
    pub(super) fn begin(&mut self, slot: PlannedGame) -> anyhow::Result<()> {
        let opening = self.plan.opening(slot.pair);
        let fault = || format!("opening {} cannot be played", slot.pair);
        let start = self.variant.start(opening.start.as_deref()).with_context(fault)?;
        let mut state = start.copy();
        for &action in &opening.actions {
            state.play(action).with_context(fault)?;
        }
        let seats = [self.seat(slot, 0, &*start)?, self.seat(slot, 1, &*start)?];
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
        for &action in &opening.actions {
            playing.tell(action, &mut self.searches).with_context(fault)?;
        }
        if let Some(place) = self.places.iter_mut().find(|place| place.is_none()) {
            *place = Some(playing);
        }
        Ok(())
    }

    /// The seat of a player in a game that begins at `start`.
    fn seat(&mut self, slot: PlannedGame, side: usize, start: &dyn AnyState) -> anyhow::Result<Seat> {
        let player = &self.players[slot.players[side]];
        let key = seat_key(self.plan.seed, slot.game, side);
        let failed = || cannot_continue(player);
        if let Some(chooser) = player.chooser(key).with_context(failed)? {
            return Ok(Seat::Chooser(chooser));
        }
        let network = self.searches_of[slot.players[side]].zip(player.settings());
        let (network, settings) = network.with_context(failed)?;
        let begun = self.searches[network].begin(start, settings.clone(), key);
        Ok(Seat::Search {
            network,
            slot: begun.with_context(failed)?,
            temperature: player.temperature(),
        })
    }

    /// Continues every game until it waits for a network. Returns the games that are over.
    pub(super) fn advance(&mut self) -> anyhow::Result<Vec<GameRecord>> {
        let mut over = Vec::new();
        for place in 0..self.places.len() {
            if let Advanced::Over(record) = self.advance_one(place)? {
                for seat in self.places[place].take().into_iter().flat_map(|game| game.seats) {
                    if let Seat::Search { network, slot, .. } = seat {
                        self.searches[network].end(slot);
                    }
                }
                over.push(record);
            }
        }
        Ok(over)
    }

    fn advance_one(&mut self, place: usize) -> anyhow::Result<Advanced> {
        let Some(playing) = self.places[place].as_mut() else {
            return Ok(Advanced::Waiting);
        };
        let searches = &mut self.searches;
        loop {
            if let Some(reason) = playing.fault(searches) {
                let failed = self.failures.add(self.variant.game().name, &reason);
                let reason = failed.map_err(|error| ConfigError::Invalid(error.to_string()))?;
                tracing::warn!(
                    game = playing.slot.game,
                    reason,
                    "a game does not count, because its rules failed"
                );
                let record = playing.record(GameResult::Uncounted, RULES_FAILED, self.plan, searches);
                return Ok(Advanced::Over(record));
            }
            if let Some((result, ending)) = playing.result(self.plan) {
                self.failures.clear();
                let record = playing.record(result, ending, self.plan, searches);
                return Ok(Advanced::Over(record));
            }
            let side = playing.state.to_move().index();
            let player = &self.players[playing.slot.players[side]];
            let action = match playing.think(side, searches) {
                Ok(Some(action)) => action,
                Ok(None) => return Ok(Advanced::Waiting),
                Err(error) => {
                    let Some(forfeit) = error.downcast_ref::<Forfeit>() else {
                        return Err(error.context(cannot_continue(player)));
                    };
                    if let Forfeit::IllegalMove { .. } = forfeit {
                        tracing::warn!(game = playing.slot.game, "{forfeit}: the game is lost");
                    }
                    let result = match side == Side::First.index() {
                        true => GameResult::Second,
                        false => GameResult::First,
                    };
                    let record = playing.record(result, forfeit.ending(), self.plan, searches);
                    return Ok(Advanced::Over(record));
                }
            };
            let played = playing.state.play(action);
            let told = played.and_then(|()| playing.tell(action, searches));
            told.with_context(|| cannot_continue(player))?;
            playing.actions.push(action);
        }
    }

    /// Evaluates all waiting positions and passes the evaluations to their searches.
    pub(super) fn evaluate(&mut self) -> anyhow::Result<()> {
        for (number, searches) in self.searches.iter_mut().enumerate() {
            searches.evaluate().with_context(|| {
                let asking = self.searches_of.iter().position(|&asked| asked == Some(number));
                asking.map_or_else(String::new, |player| cannot_continue(&self.players[player]))
            })?;
        }
        Ok(())
    }
}

fn cannot_continue(player: &Player) -> String {
    format!("the player {} cannot continue", player.name())
}

impl Playing {
    /// The action of the player to act; `None` while its search waits for a network.
    fn think(&mut self, side: usize, searches: &mut [Box<dyn Searches>]) -> anyhow::Result<Option<Action>> {
        match &mut self.seats[side] {
            &mut Seat::Search {
                network,
                slot,
                temperature,
            } => {
                let searches = &mut searches[network];
                while !searches.search(slot).is_decided() {
                    if searches.gather(slot)? {
                        return Ok(None);
                    }
                }
                let chosen = searches.search(slot).choose(temperature);
                chosen
                    .map(Some)
                    .with_context(|| format!("the search of game {} chose no action", self.slot.game))
            }
            Seat::Chooser(chooser) => chooser
                .choose(GameSoFar {
                    start: &*self.start,
                    actions: &self.actions,
                    state: &*self.state,
                    stop: None,
                })
                .map(Some),
        }
    }

    /// Tells both searches of an action that was played.
    fn tell(&self, action: Action, searches: &mut [Box<dyn Searches>]) -> Result<(), games::IllegalAction> {
        self.seats.iter().try_for_each(|seat| match *seat {
            Seat::Search { network, slot, .. } => searches[network].search_mut(slot).advance(action),
            Seat::Chooser(_) => Ok(()),
        })
    }

    /// Why the rules failed in this game, or in a search of it. `None` if they did not.
    fn fault(&self, searches: &[Box<dyn Searches>]) -> Option<String> {
        let of_seat = |seat: &Seat| match *seat {
            Seat::Search { network, slot, .. } => searches[network].search(slot).fault().map(String::from),
            Seat::Chooser(_) => None,
        };
        let own = self.state.fault().map(String::from);
        own.or_else(|| self.seats.iter().find_map(of_seat))
    }

    /// Result and ending of the game; `None` while it continues. Without an outcome the game is a draw, or a problem that is not solved.
    fn result(&self, plan: &Plan) -> Option<(GameResult, &'static str)> {
        if let Some(outcome) = self.state.outcome() {
            return Some((GameResult::of(outcome), self.state.ending().unwrap_or_default()));
        }
        let undecided = match self.state.game().players {
            1 => GameResult::Second,
            _ => GameResult::Draw,
        };
        if self.actions.len() >= plan.max_actions {
            return Some((undecided, "max-actions"));
        }
        let mut legal = Vec::new();
        self.state.legal_actions(&mut legal);
        legal.is_empty().then_some((undecided, "no-action"))
    }

    fn record(
        &self,
        result: GameResult,
        ending: &str,
        plan: &Plan,
        searches: &[Box<dyn Searches>],
    ) -> GameRecord {
        let visits = [0, 1].map(|side: usize| match self.seats[side] {
            Seat::Search { network, slot, .. } => searches[network].search(slot).counters().visits,
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
