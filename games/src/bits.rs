//! Bitboards: boards of 64 squares as bits `8·rank + file` of a `u64`, and their eight symmetries.

/// Number of squares of a board.
pub(crate) const SQUARES: u32 = 64;

/// Returns the squares of a bitboard, ascending.
pub(crate) fn squares(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let square = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (square < 64).then_some(square)
    })
}

/// Returns the mirror image of a bitboard: file `f` becomes file `7 - f`.
pub(crate) const fn mirror(bits: u64) -> u64 {
    bits.reverse_bits().swap_bytes()
}

/// Transposes a bitboard: rank and file are exchanged.
const fn transpose(mut bits: u64) -> u64 {
    // Swaps ever larger blocks across the main diagonal.
    let swap = (bits ^ (bits >> 7)) & 0x00aa_00aa_00aa_00aa;
    bits ^= swap ^ (swap << 7);
    let swap = (bits ^ (bits >> 14)) & 0x0000_cccc_0000_cccc;
    bits ^= swap ^ (swap << 14);
    let swap = (bits ^ (bits >> 28)) & 0x0000_0000_f0f0_f0f0;
    bits ^ swap ^ (swap << 28)
}

/// Returns the image of a bitboard in a symmetry of the square, 0 to 7. Bit 2 mirrors the files; then bits 0 and 1 count
/// quarter turns, clockwise if rank 0 is drawn on top. Numbers above 7 are taken modulo 8.
pub(crate) const fn turn(bits: u64, symmetry: u8) -> u64 {
    let bits = if symmetry & 4 == 0 { bits } else { mirror(bits) };
    match symmetry & 3 {
        0 => bits,
        1 => mirror(transpose(bits)),
        2 => bits.reverse_bits(),
        _ => transpose(mirror(bits)),
    }
}

/// Returns the image of a square under [`turn`]. Squares above 63 are taken modulo 64.
pub(crate) const fn turn_square(square: u32, symmetry: u8) -> u32 {
    turn(1 << (square & 63), symmetry).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the image of a square, computed from coordinates with rank 0 on top.
    fn turn_by_hand(rank: u32, file: u32, symmetry: u8) -> (u32, u32) {
        let (mut rank, mut file) = (rank, if symmetry & 4 == 0 { file } else { 7 - file });
        for _ in 0..symmetry & 3 {
            (rank, file) = (file, 7 - rank);
        }
        (rank, file)
    }

    #[test]
    fn turning_a_square_agrees_with_turning_its_coordinates() {
        for symmetry in 0..8 {
            for square in 0..64 {
                let (rank, file) = turn_by_hand(square / 8, square % 8, symmetry);
                assert_eq!(
                    turn_square(square, symmetry),
                    rank * 8 + file,
                    "{symmetry} {square}"
                );
            }
        }
    }

    #[test]
    fn turning_a_board_turns_each_square() {
        let board = 0x8421_1248_0f3c_a581;
        for symmetry in 0..8 {
            let each = squares(board).fold(0, |bits, square| bits | 1u64 << turn_square(square, symmetry));
            assert_eq!(turn(board, symmetry), each);
        }
        assert_eq!(squares(0).count(), 0);
        assert_eq!(squares(u64::MAX).last(), Some(63));
    }
}
