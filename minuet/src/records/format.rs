//! Ids as text.

use proto::ids::parse_game_id;

/// Parses an id of 32 hexadecimal digits.
pub fn parse_id(text: &str) -> Result<[u8; 16], String> {
    parse_game_id(text).ok_or_else(|| {
        format!(
            "`{text}` is not a game id; an id has 32 hexadecimal digits, as `minuet games list` prints them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_ids_are_parsed() {
        let id = *b"0123456789abcdef";
        assert_eq!(parse_id(&proto::ids::hex(&id)), Ok(id));
        for wrong in [
            "",
            "12",
            "zz",
            &"f".repeat(33),
            "+0000000000000000000000000000001",
        ] {
            assert!(parse_id(wrong).is_err(), "{wrong}");
        }
    }
}
