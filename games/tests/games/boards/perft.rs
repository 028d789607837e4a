//! Published counts of action sequences.

use games::{
    Game,
    chess::{self, Chess},
    othello::Othello,
    perft::perft,
};

fn counts<G: Game>(rules: &G::Rules, position: Option<&str>, depth: usize) -> Vec<u64> {
    perft(&G::start(rules, position).unwrap(), depth)
}

/// 228 games are over after 9 plies. The published number for depth 10, 24,571,284, counts a pass after each of them.
#[test]
fn othello_from_the_start() {
    let found = counts::<Othello>(&Default::default(), None, 10);
    let published = [
        4,
        12,
        56,
        244,
        1396,
        8200,
        55_092,
        390_216,
        3_005_288,
        24_571_284 - 228,
    ];
    assert_eq!(found, published);
    assert_eq!(finished_games(&Othello::initial(), 9), 228);
}

fn finished_games(state: &Othello, plies: u32) -> u64 {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    if plies == 0 || actions.is_empty() {
        return u64::from(actions.is_empty());
    }
    let after = |&action: &u32| {
        let mut next = *state;
        next.play_legal(action);
        finished_games(&next, plies - 1)
    };
    actions.iter().map(after).sum()
}

/// Four positions of the chess programming wiki besides those of `KNOWN_PERFT`.
#[test]
fn chess_from_well_known_positions() {
    let known: [(&str, &[u64]); 4] = [
        (
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            &[14, 191, 2812, 43_238, 674_624],
        ),
        (
            "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
            &[6, 264, 9467, 422_333],
        ),
        (
            "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
            &[44, 1486, 62_379, 2_103_487],
        ),
        (
            "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
            &[46, 2079, 89_890, 3_894_594],
        ),
    ];
    let rules = chess::Rules {
        underpromotions: true,
    };
    for (fen, expected) in known {
        assert_eq!(
            counts::<Chess>(&rules, Some(fen), expected.len()),
            expected,
            "{fen}"
        );
    }
}

#[test]
fn without_under_promotions_a_pawn_becomes_a_queen_only() {
    let fen = Some("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1");
    // 24 moves, 12 of which are the four promotions of three pawns.
    assert_eq!(counts::<Chess>(&chess::Rules::default(), fen, 1), [24 - 9]);
}

/// Gomoku, compared with an independent count: the board as a list of squares, lines followed stone by stone.
#[test]
fn gomoku_agrees_with_a_brute_force_count() {
    use games::gomoku::Gomoku;

    // Six squares are empty, and some of them complete a row of five, so games end at different depths.
    let text = "XXXX-XOOOOXOOOXOOX-OXXOOOOXXOOXX-XO-XXOOOOXXO-XXXXOOXXOOOOXX-OXX X";
    let mut board: Vec<char> = text.chars().take(64).collect();
    assert!(!wins(&board, 'X') && !wins(&board, 'O'));
    let expected: Vec<u64> = (1..=4).map(|depth| count(&mut board, 'X', depth)).collect();
    assert_eq!(counts::<Gomoku>(&Default::default(), Some(text), 4), expected);
    assert!(expected[3] < 6 * 5 * 4 * 3);

    fn count(board: &mut [char], mover: char, depth: u32) -> u64 {
        let other = if mover == 'X' { 'O' } else { 'X' };
        if wins(board, other) {
            return 0;
        }
        let empty: Vec<usize> = (0..64).filter(|&square| board[square] == '-').collect();
        if depth == 1 {
            return empty.len() as u64;
        }
        let mut sum = 0;
        for square in empty {
            board[square] = mover;
            sum += count(board, other, depth - 1);
            board[square] = '-';
        }
        sum
    }

    fn wins(board: &[char], player: char) -> bool {
        let stone = |rank: i32, file: i32| {
            (0..8).contains(&rank) && (0..8).contains(&file) && board[(8 * rank + file) as usize] == player
        };
        (0..64).any(|square| {
            [(0, 1), (1, 0), (1, 1), (1, -1)].iter().any(|&(up, right)| {
                (0..5).all(|step| stone(square / 8 + up * step, square % 8 + right * step))
            })
        })
    }
}
