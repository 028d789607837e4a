//! Othello, compared with a second implementation: an array of squares, and a walk in every direction.

use games::{
    Game, KnownOutcome, Outcome, Player,
    othello::{Othello, PASS},
};
use proptest::prelude::*;

use crate::shared::{choices, legal, play, wins_at_once};

/// Discs by rank and file. `None` is an empty square.
#[derive(Clone, PartialEq, Debug)]
struct Squares([[Option<Player>; 8]; 8]);

impl Squares {
    fn initial() -> Self {
        let mut board = [[None; 8]; 8];
        for (rank, file, player) in [
            (3, 3, Player::Second),
            (4, 4, Player::Second),
            (3, 4, Player::First),
            (4, 3, Player::First),
        ] {
            board[rank][file] = Some(player);
        }
        Self(board)
    }

    fn at(&self, rank: i32, file: i32) -> Option<Player> {
        *self
            .0
            .get(usize::try_from(rank).ok()?)?
            .get(usize::try_from(file).ok()?)?
    }

    /// Returns the squares of the discs that turn when `player` places a disc. Empty if that is not legal.
    fn turned(&self, square: i32, player: Player) -> Vec<(i32, i32)> {
        let (rank, file) = (square / 8, square % 8);
        let mut all = Vec::new();
        if self.at(rank, file).is_some() {
            return all;
        }
        for down in -1..=1 {
            for right in -1..=1 {
                let mut run = Vec::new();
                let (mut rank, mut file) = (rank + down, file + right);
                while (down, right) != (0, 0) && self.at(rank, file) == Some(player.other()) {
                    run.push((rank, file));
                    (rank, file) = (rank + down, file + right);
                }
                if self.at(rank, file) == Some(player) {
                    all.extend(run);
                }
            }
        }
        all
    }

    fn placements(&self, player: Player) -> Vec<u32> {
        (0..64)
            .filter(|&square| !self.turned(square as i32, player).is_empty())
            .collect()
    }

    fn legal(&self, player: Player) -> Vec<u32> {
        let own = self.placements(player);
        match (own.is_empty(), self.placements(player.other()).is_empty()) {
            (true, false) => vec![PASS],
            _ => own,
        }
    }

    fn outcome(&self, player: Player) -> Option<Outcome> {
        if !self.legal(player).is_empty() {
            return None;
        }
        let count = |player| {
            self.0
                .iter()
                .flatten()
                .filter(|&&disc| disc == Some(player))
                .count()
        };
        let (first, second) = (count(Player::First), count(Player::Second));
        Some(match first.cmp(&second) {
            std::cmp::Ordering::Greater => Outcome::Won(Player::First),
            std::cmp::Ordering::Less => Outcome::Won(Player::Second),
            std::cmp::Ordering::Equal => Outcome::Draw,
        })
    }

    fn place(&mut self, action: u32, player: Player) {
        if action == PASS {
            return;
        }
        for (rank, file) in self.turned(action as i32, player) {
            self.0[rank as usize][file as usize] = Some(player);
        }
        self.0[action as usize / 8][action as usize % 8] = Some(player);
    }
}

fn agree(state: &Othello, squares: &Squares) {
    assert_eq!(legal(state), squares.legal(state.to_move()));
    assert_eq!(state.outcome(), squares.outcome(state.to_move()));
    let (own, other) = state.bitboards();
    for square in 0..64 {
        let disc = squares.at(square / 8, square % 8);
        assert_eq!(own >> square & 1 == 1, disc == Some(state.to_move()));
        assert_eq!(other >> square & 1 == 1, disc == Some(state.to_move().other()));
    }
}

proptest! {
    #[test]
    fn bitboards_agree_with_squares(choices in choices(70)) {
        let mut squares = Squares::initial();
        let mut state = Othello::initial();
        play(&mut state, &choices, |state, action| {
            agree(state, &squares);
            for refused in (0..70).filter(|action| !legal(state).contains(action)) {
                assert!(state.clone().play(refused).is_err());
            }
            squares.place(action, state.to_move());
        });
        agree(&state, &squares);
        prop_assert_eq!(Othello::start(&Default::default(), Some(&state.position())), Ok(state));
    }

    /// Includes boards that no game reaches, so that every direction and edge is tested.
    #[test]
    fn bitboards_agree_with_squares_on_any_board(letters in "[XO-]{64}", mover in "[XO]") {
        prop_assume!(letters.contains(['X', 'O']));
        let text = format!("{letters} {mover}");
        let mut state = Othello::start(&Default::default(), Some(&text)).unwrap();
        prop_assert_eq!(state.position(), text);
        let mut squares = Squares([[None; 8]; 8]);
        for (square, letter) in letters.chars().enumerate() {
            squares.0[square / 8][square % 8] = match letter {
                'X' => Some(Player::First),
                'O' => Some(Player::Second),
                _ => None,
            };
        }
        agree(&state, &squares);
        if let Some(&action) = legal(&state).first() {
            squares.place(action, state.to_move());
            state.play(action).unwrap();
            agree(&state, &squares);
        }
    }
}

#[test]
fn a_player_without_a_placement_passes() {
    let white_stuck = format!("XO{}", "-".repeat(62));
    let mut state = Othello::start(&Default::default(), Some(&format!("{white_stuck} O"))).unwrap();
    assert_eq!(legal(&state), [PASS]);
    assert!(state.play(2).is_err());
    state.play(PASS).unwrap();
    assert_eq!((state.to_move(), legal(&state)), (Player::First, vec![2]));
    assert!(state.play(PASS).is_err());
    state.play(2).unwrap();
    assert_eq!(state.outcome(), Some(Outcome::Won(Player::First)));
    assert!(state.play(PASS).is_err());
}

#[test]
fn a_row_repeats_its_first_entry() {
    let mut row = Vec::new();
    Othello::initial().write_row(Default::default(), Default::default(), &mut row);
    assert_eq!(row.len(), 65);
    assert_eq!(row[..4], [28, 35, 64 + 27, 64 + 36]);
    assert!(row[4..64].iter().all(|&entry| entry == 28));
    assert_eq!(row[64], 1);
}

/// Returns the result for the first player by trying every action.
fn minimax(state: &Othello) -> f32 {
    if let Some(outcome) = state.outcome() {
        return outcome.value().get();
    }
    let results = legal(state).into_iter().map(|action| {
        let mut next = *state;
        next.play_legal(action);
        minimax(&next)
    });
    match state.to_move() {
        Player::First => results.fold(-1.0, f32::max),
        Player::Second => results.fold(1.0, f32::min),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// The opponent has few discs, as before it is wiped out, or neither player has many, so that placements can run out.
    #[test]
    fn a_disc_that_ends_the_game_with_a_win_is_known_on_any_board(
        squares in prop::collection::vec(0u32..100, 64),
        own in 0u32..60,
        other in 1u32..40,
    ) {
        let letters: String = squares
            .iter()
            .map(|&number| match number {
                number if number < own => 'X',
                number if number < own + other => 'O',
                _ => '-',
            })
            .collect();
        prop_assume!(letters.contains(['X', 'O']));
        let state = Othello::start(&Default::default(), Some(&format!("{letters} X"))).unwrap();
        prop_assume!(letters.matches('-').count() > 8 && state.outcome().is_none());
        let win = KnownOutcome { outcome: Outcome::Won(Player::First), actions: 1 };
        prop_assert_eq!(state.known(), wins_at_once(&state).then_some(win), "{}", state.position());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn outcomes_of_the_last_empty_squares_agree_with_minimax(choices in prop::collection::vec(any::<u16>(), 70)) {
        let mut state = Othello::initial();
        let mut late = Vec::new();
        play(&mut state, &choices, |state, _| late.push(*state));
        let mut compared = 0;
        for state in late {
            let (own, other) = state.bitboards();
            let empty = (!(own | other)).count_ones();
            let known = state.known();
            prop_assert_eq!(known.is_some(), empty <= 8 || wins_at_once(&state));
            if let Some(known) = known.filter(|_| empty <= 6) {
                prop_assert_eq!(known.outcome.value().get(), minimax(&state), "{}", state.position());
                compared += 1;
            }
        }
        prop_assert!(compared > 0 || state.outcome().is_some());
    }
}
