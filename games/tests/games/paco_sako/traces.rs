//! Test vectors of the original project and scenarios written for it: state, FEN and legal actions after every action.

use games::Game;
use serde::Deserialize;

use super::data::{legal, play, player_number, records, square_name, start};

#[derive(Deserialize)]
struct Trace {
    id: String,
    name: String,
    start_fen: String,
    setup: Setup,
    actions: Vec<String>,
    initial_legal: Vec<String>,
    trace: Vec<Step>,
    #[serde(rename = "final")]
    end: End,
}

#[derive(Deserialize)]
struct Setup {
    draw_after_n_repetitions: Option<u8>,
}

#[derive(Deserialize)]
struct Step {
    action: String,
    fen: String,
    legal: Vec<String>,
    required_action: String,
}

#[derive(Debug, PartialEq, Deserialize)]
struct End {
    controlling_player: u8,
    en_passant: Option<String>,
    fen: String,
    legal: Vec<String>,
    no_progress: u8,
    promotion: Option<String>,
    required_action: String,
    victory: String,
}

#[test]
fn test_vectors_of_the_original_project_agree() {
    check("upstream_test_traces.jsonl", 113);
}

#[test]
fn scenarios_agree() {
    check("rule_scenarios.jsonl", 73);
}

fn check(name: &str, count: usize) {
    let traces: Vec<Trace> = records(name);
    assert_eq!(traces.len(), count);
    for trace in traces {
        let place = format!("{} ({})", trace.id, trace.name);
        let mut state = start(
            Some(&trace.start_fen),
            trace.setup.draw_after_n_repetitions.unwrap_or(3),
        );
        assert_eq!(state.position(), trace.start_fen, "{place}");
        assert_eq!(names(&legal(&state)), trace.initial_legal, "{place}");
        assert_eq!(trace.actions.len(), trace.trace.len(), "{place}");
        for (action, step) in trace.actions.iter().zip(&trace.trace) {
            assert_eq!(action, &step.action);
            play(&mut state, code(action));
            assert_eq!(state.position(), step.fen, "{place} after {action}");
            assert_eq!(names(&legal(&state)), step.legal, "{place} after {action}");
            assert_eq!(
                format!("{:?}", state.required_action()),
                step.required_action,
                "{place} after {action}"
            );
        }
        let end = End {
            controlling_player: player_number(state.to_move()),
            en_passant: state.en_passant().map(square_name),
            fen: state.position(),
            legal: names(&legal(&state)),
            no_progress: state.no_progress(),
            promotion: state.promotion().map(square_name),
            required_action: format!("{:?}", state.required_action()),
            victory: format!("{:?}", state.victory_state()),
        };
        assert_eq!(end, trace.end, "{place}");
    }
}

/// Returns the names of action codes in the data: `Lc3` lifts, `Pa1` places, `=Q` promotes.
fn names(codes: &[u32]) -> Vec<String> {
    codes
        .iter()
        .map(|&code| match code {
            1..=64 => format!("L{}", square_name(code as u8 - 1)),
            65..=128 => format!("P{}", square_name(code as u8 - 65)),
            _ => format!("={}", char::from(b"RNBQ"[code as usize - 129])),
        })
        .collect()
}

fn code(name: &str) -> u32 {
    (1..=132)
        .find(|&code| names(&[code])[0] == name)
        .unwrap_or_else(|| panic!("{name}"))
}
