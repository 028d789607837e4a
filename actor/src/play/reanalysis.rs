//! Re-analysis: the problem of a solved game is posed again, because a newer network may find a shorter solution. [`Posed`].

use games::{Action, Drawn, Game, IllegalAction};
use proto::v1;
use search::Settings;

use super::{record, setup::Setup};
use crate::{GameId, stored::Stored};

/// A problem that is posed again.
#[derive(Debug)]
pub(super) struct Posed<G> {
    /// Game that a shorter solution replaces.
    replaces: GameId,
    /// Number of moves of its solution.
    moves: usize,
    /// The problem, and the solution of the game without the moves that do not matter.
    known: Drawn<G>,
}

/// Result of a re-analysis.
#[derive(Debug, Default)]
pub(super) struct Reanalysed {
    /// Record of a shorter solution. `None` if none was found.
    pub record: Option<Box<v1::Game>>,
    /// Number of moves that it saves.
    pub saved: usize,
}

impl<G: Game> Posed<G> {
    /// Returns the problem of a stored game. `None` if the game does not solve a problem of self-play by these rules, or no solution can
    /// be shorter.
    pub(super) fn of(stored: &Stored, rules: &G::Rules) -> Option<Self> {
        let start = G::start(rules, Some(&stored.start)).ok()?;
        let moves = stored.actions.len();
        if start.least_actions_left() as usize >= moves {
            return None;
        }
        Some(Self {
            replaces: stored.id,
            moves,
            known: solved(&start, &stored.actions)?,
        })
    }

    /// Returns the state that the problem begins in.
    pub(super) fn start(&self) -> &G {
        &self.known.start
    }

    /// True if the play that reached `state` by this number of actions can still become a shorter solution than the known one.
    pub(super) fn can_be_shorter(&self, state: &G, actions: usize) -> bool {
        actions + (state.least_actions_left() as usize) < self.known.solution.len()
    }

    /// Returns the result after `played` were the actions: the shortest solution known, if it is shorter than that of the stored game.
    ///
    /// # Errors
    /// [`IllegalAction`] if the solution contains an action that the rules forbid.
    pub(super) fn result(
        &self,
        played: &[Action],
        named: (u64, GameId),
        setup: &Setup<G>,
    ) -> Result<Reanalysed, IllegalAction> {
        let found = solved(&self.known.start, played);
        let best = match &found {
            Some(found) if found.solution.len() < self.known.solution.len() => found,
            _ => &self.known,
        };
        let saved = self.moves.saturating_sub(best.solution.len());
        if saved == 0 {
            return Ok(Reanalysed::default());
        }
        let record = v1::Game {
            replaces: self.replaces.0.to_vec().into(),
            ..record::of_solution(best, "reanalysis", named, setup)?
        };
        Ok(Reanalysed {
            record: Some(Box::new(record)),
            saved,
        })
    }
}

/// Returns search settings without exploration. The shortest solution that the search knows is played.
pub(super) fn settings(settings: &Settings) -> Settings {
    Settings {
        noise_fraction: 0.0,
        temperature: Vec::new(),
        stop_when_solved: true,
        ..settings.clone()
    }
}

/// Returns the problem of `start` with the solution that `actions` are, without the moves that do not matter. `None` if they do not
/// solve it, or the problem is held out of self-play.
fn solved<G: Game>(start: &G, actions: &[Action]) -> Option<Drawn<G>> {
    let drawn = start.in_hindsight(actions)?;
    let mut state = start.clone();
    let is_legal = drawn.solution.iter().all(|&action| state.play(action).is_ok());
    let value = state.outcome().map_or(0.0, |outcome| outcome.value().get());
    // Actions that solve another problem only are recorded in hindsight, not here.
    let is_solved = is_legal && value > 0.0 && drawn.start.position() == start.position();
    is_solved.then_some(drawn)
}

#[cfg(test)]
mod tests {
    use config::RunConfig;
    use games::generator::{GeneratorGame, Move};

    use super::*;

    fn setup(move_limit: i64) -> Setup<GeneratorGame> {
        let mut config = RunConfig::default();
        config.game.name = GeneratorGame::NAME.into();
        config.game.options = 0;
        config.game.rules.insert("move_limit".into(), move_limit.into());
        Setup::new(&config, "tester", 1).unwrap()
    }

    /// A grid without its last two rows, drawn after a dot was appended and deleted.
    fn stored() -> Stored {
        let action = |imp, name: &str| {
            let made = (0..38).map(Move).find(|made| made.name() == name).unwrap();
            GeneratorGame::action(imp, made)
        };
        Stored {
            id: GameId([7; 16]),
            start: serde_json::json!({ "target": vec![vec![0; 8]; 6] }).to_string(),
            actions: vec![
                action(2, "DEC"),
                action(0, "APPEND_DOT"),
                action(2, "DEC"),
                action(4, "DELETE"),
                action(0, "MARK_COMPLETE"),
            ],
        }
    }

    #[test]
    fn moves_that_do_not_matter_are_saved_without_a_search() {
        let (setup, stored) = (setup(64), stored());
        let posed = Posed::<GeneratorGame>::of(&stored, &setup.rules).unwrap();
        // The known solution is as long as the rules' lower bound.
        assert!(!posed.can_be_shorter(posed.start(), 0));
        let result = posed.result(&[], (3, GameId([8; 16])), &setup).unwrap();
        let record = result.record.unwrap();
        let (decrement, mark) = (stored.actions[0], stored.actions[4]);
        assert_eq!(
            (&record.actions[..], result.saved),
            (&[decrement, decrement, mark][..], 2)
        );
        assert_eq!(
            (record.provenance.as_str(), record.game_number),
            ("reanalysis", 3)
        );
        assert_eq!(
            (&record.id[..], &record.replaces[..]),
            (&[8; 16][..], &[7; 16][..])
        );
    }

    #[test]
    fn games_that_solve_nothing_by_these_rules_are_not_posed() {
        let is_posed = |stored: &Stored, move_limit| {
            Posed::<GeneratorGame>::of(stored, &setup(move_limit).rules).is_some()
        };
        let good = stored();
        assert!(is_posed(&good, 5));
        // The rules may have changed since the game was stored.
        assert!(!is_posed(&good, 4));
        let unsolved = Stored {
            actions: good.actions[..2].to_vec(),
            ..good.clone()
        };
        let another = Stored {
            start: serde_json::json!({ "target": vec![vec![0; 8]; 7] }).to_string(),
            ..good.clone()
        };
        let no_problem = Stored {
            start: String::new(),
            ..good.clone()
        };
        let shortest = Stored {
            actions: vec![good.actions[0], good.actions[0], good.actions[4]],
            ..good
        };
        for stored in [unsolved, another, no_problem, shortest] {
            assert!(!is_posed(&stored, 64), "{stored:?}");
        }
    }
}
