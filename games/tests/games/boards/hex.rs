//! Hex, compared with OpenSpiel's games, with solved boards, and with a plain search for chains.

use std::collections::HashMap;

use games::{
    Game, Outcome, Player, Symmetry,
    hex::{Hex, Rules},
};
use proptest::{collection::vec, prelude::*};
use serde::Deserialize;

use crate::shared::{choices, legal, play, records, wins_at_once};

const PLAYERS: [Player; 2] = [Player::First, Player::Second];

fn start(size: u32, swap: bool, position: Option<&str>) -> Hex {
    Hex::start(&Rules { size, swap }, position).unwrap()
}

#[derive(Deserialize)]
struct Recorded {
    size: u32,
    swap: bool,
    actions: Vec<u32>,
    legal_sums: Vec<u32>,
    board: String,
    winner: String,
}

#[test]
fn games_agree_with_openspiel_action_by_action() {
    let games: Vec<Recorded> = records("hex/games.jsonl.gz");
    assert_eq!(games.len(), 101);
    for game in games {
        let mut state = start(game.size, game.swap, None);
        for (&action, &sum) in game.actions.iter().zip(&game.legal_sums) {
            assert_eq!(state.outcome(), None);
            assert_eq!(legal(&state).iter().sum::<u32>(), sum, "{}", state.position());
            state.play(action).unwrap();
        }
        let winner = PLAYERS
            .into_iter()
            .find(|&player| state.outcome() == Some(Outcome::Won(player)));
        assert_eq!(
            winner,
            Some(if game.winner == "first" {
                Player::First
            } else {
                Player::Second
            })
        );
        assert_eq!(state.position().split(' ').next(), Some(game.board.as_str()));
    }
}

/// Returns the winner with perfect play.
fn solve(state: &Hex, known: &mut HashMap<String, Player>) -> Player {
    let mover = state.to_move();
    if let Some(Outcome::Won(winner)) = state.outcome().or(state.known().map(|known| known.outcome)) {
        return winner;
    }
    let position = state.position();
    if let Some(&winner) = known.get(&position) {
        return winner;
    }
    let wins = |&action: &u32| {
        let mut next = *state;
        next.play_legal(action);
        solve(&next, known) == mover
    };
    let winner = if legal(state).iter().any(wins) {
        mover
    } else {
        mover.other()
    };
    known.insert(position, winner);
    winner
}

/// An independent program without wins by one action computed these lists. Published, too: on 2×2 and 4×4 the short diagonal wins, and
/// on 3×3 two more cells.
#[test]
fn the_winning_openings_of_small_boards_are_found() {
    for (size, winning) in [(2, &[1, 2][..]), (3, &[2, 3, 4, 5, 6]), (4, &[3, 6, 9, 12])] {
        let mut known = HashMap::new();
        let wins = |&action: &u32| {
            let mut state = start(size, false, None);
            state.play(action).unwrap();
            solve(&state, &mut known) == Player::First
        };
        let found: Vec<u32> = (0..size * size).filter(wins).collect();
        assert_eq!(found, winning, "size {size}");
        // With the swap, the second player takes a winning stone over, and leaves any other.
        if size < 4 {
            assert_eq!(
                solve(&start(size, true, None), &mut HashMap::new()),
                Player::Second
            );
        }
    }
}

#[test]
fn the_swap_takes_the_first_stone_over_on_the_mirrored_cell() {
    let mut state = start(3, true, None);
    assert_eq!(
        state.play(9).unwrap_err().reason,
        "only the second player may swap, as the first action, if the rules allow it"
    );
    state.play(1).unwrap();
    assert_eq!(legal(&state), [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    let again = start(3, true, Some(&state.position()));
    assert_eq!(legal(&again), legal(&state));
    state.play(9).unwrap();
    assert_eq!(state.position(), "---O----- X");
    assert_eq!(legal(&state), [0, 1, 2, 4, 5, 6, 7, 8]);
    state.play(1).unwrap();
    assert!(state.play(9).is_err());

    let mut state = start(3, false, None);
    state.play(1).unwrap();
    assert!(state.play(9).is_err());
}

#[test]
fn positions_that_no_game_reaches_are_refused() {
    let refused = |swap, text: &str| {
        let rules = Rules { size: 3, swap };
        Hex::start(&rules, Some(text)).unwrap_err().reason
    };
    for (swap, text, reason) in [
        (
            true,
            "X-------- X",
            "the numbers of stones do not fit the player to move",
        ),
        (
            true,
            "--------- O",
            "the numbers of stones do not fit the player to move",
        ),
        (
            false,
            "O-------- X",
            "the numbers of stones do not fit the player to move",
        ),
        (
            false,
            "XO------- O",
            "the numbers of stones do not fit the player to move",
        ),
        (
            true,
            "OO------- X",
            "the numbers of stones do not fit the player to move",
        ),
        (true, "XOOX--X-O X", "the player to move has won already"),
        (true, "X--------- O", "the board has 10 squares, not 9"),
    ] {
        assert_eq!(refused(swap, text), reason, "{text}");
    }
    assert!(Hex::start(&Rules { size: 20, swap: true }, None).is_err());
    assert_eq!(
        start(3, true, Some("X--XO-XO- O")).outcome(),
        Some(Outcome::Won(Player::First))
    );
    assert_eq!(legal(&start(3, true, Some("XO------- O"))).len(), 7);
}

/// True if a chain of the player's stones joins the player's edges, found cell by cell.
fn is_connected(position: &str, size: i32, player: Player) -> bool {
    let letter = [b'X', b'O'][player.index()];
    let cells = position.as_bytes();
    let has = |rank: i32, file: i32| {
        (0..size).contains(&rank)
            && (0..size).contains(&file)
            && cells[(rank * size + file) as usize] == letter
    };
    let along = |rank, file| if player == Player::First { rank } else { file };
    let board = (0..size).flat_map(|rank| (0..size).map(move |file| (rank, file)));
    let mut open: Vec<(i32, i32)> = board.filter(|&(rank, file)| along(rank, file) == 0).collect();
    let mut seen = vec![false; (size * size) as usize];
    while let Some((rank, file)) = open.pop() {
        if has(rank, file) && !std::mem::replace(&mut seen[(rank * size + file) as usize], true) {
            if along(rank, file) == size - 1 {
                return true;
            }
            let steps = [(-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)];
            open.extend(steps.map(|(down, right)| (rank + down, file + right)));
        }
    }
    false
}

/// Exchanges ranks and files, and the players.
fn exchanged(position: &str, size: usize) -> String {
    let swap = |letter: u8| match letter {
        b'X' => 'O',
        b'O' => 'X',
        other => char::from(other),
    };
    let cells = position.as_bytes();
    let board = (0..size * size).map(|cell| swap(cells[cell % size * size + cell / size]));
    board.chain([' ', swap(cells[size * size + 1])]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_end_is_seen_at_once(size in 2..=19u32, choices in choices(362)) {
        let mut state = start(size, true, None);
        let check = |state: &Hex| {
            let position = state.position();
            for player in PLAYERS {
                let is_won = state.outcome() == Some(Outcome::Won(player));
                assert_eq!(is_connected(&position, size as i32, player), is_won, "{position}");
            }
        };
        play(&mut state, &choices, |state, _| {
            check(state);
            if size < 8 {
                assert_eq!(state.known().is_some(), wins_at_once(state), "{}", state.position());
            }
            assert_eq!(*state, start(size, true, Some(&state.position())));
        });
        check(&state);
    }

    /// A position, and the same with ranks, files and players exchanged, are one for a network.
    #[test]
    fn both_players_see_the_board_alike(choices in vec(any::<u16>(), 2..25), symmetry in 0..2u8) {
        let rules = Rules { size: 5, swap: true };
        let mut state = start(5, true, None);
        play(&mut state, &choices, |state, action| {
            if state.position().matches('-').count() > 23 {
                return;
            }
            let other = start(5, true, Some(&exchanged(&state.position(), 5)));
            let (mut row, mut other_row) = (Vec::new(), Vec::new());
            state.write_row(rules, Symmetry(symmetry), &mut row);
            other.write_row(rules, Symmetry(symmetry), &mut other_row);
            assert_eq!(row, other_row);
            let image = action % 5 * 5 + action / 5;
            assert_eq!(
                state.policy_index(rules, Symmetry(symmetry), action),
                other.policy_index(rules, Symmetry(symmetry), image)
            );
        });
    }
}

#[test]
fn the_mover_sees_its_own_edges_at_the_first_and_the_last_rank() {
    let rules = Rules { size: 3, swap: true };
    let mut state = start(3, true, None);
    state.play(1).unwrap();
    let mut row = Vec::new();
    state.write_row(rules, Symmetry::IDENTITY, &mut row);
    // Blue is to move: b1, Red's stone, is on the second rank of the first file.
    assert_eq!(row, [18, 19, 20, 9 + 3, 22, 23, 24, 25, 26, 1]);
    assert_eq!(state.policy_index(rules, Symmetry::IDENTITY, 2), 6);
    assert_eq!(state.policy_index(rules, Symmetry(1), 2), 2);
    assert_eq!(state.policy_index(rules, Symmetry(1), 9), 9);
    let layout = Hex::layout(rules);
    assert_eq!(layout.stack().unwrap().constants[0].name, "swap is possible");
}
