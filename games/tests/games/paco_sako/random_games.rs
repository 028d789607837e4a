//! Legal actions, counters and outcomes of 117 recorded random games.

use games::{Game, Outcome, Player};
use serde::Deserialize;

use super::data::{legal, play, player_number, records, square_name, start};

/// Recorded state: required action, player, no-progress counter, en passant, promotion, castling, and three counters.
type RecordedState = (
    String,
    u8,
    u8,
    Option<String>,
    Option<String>,
    String,
    u32,
    u32,
    u32,
);

#[derive(Deserialize)]
struct RandomGame {
    id: serde_json::Value,
    start_fen: Option<String>,
    draw_after_n_repetitions: u8,
    actions: Vec<u32>,
    legal_before: Vec<Vec<u32>>,
    states_after: Vec<RecordedState>,
    fens_after_turn: Vec<(usize, String)>,
    end: String,
    victory_state: String,
}

/// [`RecordedState`] without its counters.
type State = (String, u8, u8, Option<String>, Option<String>, String);

#[test]
fn random_games_agree_after_every_action() {
    let games: Vec<RandomGame> = records("random_games.jsonl.gz");
    assert_eq!(games.len(), 117);
    for game in &games {
        let mut state = start(game.start_fen.as_deref(), game.draw_after_n_repetitions);
        let mut fens = game.fens_after_turn.iter().peekable();
        assert_eq!(game.legal_before.len(), game.actions.len() + 1);
        for (ply, (&action, recorded)) in game.actions.iter().zip(&game.states_after).enumerate() {
            let place = format!("game {} before action {ply}: {}", game.id, state.position());
            assert_eq!(legal(&state), game.legal_before[ply], "{place}");
            assert_eq!(state.outcome(), None, "{place}");
            play(&mut state, action);
            let (required, player, no_progress, en_passant, promotion, castling, ..) = recorded.clone();
            let expected = (required, player, no_progress, en_passant, promotion, castling);
            let found: State = (
                format!("{:?}", state.required_action()),
                player_number(state.to_move()),
                state.no_progress(),
                state.en_passant().map(square_name),
                state.promotion().map(square_name),
                state.castling(),
            );
            assert_eq!(found, expected, "{place} then {action}");
            if let Some((_, fen)) = fens.next_if(|(actions, _)| *actions == ply + 1) {
                assert_eq!(&state.position(), fen, "{place} then {action}");
            }
        }
        assert_eq!(fens.next(), None, "game {}", game.id);
        assert_eq!(
            &legal(&state),
            game.legal_before.last().unwrap(),
            "game {}",
            game.id
        );
        assert_eq!(
            format!("{:?}", state.victory_state()),
            game.victory_state,
            "game {}",
            game.id
        );
        let outcome = match game.victory_state.as_str() {
            "PacoVictoryWhite" => Some(Outcome::Won(Player::First)),
            "PacoVictoryBlack" => Some(Outcome::Won(Player::Second)),
            "Running" => None,
            _ => Some(Outcome::Draw),
        };
        assert_eq!(state.outcome(), outcome, "game {}", game.id);
        let is_dead_end = state.outcome().is_none() && legal(&state).is_empty();
        assert_eq!(is_dead_end, game.end == "dead_end", "game {}", game.id);
    }
}
