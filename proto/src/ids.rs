//! Text forms of ids and cursors: hexadecimal digits, 32 for the id of a game.

use std::fmt::Write as _;

/// Returns bytes as lower-case hexadecimal digits, two for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Reads bytes from hexadecimal digits. Returns `None` if the text is not two digits for each byte.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => u8::try_from(16 * digit(high)? + digit(low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

/// Reads the id of a game. Returns `None` if the text is not 32 hexadecimal digits.
pub fn parse_game_id(text: &str) -> Option<[u8; 16]> {
    parse_hex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_are_no_ids_are_refused() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(hex(&parse_game_id(digits).unwrap()), digits);
        assert_eq!((parse_hex(""), parse_hex("0")), (Some(Vec::new()), None));
        for wrong in [
            "",
            "12",
            &digits[1..],
            "+123456789abcdef0123456789abcdef",
            "g123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(parse_game_id(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn an_id_is_read_from_its_digits(id: [u8; 16]) {
            prop_assert_eq!(parse_game_id(&hex(&id)), Some(id));
        }
    }
}
