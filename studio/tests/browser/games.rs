//! Whole games of each game, by mouse, by finger and by keys, checked against the rules.

use games::{
    Game, Notation, Player,
    chess::Chess,
    connect_four::ConnectFour,
    generator::{Clan, GeneratorGame, Move, Problem},
    go::Go,
    gomoku::Gomoku,
    hex::Hex,
    othello::Othello,
    paco_sako::PacoSako,
};
use serde_json::Value;

use crate::browser::{Browser, Hand};

/// Opens a table where both sides are the person's, and waits until the board can be played.
fn begin<G: Notation>(browser: &Browser, start: Option<&str>) {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("game", G::NAME).append_pair("side", "both");
    if let Some(start) = start {
        query.append_pair("start", start);
    }
    browser.open_table(&query.finish());
}

/// Plays the turns once with each hand, and compares with the rules after each click that completes an action.
fn play<G: Notation>(hands: &[Hand], start: Option<&str>, turns: &[&str]) {
    let Some(browser) = Browser::start() else {
        return;
    };
    for &hand in hands {
        play_by::<G>(&browser, hand, start, turns);
    }
    browser.end();
}

fn play_by<G: Notation>(browser: &Browser, hand: Hand, start: Option<&str>, turns: &[&str]) {
    begin::<G>(browser, start);
    let mut state = G::start(&G::people_rules(), start).unwrap();
    let mut count = 0;
    for turn in turns {
        let actions = state.read_turn(turn).unwrap();
        let mut cells: Vec<usize> = Vec::new();
        let mut rest = actions.len();
        for action in actions {
            let clicks = state.clicks(action);
            let begins = !state.is_mid_turn() && clicks.piece.is_none();
            let in_hand = state.scene(&[]).hand.map(|hand| hand.cell);
            rest -= 1;
            count += 1;
            // A promotion after the pawn's move is picked only; the other clicks name their cell.
            if clicks.piece.is_none() || clicks.cells.len() > 1 {
                cells.extend(clicks.cells.iter().map(|click| click[0]));
            }
            state.play(action).unwrap();
            if begins && rest > 0 && state.is_mid_turn() {
                // Lifting and placing are one offer.
                continue;
            }
            if cells.is_empty() && clicks.piece.is_none() {
                browser.click(".named button");
            } else if let (Hand::Drag, [cell], Some(from)) = (hand, &cells[..], in_hand) {
                browser.drag(from, *cell);
            } else {
                browser.press(hand, &cells);
            }
            cells.clear();
            if let Some(piece) = clicks.piece {
                browser.pick(hand, piece.kind);
            }
            browser.find(&format!("[data-play][data-at='{count}']"));
            compare(browser, &state);
        }
    }
    let result = state.result_text().expect("the game is over");
    let status = browser.text(".status");
    assert!(status.contains(&result), "{status}");
}

/// Compares the page with a state of the rules: the position, the pieces that the cells name, the legal moves.
fn compare<G: Notation>(browser: &Browser, state: &G) {
    let script = "return [document.querySelector('[data-slot=position]').textContent, \
        [...document.querySelectorAll('[data-board] [data-cell]')].map(c => [c.dataset.cell, c.querySelectorAll('.piece').length]), \
        document.querySelectorAll('[data-offer]').length]";
    let shown = browser.script(script);
    assert_eq!(shown[0], Value::from(state.position()));
    let scene = state.scene(&[]);
    for cell in shown[1].as_array().unwrap() {
        let number: usize = cell[0].as_str().unwrap().parse().unwrap();
        let pieces = scene.boards[0].cells[number].pieces.len();
        assert_eq!(cell[1], Value::from(pieces), "cell {number}");
    }
    assert_eq!(shown[2] == 0, state.outcome().is_some());
}

const CHESS: &[&str] = &["f2f3", "e7e5", "g2g4", "d8h4"];
const CONNECT_FOUR: &[&str] = &["1", "2", "1", "2", "1", "2", "1"];
const GOMOKU: &[&str] = &["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2", "e1"];
/// The shortest game: White loses all discs.
const OTHELLO: &[&str] = &["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"];
const GO: &[&str] = &["e5", "pass", "pass"];
/// Blue takes the first stone over, and Red connects top and bottom.
const HEX: &[&str] = &[
    "f6", "swap", "a1", "k1", "a2", "k2", "a3", "k3", "a4", "k4", "a5", "k5", "a6", "k6", "a7", "k7", "a8",
    "k8", "a9", "k9", "a10", "k10", "a11",
];
/// A chain, a promotion, and the union with the king.
const PACO: &[&str] = &["d1 d5 e6", "e8 e7", "b7 b8 q", "e7 f8", "b8 f8"];
const PACO_START: &str = "4k3/1P6/4p3/3a4/8/8/8/3RK3 w 0 - - -";

#[test]
fn a_game_of_chess() {
    play::<Chess>(&[Hand::Click, Hand::Drag, Hand::Keys], None, CHESS);
}

#[test]
fn a_game_of_paco_sako_with_a_chain_and_a_promotion() {
    let hands = [Hand::Click, Hand::Drag, Hand::Keys, Hand::Touch];
    play::<PacoSako>(&hands, Some(PACO_START), PACO);
}

#[test]
fn a_game_of_connect_four() {
    play::<ConnectFour>(&[Hand::Click, Hand::Touch, Hand::Keys], None, CONNECT_FOUR);
}

#[test]
fn a_game_of_gomoku() {
    play::<Gomoku>(&[Hand::Click, Hand::Keys], None, GOMOKU);
}

#[test]
fn a_game_of_go_that_passes_end() {
    play::<Go>(&[Hand::Click, Hand::Touch, Hand::Keys], None, GO);
}

#[test]
fn a_game_of_hex_with_a_swap() {
    play::<Hex>(&[Hand::Click, Hand::Touch], None, HEX);
}

#[test]
fn a_game_of_othello() {
    play::<Othello>(&[Hand::Click, Hand::Keys], None, OTHELLO);
}

/// The problem is a grid of width 7, drawn by one move of the width's imp.
#[test]
fn a_game_of_the_generator_by_its_tree() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let narrow = Clan::start().after(1, Move(20)).unwrap();
    let start = GeneratorGame::posed(&GeneratorGame::people_rules(), Problem::Draw(narrow.render()));
    begin::<GeneratorGame>(&browser, Some(&start.position()));
    let mut state = start;
    for (count, turn) in ["1 dec", "0 mark_complete"].into_iter().enumerate() {
        let [action] = state.read_turn(turn).unwrap()[..] else {
            panic!("one action")
        };
        let part = state.clicks(action).part.unwrap();
        browser.click(&format!("[data-choose='{part}']"));
        let listed = format!(
            "[...document.querySelectorAll('[data-offer]')].filter(b => !b.hidden && b.dataset.part != {part})"
        );
        browser.wait(&format!("{listed}.length === 0"));
        let wanted = state.write_turn(&[action]);
        let number = browser.script(&format!(
            "return [...document.querySelectorAll('[data-offer]')].find(b => b.textContent === '{wanted}').dataset.offer"
        ));
        browser.click(&format!("[data-offer={number}]"));
        browser.find(&format!("[data-play][data-at='{}']", count + 1));
        state.play(action).unwrap();
    }
    let status = browser.text(".status");
    assert!(status.contains("Solved in 2 moves."), "{status}");
    assert_eq!(state.to_move(), Player::First);
    browser.end();
}
