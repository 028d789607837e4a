//! Games of chess in PGN, read one after the other, so that a file may be large.
//!
//! Main lines are read: variations, comments and annotations are skipped. The tags that count are `White`, `Black`, `WhiteElo`,
//! `BlackElo`, `Result`, `FEN` and `Variant`. The end marker may be missing, since the tag `Result` gives the result too.

use std::io::{self, BufRead};

use games::{Outcome, Player};

use super::found::{Fault, Found, Named, Play, Played, Reason, Target};

/// Maximum length of a word and of a tag's value. The rest is not read.
const MAX_WORD: usize = 1024;
/// Most words of a game; no game has as many moves.
const MAX_WORDS: usize = 100_000;

/// Reads the games of a PGN text.
pub struct Games<R> {
    text: R,
    /// True if the next byte begins a line.
    begins_line: bool,
}

/// Texts of a game.
#[derive(Default)]
struct Parts {
    players: [Named; 2],
    /// Results of the tag and of the end marker.
    results: [Option<Outcome>; 2],
    fen: Option<String>,
    variant: Option<String>,
    words: Vec<String>,
    fault: Option<&'static str>,
}

impl<R: BufRead> Games<R> {
    /// Returns the reader of a text.
    pub fn new(text: R) -> Self {
        Self {
            text,
            begins_line: true,
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.text.fill_buf()?.first().copied())
    }

    fn take(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.begins_line = byte == b'\n';
            self.text.consume(1);
        }
        Ok(byte)
    }

    /// Takes all bytes up to and including `end`. Returns false if the text ends before.
    fn skip(&mut self, end: u8) -> io::Result<bool> {
        while let Some(byte) = self.take()? {
            if byte == end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the bytes before the next one that `ends`.
    fn word(&mut self, ends: impl Fn(u8) -> bool) -> io::Result<String> {
        let mut word = Vec::new();
        while let Some(byte) = self.peek()?.filter(|&byte| !ends(byte)) {
            self.take()?;
            if word.len() < MAX_WORD {
                word.push(byte);
            }
        }
        Ok(String::from_utf8_lossy(&word).into_owned())
    }

    /// Reads a tag pair after its bracket.
    fn tag(&mut self, parts: &mut Parts) -> io::Result<()> {
        let name = self.word(|byte| matches!(byte, b'"' | b']' | b'\n'))?;
        if self.peek()? != Some(b'"') {
            parts.fault = Some("a tag has no value in quotes");
            self.word(|byte| matches!(byte, b']' | b'\n'))?;
            self.take()?;
            return Ok(());
        }
        self.take()?;
        let mut value = String::new();
        loop {
            value += &self.word(|byte| matches!(byte, b'"' | b'\\' | b'\n'))?;
            match self.take()? {
                Some(b'"') => break,
                Some(b'\\') => value.extend(self.take()?.map(char::from)),
                _ => {
                    parts.fault = Some("the value of a tag has no end");
                    return Ok(());
                }
            }
        }
        self.word(|byte| matches!(byte, b']' | b'\n'))?;
        self.take()?;
        match name.trim() {
            "White" => parts.players[0].name = value,
            "Black" => parts.players[1].name = value,
            "WhiteElo" => parts.players[0].rating = value.trim().parse().ok(),
            "BlackElo" => parts.players[1].rating = value.trim().parse().ok(),
            "Result" => parts.results[0] = result(value.trim()),
            "FEN" => parts.fen = Some(value),
            "Variant" => parts.variant = Some(value),
            _ => {}
        }
        Ok(())
    }

    /// Reads the next game. `None` at the end of the text.
    fn read(&mut self) -> io::Result<Option<Parts>> {
        let mut parts = Parts::default();
        let (mut is_empty, mut depth) = (true, 0u32);
        while let Some(byte) = self.peek()? {
            match byte {
                b'[' if depth > 0 && self.begins_line => {
                    parts.fault = Some("a variation has no end");
                    break;
                }
                // The next game begins.
                b'[' if depth == 0 && !parts.words.is_empty() => break,
                b'[' if depth == 0 => {
                    self.take()?;
                    self.tag(&mut parts)?;
                    is_empty = false;
                }
                b'{' => {
                    if !self.skip(b'}')? {
                        parts.fault = Some("a comment has no end");
                    }
                }
                b';' => _ = self.skip(b'\n')?,
                b'%' if self.begins_line => _ = self.skip(b'\n')?,
                b'*' => {
                    self.take()?;
                    if depth == 0 {
                        return Ok(Some(parts));
                    }
                }
                b'(' | b')' => {
                    self.take()?;
                    depth = match byte {
                        b'(' => depth.saturating_add(1),
                        _ => depth.saturating_sub(1),
                    };
                }
                _ if byte.is_ascii_whitespace() || is_mark(byte) => _ = self.take()?,
                _ => {
                    let word = self.word(|byte| byte.is_ascii_whitespace() || is_mark(byte))?;
                    if depth > 0 {
                        continue;
                    }
                    is_empty = false;
                    parts.results[1] = result(&word);
                    if parts.results[1].is_some() {
                        return Ok(Some(parts));
                    }
                    match move_of(&word) {
                        "" => {}
                        _ if parts.words.len() >= MAX_WORDS => {
                            parts.fault = Some("the game has too many moves")
                        }
                        text => parts.words.push(text.to_owned()),
                    }
                }
            }
        }
        Ok((!is_empty).then_some(parts))
    }
}

impl<R: BufRead> Iterator for Games<R> {
    type Item = io::Result<Result<Found, Fault>>;

    fn next(&mut self) -> Option<Self::Item> {
        let parts = self.read().transpose()?;
        Some(parts.map(Parts::found))
    }
}

impl Parts {
    fn found(self) -> Result<Found, Fault> {
        if let Some(fault) = self.fault {
            return Err(Fault::new(Reason::Unreadable, fault));
        }
        let usual = ["standard", "chess", "normal", "from position"];
        if let Some(variant) = self
            .variant
            .filter(|name| !usual.contains(&&*name.to_lowercase()))
        {
            return Err(Fault::new(Reason::Unreadable, format!("a game of {variant:.40}")));
        }
        let result = match self.results {
            [Some(tag), Some(marker)] if tag != marker => {
                let text = "the tag Result and the end of the game give two results";
                return Err(Fault::new(Reason::Contradiction, text));
            }
            [tag, marker] => tag.or(marker),
        };
        let (fen, words) = (self.fen, self.words);
        let play: Play = Box::new(move |target| play(target, fen.as_deref(), &words));
        Ok(Found {
            players: self.players,
            result,
            play,
        })
    }
}

fn play(target: &Target, fen: Option<&str>, words: &[String]) -> Result<Played, Fault> {
    let rules = target.game.people_rules();
    let mut state = target.variant(&rules)?.start(fen)?;
    let start = fen.map(|_| state.position());
    let mut actions = Vec::with_capacity(words.len());
    for (number, word) in words.iter().enumerate() {
        if state.outcome().is_some() {
            break;
        }
        let turn = state.read_turn(word);
        for action in turn.map_err(|problem| Fault::of_move(number, word, problem))? {
            let played = state.play(action);
            played.map_err(|error| Fault::of_move(number, word, error.reason))?;
            actions.push(action);
        }
    }
    Ok(Played {
        rules,
        start,
        actions,
    })
}

/// True for bytes that end a word: brackets, the sign of an annotation, and all that is not ASCII, such as a byte-order mark.
fn is_mark(byte: u8) -> bool {
    b"[]{}()<>;*$".contains(&byte) || !byte.is_ascii()
}

/// Returns the result that an end marker gives. `None` if the word is not one.
fn result(word: &str) -> Option<Outcome> {
    match word {
        "1-0" => Some(Outcome::Won(Player::First)),
        "0-1" => Some(Outcome::Won(Player::Second)),
        "1/2-1/2" => Some(Outcome::Draw),
        _ => None,
    }
}

/// Returns the move of a word, without the move's number. Empty for numbers alone and for annotations.
fn move_of(word: &str) -> &str {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let text = match rest {
        "" => "",
        _ if rest.starts_with('.') => rest.trim_start_matches('.'),
        // Castling may be written with zeros.
        _ => word,
    };
    match text {
        "e.p." => "",
        _ if text.trim_matches(['!', '?']).is_empty() => "",
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use games::registry;
    use proto::{IMPORTED, endings::ADJUDICATED};
    use test_support::fuzz;

    use super::*;
    use crate::records::import::found::record;

    fn target() -> Target {
        let mut config = config::RunConfig::default();
        (config.game.name, config.game.options) = ("chess".into(), 0);
        Target::of(&config).unwrap()
    }

    fn all(text: &str) -> Vec<Result<Found, Fault>> {
        Games::new(text.as_bytes()).map(Result::unwrap).collect()
    }

    /// The moves of each game in algebraic notation, or the reason why it is left out.
    fn read(text: &str) -> Vec<Result<String, Reason>> {
        let target = target();
        let chess = registry::find("chess").unwrap();
        let moves = |found: Found| {
            let game = record(&target, found, ("a.pgn", 1))?;
            let variant = chess.variant(&chess.people_rules(), None).unwrap();
            let mut state = variant
                .start((!game.start.is_empty()).then_some(&*game.start))
                .unwrap();
            let mut words = Vec::new();
            for action in game.actions {
                words.push(state.write_turn(&[action]));
                state.play_legal(action);
            }
            Ok(words.join(" "))
        };
        let games = all(text).into_iter();
        games
            .map(|game| game.and_then(moves).map_err(|fault: Fault| fault.reason))
            .collect()
    }

    #[test]
    fn the_main_line_is_read_without_variations_comments_and_annotations() {
        let text = "\u{feff}[Event \"a \\\"cup\\\"\"]\n[White \"Ann\"]\n[Black \"Bob\"]\n[WhiteElo \"2101\"]\n[BlackElo \"?\"]\n[Result \"1-0\"]\n\n\
            % a program wrote this\n1. e4$14 {[%clk 0:03] (not 1. d4} e5 $1 ; 2. Nc3\n2. Nf3! (2. f4 exf4 (2... d5) {)} 3. Nf3 0-1) Nc6 !? 3.Bc4 h6?? \
            4.0-0 e.p. Nf6 1-0\n\n\
            1.d4 d5 1/2-1/2 [White \"Eve\"]\n1... 1. c4 0-1";
        let games = all(text);
        let first = games[0].as_ref().unwrap();
        let [white, black] = &first.players;
        assert_eq!((&*white.name, white.rating), ("Ann", Some(2101.0)));
        assert_eq!((&*black.name, black.rating), ("Bob", None));
        assert_eq!(games[2].as_ref().unwrap().players[0].name, "Eve");
        let moves = ["e4 e5 Nf3 Nc6 Bc4 h6 O-O Nf6", "d4 d5", "c4"];
        assert_eq!(read(text), moves.map(|line| Ok::<_, Reason>(line.to_owned())));
    }

    #[test]
    fn games_with_faults_are_left_out_and_the_others_are_taken() {
        let fools_mate = "1. f3 e5 2. g4 Qh4#";
        let reasons = [
            ("1. e4 *".to_owned(), Reason::NoResult),
            ("[Result \"*\"]\n1. e4 e5".into(), Reason::NoResult),
            (format!("{fools_mate} 1-0"), Reason::Contradiction),
            (
                format!("[Result \"1-0\"]\n{fools_mate} 0-1"),
                Reason::Contradiction,
            ),
            ("1. e4 e5 2. Ke3 1-0".into(), Reason::Illegal),
            ("1. e4 -- 2. d4 1-0".into(), Reason::Illegal),
            (
                "[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n1. e4 1-0".into(),
                Reason::Illegal,
            ),
            ("[Variant \"Chess960\"]\n1. e4 1-0".into(), Reason::Unreadable),
            ("[White Ann]\n1. e4 1-0".into(), Reason::Unreadable),
            ("[White \"Ann\n]\n1. e4 1-0".into(), Reason::Unreadable),
            ("[White \"Ann\"]\n1-0".into(), Reason::Unreadable),
            (
                "1. e4 (1. d4 d5\n[White \"Bob\"]\n1. c4 1-0\n1. e4 1-0".into(),
                Reason::Unreadable,
            ),
        ];
        for (text, reason) in reasons {
            let found = read(&format!("{text}\n\n[White \"Eve\"]\n1. Nf3 0-1"));
            assert_eq!(found.first(), Some(&Err(reason)), "{text}");
            assert_eq!(found.last(), Some(&Ok("Nf3".into())), "{text}");
        }
        // Two marks of the end fit the rules: the moves after a mate are not read.
        assert_eq!(
            read(&format!("{fools_mate} 3. e4 0-1")),
            [Ok("f3 e5 g4 Qh4#".to_owned())]
        );
        assert_eq!(read("1. e4 {a comment"), [Err(Reason::Unreadable)]);
    }

    #[test]
    fn a_record_has_the_played_moves_as_policy_and_the_result_as_value() {
        let text = "[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n1... Kd7 2. e4 Kd6 0-1";
        let found = all(text).remove(0).unwrap();
        let game = record(&target(), found, ("a.pgn", 7)).unwrap();
        assert_eq!((&*game.ending, &*game.provenance), (ADJUDICATED, IMPORTED));
        assert_eq!((&*game.actor, game.game_number, game.score), ("a.pgn", 7, -1.0));
        assert_eq!(
            (&game.movers[..], &game.root_values[..]),
            (&[1, 0, 1][..], &[1.0, -1.0, 1.0][..])
        );
        assert_eq!((&game.visit_counts, &game.visits), (&vec![1; 3], &vec![1; 3]));
        let validator = replay_store::record::validate::Validator::new("chess", 0).unwrap();
        assert_eq!(validator.check(&game).unwrap().trainable, 3);
        // The games of two files are one game if moves and result are equal.
        let again = record(&target(), all(text).remove(0).unwrap(), ("b.pgn", 1)).unwrap();
        assert_eq!(again.id, game.id);
        let other = all(&text.replace("0-1", "1-0")).remove(0).unwrap();
        assert_ne!(record(&target(), other, ("a.pgn", 7)).unwrap().id, game.id);
    }

    #[test]
    fn any_text_is_read() {
        let example = b"[White \"A\"]\n[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n1... Kd7 {a} (1... Kf7) $2 2. e4! Kd6 ; b\n1-0";
        let target = target();
        fuzz("PGN", &[example], |bytes| {
            let games = Games::new(bytes).map(Result::unwrap);
            let records = games.map(|game| game.and_then(|found| record(&target, found, ("a.pgn", 1))));
            records.filter(Result::is_ok).count() > 0
        });
    }
}
