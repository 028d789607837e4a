//! Checks that run for all games of the registry: play, rows, symmetries, policy, text, notation, drawings and JSON.

use std::collections::HashSet;

use games::{
    Action, Game as _, Notation, PolicyHead, RowLayout, RowSymmetries, Symmetry,
    othello::Othello,
    perft::perft,
    registry::{self, Visitor},
};
use serde_json::Map;

use crate::shared::{drawer, legal};

/// Most actions of a random game.
const LONGEST: usize = 80;

/// Calls `look` for each state of some random games, with the action about to be played; `None` at the end of a game.
fn walk<G: Notation>(rules: &G::Rules, look: impl FnMut(&G, Option<Action>)) {
    walk_from(rules, &[None], look);
}

/// As [`walk`], but the games begin in these positions in turn.
fn walk_from<G: Notation>(
    rules: &G::Rules,
    starts: &[Option<&str>],
    mut look: impl FnMut(&G, Option<Action>),
) {
    for seed in 0..6.max(starts.len()) {
        let mut random = drawer(seed as u64);
        let mut state = G::start(rules, starts[seed % starts.len()]).unwrap();
        for _ in 0..LONGEST {
            let actions = legal(&state);
            if actions.is_empty() {
                break;
            }
            let action = actions[random(actions.len())];
            look(&state, Some(action));
            state.play(action).unwrap();
        }
        look(&state, None);
    }
}

/// Returns the rules with this size of the board.
fn of_size<G: Notation>(size: Option<u32>, rules: G::Rules) -> G::Rules {
    let mut rules = serde_json::to_value(rules).unwrap();
    if let Some(size) = size {
        rules["size"] = size.into();
    }
    serde_json::from_value(rules).unwrap()
}

fn encodings<G: Notation>(size: Option<u32>) -> Vec<G::Encoding> {
    let rules = of_size::<G>(size, G::Rules::default());
    (0..8)
        .filter_map(|options| G::encoding(&rules, options).ok())
        .collect()
}

/// Returns sizes of the board to check: the least, the usual, the largest and one more. One `None` if there is one size.
fn sizes<G: Notation>() -> Vec<Option<u32>> {
    match G::SIZES {
        None => vec![None],
        Some(sizes) => [sizes.least, sizes.usual, 7, sizes.most].map(Some).into(),
    }
}

/// Runs a check, which is generic over games, for all games and some of their sizes.
macro_rules! for_all_games {
    ($test:ident, $check:ident) => {
        #[test]
        fn $test() {
            struct Run;

            impl Visitor for Run {
                type Output = ();

                fn visit<G: Notation>(self) {
                    for size in sizes::<G>() {
                        $check::<G>(size);
                    }
                }
            }

            for name in registry::NAMES {
                println!("{name}");
                registry::visit(name, Run).unwrap();
            }
        }
    };
}

for_all_games!(legal_actions_are_those_that_can_be_played, check_legal_actions);
for_all_games!(perft_gives_the_known_counts, check_perft);
for_all_games!(rows_are_valid_and_expand, check_rows);
for_all_games!(policy_entries_are_distinct_and_in_range, check_policy);
for_all_games!(maps_of_rows_agree_with_symmetries_of_states, check_symmetries);
for_all_games!(
    layouts_are_read_as_written_and_their_policy_heads_fit,
    check_layouts
);
for_all_games!(positions_are_read_as_they_were_written, check_text);
for_all_games!(turns_are_read_as_they_were_written, check_notation);
for_all_games!(drawings_are_complete, check_scene);
for_all_games!(clicks_tell_actions_apart, check_clicks);
for_all_games!(json_actions_are_read_as_they_were_written, check_json);
for_all_games!(openings_are_playable, check_openings);
for_all_games!(bad_texts_are_refused, check_bad_texts);
for_all_games!(no_action_makes_a_game_panic, check_any_actions);

fn check_legal_actions<G: Notation>(size: Option<u32>) {
    walk::<G>(&of_size::<G>(size, G::Rules::default()), |state, _| {
        let actions = legal(state);
        assert!(actions.is_sorted());
        assert_eq!(actions.is_empty(), state.outcome().is_some());
        assert_eq!(state.outcome().is_some(), state.ending().is_some());
        for action in (0..state.actions().min(600)).chain([state.actions(), u32::MAX]) {
            let mut after = state.clone();
            // Chess accepts promotions that its default rules do not offer.
            if actions.contains(&action) {
                after.play(action).unwrap();
            } else if G::NAME != "chess" {
                assert!(after.play(action).is_err(), "{action} in {state:?}");
            }
        }
    });
}

fn check_perft<G: Notation>(size: Option<u32>) {
    if size.is_some_and(|size| Some(size) != G::SIZES.map(|sizes| sizes.usual)) {
        return;
    }
    for known in G::KNOWN_PERFT {
        let state = G::start(&of_size::<G>(size, G::json_rules()), known.position).unwrap();
        assert_eq!(perft(&state, known.counts.len()), known.counts);
    }
}

fn check_rows<G: Notation>(size: Option<u32>) {
    for encoding in encodings::<G>(size) {
        let layout = G::layout(encoding);
        let mut expander = layout.codec().expander();
        let (mut rows, mut count) = (Vec::new(), 0);
        walk::<G>(&of_size::<G>(size, G::Rules::default()), |state, _| {
            let start = rows.len();
            state.write_row(encoding, Symmetry::IDENTITY, &mut rows);
            let row = &rows[start..];
            layout.validate(row).unwrap();
            assert!(layout.row_lengths().contains(&row.len()));
            if let Ok(stack) = layout.stack() {
                stack.expand(row, &mut vec![0.0; stack.tensor_len()]).unwrap();
            }
            expander.push(row).unwrap();
            count += 1;
        });
        assert_eq!(layout.split(&rows).count(), count);
        for input in expander.inputs() {
            assert_eq!(input.shape().iter().product::<usize>(), input.numbers.len());
        }
        let actions = layout.actions as usize;
        let logits = vec![0.5; expander.logit_count(actions)];
        assert_eq!(expander.dense_logits(&logits, actions).len(), count * actions);
        assert!(layout.validate(&[]).is_err());
        assert!(layout.validate(&[u32::MAX; 3]).is_err());
    }
}

fn check_policy<G: Notation>(size: Option<u32>) {
    for encoding in encodings::<G>(size) {
        let mut expander = G::layout(encoding).codec().expander();
        walk::<G>(&of_size::<G>(size, G::Rules::default()), |state, _| {
            let mut row = Vec::new();
            state.write_row(encoding, Symmetry::IDENTITY, &mut row);
            expander.push(&row).unwrap();
            let candidates = expander.candidates();
            for symmetry in (0..state.symmetries()).map(Symmetry).filter(|&s| state.allows(s)) {
                let actions = legal(state);
                let entries: HashSet<u32> = actions
                    .iter()
                    .map(|&action| state.policy_index(encoding, symmetry, action))
                    .collect();
                assert_eq!(entries.len(), actions.len());
                assert!(entries.iter().all(|&entry| entry < state.actions()));
                if let Some(candidates) = &candidates {
                    assert!(entries.iter().all(|&entry| candidates.place(entry).is_some()));
                }
            }
        });
    }
}

fn check_symmetries<G: Notation>(size: Option<u32>) {
    for encoding in encodings::<G>(size) {
        let (layout, symmetries) = (G::layout(encoding), G::row_symmetries(encoding));
        // These positions differ in rights to castle, promotions and unions.
        let known: Vec<_> = G::KNOWN_PERFT.iter().map(|known| known.position).collect();
        let starts = if known.is_empty() || size.is_some() {
            vec![None]
        } else {
            known
        };
        walk_from::<G>(&of_size::<G>(size, G::json_rules()), &starts, |state, _| {
            let mut plain = Vec::new();
            state.write_row(encoding, Symmetry::IDENTITY, &mut plain);
            for symmetry in (symmetries.count(&plain)..state.symmetries()).map(Symmetry) {
                assert!(!state.allows(symmetry), "{symmetry:?} of {state:?}");
            }
            for symmetry in (0..symmetries.count(&plain)).map(Symmetry) {
                let mut turned = plain.clone();
                symmetries.turn_row(symmetry, &mut turned);
                layout.validate(&turned).unwrap();
                // Some representations have symmetries of rows that are none of states.
                if symmetry.0 < state.symmetries() {
                    assert!(state.allows(symmetry));
                    let mut written = Vec::new();
                    state.write_row(encoding, symmetry, &mut written);
                    assert_eq!(expanded(&layout, &turned), expanded(&layout, &written));
                    for action in legal(state) {
                        let entry = state.policy_index(encoding, Symmetry::IDENTITY, action);
                        let image = symmetries.turn_action(symmetry, entry);
                        assert_eq!(image, state.policy_index(encoding, symmetry, action));
                    }
                }
            }
        });
    }
}

fn expanded(layout: &RowLayout, row: &[u32]) -> Vec<f32> {
    match layout.stack() {
        Ok(stack) => {
            let mut tensor = vec![0.0; stack.tensor_len()];
            stack.expand(row, &mut tensor).unwrap();
            tensor
        }
        Err(_) => row.iter().map(|&value| value as f32).collect(),
    }
}

fn check_layouts<G: Notation>(size: Option<u32>) {
    for encoding in encodings::<G>(size) {
        let layout = G::layout(encoding);
        layout.check().unwrap();
        let state = G::start(&of_size::<G>(size, G::Rules::default()), None).unwrap();
        assert_eq!((layout.game.as_str(), layout.actions), (G::NAME, state.actions()));
        let json = serde_json::to_value(&layout).unwrap();
        assert_eq!(serde_json::from_value::<RowLayout>(json).unwrap(), layout);
        for head in [PolicyHead::Dense, PolicyHead::Planes, PolicyHead::PerPart] {
            let other = RowLayout {
                policy_head: head,
                ..layout.clone()
            };
            let fits = match layout.stack() {
                Ok(stack) => match head {
                    PolicyHead::Dense => true,
                    PolicyHead::Planes => layout.actions as usize >= stack.squares(),
                    PolicyHead::PerPart => false,
                },
                Err(_) => head == PolicyHead::PerPart,
            };
            assert_eq!(other.check().is_ok(), fits, "{head:?} of {}", G::NAME);
        }
    }
}

fn check_text<G: Notation>(size: Option<u32>) {
    walk::<G>(&of_size::<G>(size, G::json_rules()), |state, _| {
        // A position within a turn need not have a text, and Paco Ŝako has none for a promotion before the turn.
        let promotes = G::NAME == "paco-sako" && legal(state).first() == Some(&128);
        if state.is_mid_turn() || promotes || state.outcome().is_some() {
            return;
        }
        let start = |text: &str| G::start(&of_size::<G>(size, G::json_rules()), Some(text)).unwrap();
        let again = start(&state.position());
        assert_eq!(again.position(), state.position());
        // The first line of a file of another system.
        let marked = start(&format!("\u{feff}{}\r\n", state.position()));
        assert_eq!(marked.position(), state.position());
        assert_eq!(again.to_move(), state.to_move());
        assert_eq!(legal(&again), legal(state));
    });
}

fn check_notation<G: Notation>(size: Option<u32>) {
    walk::<G>(&of_size::<G>(size, G::people_rules()), |state, action| {
        let Some(action) = action else {
            assert!(state.result_text().is_none_or(|text| text.ends_with('.')));
            return;
        };
        let text = state.write_turn(&[action]);
        assert_eq!(
            state.read_turn(&text),
            Ok(vec![action]),
            "{text} in {}",
            state.position()
        );
        assert!(state.legal_text().contains(&text));
    });
    assert!(!G::HELP.is_empty());
    for player in [games::Player::First, games::Player::Second] {
        assert_eq!(G::player_named(G::PLAYER_NAMES[player.index()]), Some(player));
    }
}

fn check_scene<G: Notation>(size: Option<u32>) {
    walk::<G>(&of_size::<G>(size, G::people_rules()), |state, action| {
        let scene = state.scene(&action.into_iter().collect::<Vec<_>>());
        assert_eq!((scene.game, scene.to_move), (G::NAME, state.to_move()));
        for board in &scene.boards {
            assert_eq!(board.cells.len(), board.columns.len() * board.rows.len());
            assert!(
                board
                    .cells
                    .iter()
                    .all(|cell| cell.pieces.len() <= board.pieces_per_cell)
            );
        }
        assert!(serde_json::to_value(&scene).unwrap()["boards"][0]["cells"].is_array());
        for ascii in [false, true] {
            let style = games::terminal::Style {
                ascii,
                ..Default::default()
            };
            let text = state.draw(style);
            assert!(text.ends_with('\n'), "{text}");
        }
    });
}

/// Checks that each action has clicks of its own or is offered by its name. A piece is clicked where it is, and placed
/// on its cell.
fn check_clicks<G: Notation>(size: Option<u32>) {
    walk::<G>(&of_size::<G>(size, G::people_rules()), |state, _| {
        let scene = state.scene(&[]);
        let cells = scene.boards[0].cells.len();
        let mut seen = HashSet::new();
        for action in legal(state) {
            let clicks = state.clicks(action);
            assert!(clicks.cells.iter().all(|click| !click.is_empty()));
            assert!(clicks.cells.iter().flatten().all(|&cell| cell < cells));
            assert!(clicks.part.is_none_or(|part| part < scene.tree.len()));
            let first: Vec<usize> = clicks.cells.iter().map(|click| click[0]).collect();
            let letter = clicks.piece.map(|piece| piece.letter);
            let by_name = clicks.cells.is_empty().then_some(action);
            assert!(
                seen.insert((first.clone(), letter, by_name)),
                "{action} in {state:?}"
            );
            let mut after = state.clone();
            after.play(action).unwrap();
            if let [place] = first[..]
                && G::PLAYERS == 2
            {
                // A cell that one click plays on is marked afterwards, as a part of the turn.
                let drawn = after.scene(&[action]).boards.swap_remove(0);
                assert!(drawn.cells[place].is_last || clicks.piece.is_some());
            }
        }
        if let Some(hand) = scene.hand {
            assert_eq!(scene.boards[0].name(hand.cell), hand.square);
        }
    });
}

fn check_json<G: Notation>(size: Option<u32>) {
    let rules = of_size::<G>(size, G::json_rules());
    walk::<G>(&rules, |state, action| {
        if let Some(action) = action {
            let value = state.action_to_json(action);
            assert_eq!(state.action_from_json(&value), Ok(action));
        }
        assert!(state.action_from_json(&serde_json::json!({})).is_err());
        assert!(state.action_from_json(&serde_json::json!(-1)).is_err());
        for encoding in encodings::<G>(size) {
            let names: HashSet<&str> = state.json_fields(encoding).iter().map(|field| field.0).collect();
            assert_eq!(names.len(), state.json_fields(encoding).len());
        }
        assert_eq!(state.outcome_name().is_some(), state.outcome().is_some());
    });
    assert!(G::encoding(&of_size::<G>(size, G::Rules::default()), G::OPTIONS).is_ok());
    let usual = G::start_from_json(&rules, None, &Map::new()).unwrap();
    assert_eq!(usual.position(), G::start(&rules, None).unwrap().position());
    // Fields of a rules table may be left out.
    let table = serde_json::to_value(&rules).unwrap();
    assert_eq!(serde_json::from_value::<G::Rules>(table).unwrap(), rules);
    assert_eq!(
        serde_json::from_value::<G::Rules>(serde_json::json!({})).unwrap(),
        G::Rules::default()
    );
}

fn check_openings<G: Notation>(size: Option<u32>) {
    // Two passes soon end a game on a tiny board.
    if size.is_some_and(|size| size < 5) {
        return;
    }
    let mut found = HashSet::new();
    for seed in 0..40 {
        let mut random = drawer(seed);
        let mut state = G::start(&of_size::<G>(size, G::Rules::default()), None).unwrap();
        for _ in 0..G::OPENING_PLIES {
            let actions = legal(&state);
            assert!(!actions.is_empty(), "an opening of {} ends the game", G::NAME);
            // A wrong mark ends the one-player game, so its openings are not played.
            let action = actions[random(actions.len())];
            if G::PLAYERS == 2 {
                state.play(action).unwrap();
            }
        }
        found.insert(state.position());
    }
    // The smallest board of Hex has 16 openings.
    let is_tiny = size.is_some_and(|size| size < 3);
    assert!(G::PLAYERS == 1 || is_tiny || found.len() > 15);
}

fn check_bad_texts<G: Notation>(size: Option<u32>) {
    let state = G::start(&of_size::<G>(size, G::people_rules()), None).unwrap();
    for text in ["", "z9", "e2 é4", "999999999999", "\u{0}", "[", "a1 a1 a1 a1"] {
        assert!(state.read_turn(text).is_err(), "{text:?}");
    }
    for text in ["", " ", "x", "8/8/8/8/8/8/8/8", "{\"clan\":[]}", "\u{1f600} X"] {
        assert!(
            G::start(&of_size::<G>(size, G::people_rules()), Some(text)).is_err(),
            "{text:?}"
        );
    }
}

/// Plays any numbers as actions. Those that are refused change nothing. Unchecked play leaves a state whose methods do not panic.
fn check_any_actions<G: Notation>(size: Option<u32>) {
    let mut random = drawer(9);
    let encoding = encodings::<G>(size)[0];
    for rules in [
        of_size::<G>(size, G::Rules::default()),
        of_size::<G>(size, G::people_rules()),
        of_size::<G>(size, G::json_rules()),
    ] {
        walk::<G>(&rules, |state, _| {
            let mut state = state.clone();
            let actions = state.actions() as usize;
            let mut odd = || {
                let limit = [actions + 2, 1 << 32][random(2)];
                random(limit) as u32
            };
            for action in std::iter::repeat_with(&mut odd).take(3) {
                let before = format!("{state:?}");
                if state.play(action).is_err() {
                    assert_eq!(format!("{state:?}"), before);
                }
            }
            for action in std::iter::repeat_with(&mut odd).take(3) {
                state.play_legal(action);
                let _ = (
                    state.outcome(),
                    state.position(),
                    legal(&state).len(),
                    state.can_draw(),
                );
                state.write_row(encoding, Symmetry::IDENTITY, &mut Vec::new());
            }
        });
    }
    assert!(G::encoding(&of_size::<G>(size, G::Rules::default()), 100).is_err());
}

#[test]
fn unknown_symmetries_and_entries_change_nothing() {
    let symmetries = Othello::row_symmetries(Default::default());
    let mut row = vec![3; 65];
    symmetries.turn_row(Symmetry(8), &mut row);
    symmetries.turn_row(Symmetry(255), &mut row);
    assert_eq!(row, vec![3; 65]);
    assert_eq!(symmetries.turn_action(Symmetry(3), u32::MAX), u32::MAX);
    assert_eq!(symmetries.turn_action(Symmetry(200), 5), 5);
    assert_eq!(RowSymmetries::none().count(&row), 1);
}
