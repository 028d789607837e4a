//! Proving a short mate, so that `score mate` is never a guess: a plain search through all moves, bounded in size.

use games::{Action, Game, Outcome, chess::Chess};

/// Longest mate that is searched, in moves of the winner.
const LONGEST: u32 = 3;
/// Largest number of positions per proof; they take some milliseconds.
const MOST_POSITIONS: usize = 20_000;

/// Returns the length and the first move of the shortest forced mate by the player to act, in at most `moves` moves (at most
/// [`LONGEST`]). `None` if there is none, or none was found within the bound on positions.
pub fn forced(state: &Chess, moves: u32) -> Option<(u32, Action)> {
    let mut left = MOST_POSITIONS;
    (1..=moves.min(LONGEST)).find_map(|moves| Some((moves, winning_move(state, moves, &mut left)?)))
}

/// Returns the number of opponent's moves within which the player to act is mated by force, at most `moves`; `None` if not
/// proven.
fn suffered(state: &Chess, moves: u32) -> Option<u32> {
    let mut left = MOST_POSITIONS;
    (0..=moves.min(LONGEST)).find(|&moves| is_lost(state, moves, &mut left))
}

/// Returns the proven mate distance of a line from `state` that ends in mate: positive if its first move mates by force in that
/// many moves, negative if it lets the opponent mate by force in that many.
pub fn score(state: &Chess, line: &[Action]) -> Option<i32> {
    let moves = line.len().div_ceil(2) as u32;
    let (&first, _) = line.split_first()?;
    if moves > LONGEST {
        return None;
    }
    let mut end = state.clone();
    line.iter().for_each(|&action| end.play_legal(action));
    let Some(Outcome::Won(winner)) = end.outcome() else {
        return None;
    };
    let mut after = state.clone();
    after.play_legal(first);
    Some(if winner == state.to_move() {
        suffered(&after, moves - 1)? as i32 + 1
    } else {
        -(forced(&after, moves)?.0 as i32)
    })
}

/// Returns the legal moves with the positions after them. `None` if fewer than that are `left`.
fn after_moves(state: &Chess, left: &mut usize) -> Option<Vec<(Action, Chess)>> {
    let mut actions = Vec::new();
    state.moves(&mut actions);
    *left = left.checked_sub(actions.len())?;
    let after = actions.into_iter().map(|action| {
        let mut after = state.clone();
        after.play_legal(action);
        (action, after)
    });
    Some(after.collect())
}

/// Returns a move that mates by force in at most `moves` moves.
fn winning_move(state: &Chess, moves: u32, left: &mut usize) -> Option<Action> {
    if moves == 0 || state.outcome().is_some() {
        return None;
    }
    let mut after = after_moves(state, left)?;
    // Only a check can mate at once; in longer mates checks are tried first.
    after.retain(|(_, after)| moves > 1 || after.is_check());
    after.sort_by_key(|(_, after)| !after.is_check());
    let found = after
        .into_iter()
        .find(|(_, after)| is_lost(after, moves - 1, left));
    found.map(|(action, _)| action)
}

/// True if the player to act is mated now, or by force within `moves` moves of the opponent.
fn is_lost(state: &Chess, moves: u32, left: &mut usize) -> bool {
    match state.outcome() {
        Some(outcome) => matches!(outcome, Outcome::Won(_)),
        None if moves == 0 => false,
        None => after_moves(state, left).is_some_and(|after| {
            let mut after = after.iter();
            after.all(|(_, after)| winning_move(after, moves, left).is_some())
        }),
    }
}

#[cfg(test)]
mod tests {
    use games::chess::Rules;

    use super::*;

    fn at(fen: &str) -> Chess {
        Chess::start(&Rules::default(), Some(fen)).unwrap()
    }

    /// Expected moves are from a brute-force search with python-chess.
    #[test]
    fn finds_the_shortest_mate_and_no_other() {
        for (fen, moves, first) in [
            ("6k1/5ppp/8/8/8/8/5PPP/4R1K1 w - - 0 1", 1, "e1e8"),
            ("8/8/8/8/7k/8/R7/1R5K w - - 0 1", 2, "b1g1"),
            ("7k/8/8/8/8/8/R7/1R5K w - - 0 1", 2, "a2a7 b1b7 b1g1"),
            ("5r1k/6pp/7N/3Q4/8/8/8/6K1 w - - 0 1", 2, "d5g8"),
            ("6rk/4Pprp/5p1p/8/8/8/8/K7 w - - 0 1", 0, ""),
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 0, ""),
        ] {
            let state = at(fen);
            match forced(&state, 2) {
                Some((found, action)) => {
                    let uci = state.uci(action);
                    assert!(found == moves && first.contains(&uci), "{fen}: {uci} in {found}");
                }
                None => assert_eq!(moves, 0, "{fen}"),
            }
        }
    }

    #[test]
    fn a_forced_loss_is_proven() {
        let lost = at("7k/8/6K1/8/8/8/8/R7 b - - 0 1");
        assert_eq!(suffered(&lost, 1), Some(1));
        assert_eq!(suffered(&at("6k1/8/6K1/8/8/8/8/R7 b - - 0 1"), 1), None);
        let mated = at("R5k1/8/6K1/8/8/8/8/8 b - - 0 1");
        assert_eq!(suffered(&mated, 2), Some(0));
    }

    #[test]
    fn a_line_that_ends_in_mate_is_scored_only_where_it_is_forced() {
        let line = |state: &Chess, moves: &str| {
            let mut now = state.clone();
            let actions: Vec<Action> = moves
                .split(' ')
                .map(|uci| {
                    let action = now.action_of_uci(uci).unwrap();
                    now.play(action).unwrap();
                    action
                })
                .collect();
            score(state, &actions)
        };
        let start = at("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        // Fool's mate: White's second move is not forced.
        assert_eq!(line(&start, "f2f3 e7e5 g2g4 d8h4"), None);
        let later = at("rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2");
        assert_eq!(line(&later, "g2g4 d8h4"), Some(-1));
        assert_eq!(
            line(&at("7k/8/8/8/8/8/R7/1R5K w - - 0 1"), "a2a7 h8g8 b1b8"),
            Some(2)
        );
        // Not forced, because the loser helps.
        assert_eq!(line(&start, "e2e4 f7f6 d2d4 g7g5 d1h5"), None);
        assert_eq!(line(&start, "e2e4 e7e5"), None);
    }
}
