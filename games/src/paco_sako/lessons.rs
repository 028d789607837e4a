//! The rules in half a page, for people who know chess.

use crate::notation::Lesson;

/// The rules, with positions of a union and of a chain.
pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        text: "Paco Ŝako is chess in which no piece is ever captured. The pieces are those of chess, start and move as there, and White \
               begins. The goal is a union with the opponent's king.",
        positions: &[],
    },
    Lesson {
        text: "Union: where a piece of chess would capture, both pieces share the square from then on. Either player can move the pair, in the \
               way in which the own piece of it moves, but only to an empty square. A king forms no unions.",
        positions: &[(
            "After e4 d5, e4 on d5: the pawns dance together.",
            "rnbqkbnr/ppp1pppp/8/3a4/8/8/PPPP1PPP/RNBQKBNR b 0 AHah - -",
        )],
    },
    Lesson {
        text: "Chain: a single piece may move to a union too. It takes the place of the own piece there, which is released and moves on at \
               once, in the same turn, perhaps to the next union.",
        positions: &[(
            "The rook takes the pawn's place on d5, and the pawn moves on to e6, where it dances with Black's pawn.",
            "4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -",
        )],
    },
    Lesson {
        text: "Ŝako: the opponent could reach your king in the next turn, by a chain of any length. You may ignore it, and lose. There is no \
               mate and no stalemate: who unites with the king wins.",
        positions: &[],
    },
    Lesson {
        text: "A pawn on the last row becomes a queen, a rook, a bishop or a knight, also in a pair that the opponent moved there. The game is a \
               draw after fifty turns of each side without a new union or promotion, and when a position occurs for the third time.",
        positions: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Game as _, Notation as _, paco_sako::PacoSako};

    #[test]
    fn each_position_is_one_and_the_chain_can_be_played() {
        let shown: Vec<&str> = LESSONS
            .iter()
            .flat_map(|lesson| lesson.positions)
            .map(|&(_, text)| text)
            .collect();
        let states = shown
            .iter()
            .map(|text| PacoSako::start(&PacoSako::people_rules(), Some(text)).unwrap());
        let states: Vec<PacoSako> = states.collect();
        let mut chain = states[1].clone();
        for action in chain.read_turn("d1 d5 e6").unwrap() {
            chain.play(action).unwrap();
        }
        assert!(!chain.is_mid_turn());
    }
}
