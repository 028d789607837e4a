//! Games as lines of JSON, one game each: the form of `minuet rules` and of `save` in `minuet play`, with result, players and ratings.

use std::io::{self, BufRead, Read as _};

use games::{Outcome, Player};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::found::{Fault, Found, Named, Played, Reason, Target};
use crate::rules::answer::switched;

/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 16 << 20;

/// A line.
#[derive(Debug, Deserialize)]
struct Line {
    /// Name of the game. `None` means that of the run.
    #[serde(default)]
    game: Option<String>,
    /// Start as the game writes it in JSON. `None` means the usual start.
    #[serde(default)]
    start: Option<Value>,
    /// Actions as the game writes them in JSON.
    actions: Vec<Value>,
    /// Winner, or `draw`. `None` leaves the result to the rules.
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    players: [String; 2],
    #[serde(default)]
    ratings: [Option<f64>; 2],
    /// Number or name of the game, which is not used.
    #[serde(default, rename = "id")]
    _id: Value,
    /// All other fields: switches of the game's rules, and the game's own fields for a start.
    #[serde(flatten)]
    rules: Map<String, Value>,
}

/// Reads the games of a text.
pub struct Games<'a, R> {
    text: R,
    target: &'a Target,
}

impl<'a, R: BufRead> Games<'a, R> {
    /// Returns the reader of a text.
    pub fn new(text: R, target: &'a Target) -> Self {
        Self { text, target }
    }

    /// Reads the next line that is not empty. `None` at the end.
    fn read(&mut self) -> io::Result<Option<Result<Found, Fault>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.text.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == MAX_LINE && line.last() != Some(&b'\n') {
                self.text.skip_until(b'\n')?;
                let text = format!("the line is longer than {MAX_LINE} bytes");
                return Ok(Some(Err(Fault::new(Reason::Unreadable, text))));
            }
            let text = line.trim_ascii();
            if !text.is_empty() {
                return Ok(Some(found(text, self.target)));
            }
        }
    }
}

impl<R: BufRead> Iterator for Games<'_, R> {
    type Item = io::Result<Result<Found, Fault>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn found(text: &[u8], target: &Target) -> Result<Found, Fault> {
    let unreadable = |text: String| Fault::new(Reason::Unreadable, text);
    let line: Line = serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))?;
    if let Some(other) = line.game.as_deref().filter(|name| *name != target.game.name) {
        return Err(unreadable(format!(
            "a game of {other:.40}, and the run is of {}",
            target.game.name
        )));
    }
    let result = match line.result.as_deref() {
        None => None,
        Some("draw") => Some(Outcome::Draw),
        Some(name) => {
            let player: Option<Player> = target.game.player_named(name);
            let text = || {
                unreadable(format!(
                    "the result is {name:?}; first, second and draw are possible"
                ))
            };
            Some(Outcome::Won(player.ok_or_else(text)?))
        }
    };
    let [first, second] = line.players;
    let named = [(first, line.ratings[0]), (second, line.ratings[1])];
    let (start, actions, rules) = (line.start, line.actions, line.rules);
    Ok(Found {
        players: named.map(|(name, rating)| Named { name, rating }),
        result,
        play: Box::new(move |target| play(target, start.as_ref(), &actions, &rules)),
    })
}

fn play(
    target: &Target,
    start: Option<&Value>,
    actions: &[Value],
    fields: &Map<String, Value>,
) -> Result<Played, Fault> {
    let of_start = |name: &String| target.game.start_fields.contains(&name.as_str());
    let rules = switched(target.game, target.game.people_rules(), fields);
    let begin = target.variant(&rules)?.start_from_json(start, fields);
    let mut state = begin.map_err(|problem| Fault::new(Reason::Illegal, problem))?;
    let is_usual = start.is_none() && !fields.keys().any(of_start);
    let start = (!is_usual).then(|| state.position());
    let mut played = Vec::with_capacity(actions.len());
    for (number, value) in actions.iter().enumerate() {
        if state.outcome().is_some() {
            break;
        }
        let fault = |problem: &str| Fault::of_move(number, &value.to_string(), problem);
        let action = state.action_from_json(value).map_err(|problem| fault(&problem))?;
        state.play(action).map_err(|error| fault(error.reason))?;
        played.push(action);
    }
    if let Some(problem) = state.fault() {
        return Err(Fault::new(Reason::Illegal, format!("the rules fail: {problem}")));
    }
    Ok(Played {
        rules,
        start,
        actions: played,
    })
}

#[cfg(test)]
mod tests {
    use replay_store::record::validate::Validator;

    use super::*;
    use crate::records::import::found::record;

    fn read(game: &str, options: u32, text: &str) -> Vec<Result<proto::v1::Game, Fault>> {
        let mut config = config::RunConfig::default();
        (config.game.name, config.game.options) = (game.into(), options);
        let target = Target::of(&config).unwrap();
        let validator = Validator::new(game, options).unwrap();
        let games = Games::new(text.as_bytes(), &target).map(Result::unwrap);
        let records = games.map(|game| game.and_then(|found| record(&target, found, ("a.jsonl", 1))));
        let checked = records.map(|game| game.inspect(|game| _ = validator.check(game).unwrap()));
        checked.collect()
    }

    #[test]
    fn lines_are_games_or_left_out_with_their_reason() {
        let text = r#"
            {"actions":[3,2,3,2,3,2,3],"players":["Ann","Bob"],"ratings":[2100,null]}
            {"id":"x","game":"connect-four","actions":[0,1,2],"result":"second"}

            {"actions":[3,2,3,2,3,2,3],"result":"draw"}
            {"actions":[0,1,2]}
            {"actions":[0,0,0,0,0,0,0],"result":"first"}
            {"actions":[7],"result":"first"}
            {"actions":[0],"result":"nobody"}
            {"actions":[0],"result":"first","gravity":false}
            {"actions":[],"result":"first"}
            {"game":"chess","actions":["e2e4"],"result":"first"}
            [0, 1]
            {"actions":[1],"result":"Draw"}"#;
        let games = read("connect-four", 0, text);
        assert_eq!(games[0].as_ref().unwrap().ending, "first-won");
        let resigned = games[1].as_ref().unwrap();
        assert_eq!((&*resigned.ending, resigned.score), ("adjudicated", -1.0));
        let reasons: Vec<Reason> = games[2..]
            .iter()
            .map(|game| game.as_ref().unwrap_err().reason)
            .collect();
        use Reason::{Contradiction, Illegal, NoResult, Unreadable};
        let expected = [
            Contradiction,
            NoResult,
            Illegal,
            Illegal,
            Unreadable,
            Unreadable,
            Unreadable,
            Unreadable,
            Unreadable,
            Unreadable,
        ];
        assert_eq!(reasons, expected);
        let illegal = games[4].as_ref().unwrap_err().to_string();
        assert!(illegal.starts_with("move 7 (0): "), "{illegal}");
    }

    #[test]
    fn starts_rules_and_actions_are_those_of_the_games_json() {
        let text = r#"{"start":"7k/P7/8/8/8/8/8/K7 w - - 0 1","actions":["a7a8n"],"result":"draw"}"#;
        let games = read("chess", 0, text);
        let game = games[0].as_ref().unwrap();
        assert_eq!(
            (&*game.start, &*game.rules_json),
            ("7k/P7/8/8/8/8/8/K7 w - - 0 1", r#"{"underpromotions":true}"#)
        );
        // A knight and kings cannot mate.
        assert_ne!(game.ending, "adjudicated");
    }
}
