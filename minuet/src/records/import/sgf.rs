//! Games in SGF, as many as a file holds. The codec of the game reads each.

use std::io::{self, BufRead, Read as _};

use games::{Outcome, Player, erased::AnyGame, go::sgf::SgfError};

use super::found::{Fault, Found, Named, Played, Reason};

/// Maximum length of a game's text in bytes.
const MAX_TEXT: u64 = 16 << 20;

/// Reads the games of an SGF text.
pub struct Games<R> {
    text: R,
    game: &'static AnyGame,
}

impl<R: BufRead> Games<R> {
    /// Returns the reader of a text with games of this kind.
    pub fn new(text: R, game: &'static AnyGame) -> Self {
        Self { text, game }
    }

    /// Reads the text of the next game: up to the bracket that closes its first one. `None` at the end.
    fn read(&mut self) -> io::Result<Option<Result<String, Fault>>> {
        self.text.skip_until(b'(')?;
        if self.text.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut game = b"(".to_vec();
        let (mut depth, mut in_value, mut is_escaped) = (1, false, false);
        for byte in self.text.by_ref().take(MAX_TEXT).bytes() {
            let byte = byte?;
            game.push(byte);
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_value => is_escaped = true,
                b']' => in_value = false,
                _ if in_value => {}
                b'[' => in_value = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(Some(Ok(String::from_utf8_lossy(&game).into_owned())));
            }
        }
        let fault = Fault::new(Reason::Unreadable, "the game has no end");
        Ok(Some(Err(fault)))
    }
}

impl<R: BufRead> Iterator for Games<R> {
    type Item = io::Result<Result<Found, Fault>>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.read().transpose()?;
        Some(text.map(|text| text.and_then(|text| found(self.game, &text))))
    }
}

fn found(game: &AnyGame, text: &str) -> Result<Found, Fault> {
    let read = game.read_sgf(text).map_err(|error| {
        let reason = match error {
            SgfError::Illegal { .. } | SgfError::Start(_) => Reason::Illegal,
            SgfError::Form { .. }
            | SgfError::OtherGame(_)
            | SgfError::Value { .. }
            | SgfError::NoFiles(_) => Reason::Unreadable,
        };
        Fault::new(reason, error.to_string())
    })?;
    let course = read.course();
    let course = course.map_err(|problem| Fault::new(Reason::Illegal, problem))?;
    let result = result(&read.result);
    let mut actions = read.actions;
    // The players agreed on dead stones that the board still has. Without the last pass the game is not over, so the result of the file counts.
    if let (Some(told), Some(counted)) = (result, course.state().outcome())
        && told != counted
    {
        actions.pop();
    }
    let [black, white] = read.names;
    let ratings = read.ranks.map(|rank| rank.trim().parse().ok());
    let played = Played {
        rules: read.rules.rules(),
        start: read.position,
        actions,
    };
    Ok(Found {
        players: [(black, ratings[0]), (white, ratings[1])].map(|(name, rating)| Named { name, rating }),
        result,
        play: Box::new(|_| Ok(played)),
    })
}

/// Reads a result: `B+3.5`, `W+R`, `0`, `Draw`. `None` for those that are unknown or void.
fn result(text: &str) -> Option<Outcome> {
    let text = text.trim().to_uppercase();
    match text.split_once('+') {
        Some(("B", _)) => Some(Outcome::Won(Player::First)),
        Some(("W", _)) => Some(Outcome::Won(Player::Second)),
        _ => matches!(&*text, "0" | "DRAW" | "JIGO").then_some(Outcome::Draw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::import::found::{Target, record};

    fn read(size: u32, text: &str) -> Vec<Result<proto::v1::Game, Fault>> {
        let mut config = config::RunConfig::default();
        (config.game.name, config.game.options) = ("go".into(), 0);
        config.game.rules.insert("size".into(), i64::from(size).into());
        let target = Target::of(&config).unwrap();
        let games = Games::new(text.as_bytes(), target.game).map(Result::unwrap);
        games
            .map(|game| game.and_then(|found| record(&target, found, ("a.sgf", 1))))
            .collect()
    }

    #[test]
    fn each_game_of_a_collection_is_read_or_left_out_with_its_reason() {
        let text = "two games and faults
            (;GM[1]SZ[5]KM[7.5]RE[B+R]C[a (comment \\] with brackets ()];B[cc](;W[bb])(;W[dd]))
            (;SZ[5]KM[0.5]PB[Ann]BR[2150]WR[3d]RE[B+24.5];B[cc];W[];B[])
            (;SZ[5]RE[W+3.5];B[cc];W[];B[])(;SZ[5]RE[Void];B[cc])(;SZ[5]RE[B+R];B[cc];W[cc])
            (;SZ[9]RE[B+R];B[ee])(;GM[2]RE[B+R];B[cc])(;SZ[5]RE[B+R];B[cc]";
        let games = read(5, text);
        let resigned = games[0].as_ref().unwrap();
        assert_eq!((&*resigned.ending, resigned.score), ("adjudicated", 1.0));
        assert_eq!(
            (&resigned.actions[..], resigned.territory.len()),
            (&[12, 16][..], 0)
        );
        let counted = games[1].as_ref().unwrap();
        assert_eq!((&*counted.ending, counted.territory_score), ("two-passes", 24.5));
        let dead = games[2].as_ref().unwrap();
        assert_eq!((&*dead.ending, dead.score), ("adjudicated", -1.0));
        assert_eq!(dead.actions, [12, 25]);
        let validator = replay_store::record::validate::Validator::new("go:5", 0).unwrap();
        for game in [resigned, counted, dead] {
            validator.check(game).unwrap();
        }
        let reasons = games[3..].iter().map(|game| game.as_ref().unwrap_err().reason);
        use Reason::{Illegal, NoResult, Unreadable};
        let expected = [NoResult, Illegal, Unreadable, Unreadable, Unreadable];
        assert_eq!(reasons.collect::<Vec<_>>(), expected);
        let illegal = games[4].as_ref().unwrap_err().to_string();
        assert!(illegal.contains("move 2 (W[cc])"), "{illegal}");
    }

    #[test]
    fn results_are_read() {
        let [black, white] = [Player::First, Player::Second].map(|player| Some(Outcome::Won(player)));
        let texts = [
            ("B+3.5", black),
            ("w+Resign", white),
            (" W+ ", white),
            ("0", Some(Outcome::Draw)),
            ("?", None),
            ("", None),
        ];
        for (text, expected) in texts {
            assert_eq!(result(text), expected, "{text}");
        }
    }
}
