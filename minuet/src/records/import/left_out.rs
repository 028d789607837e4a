//! Games that an import leaves out: the options that select games, and the counts by reason with the first examples.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use super::found::{Fault, Found, Reason};

/// Maximum number of games that are named.
const EXAMPLES: usize = 10;

/// Options that select games.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selected {
    /// Import only games of players whose names contain this text, in upper or lower case.
    #[arg(long, value_name = "TEXT")]
    player: Option<String>,
    /// Import only games of two players who both have at least this rating. Ranks such as 3d are not ratings.
    #[arg(long, value_name = "N")]
    min_rating: Option<u32>,
}

impl Selected {
    /// True if all games are selected.
    pub fn is_empty(&self) -> bool {
        self.player.is_none() && self.min_rating.is_none()
    }

    /// Returns the game if it is selected.
    ///
    /// # Errors
    /// [`Fault`] that says that it is not.
    pub fn admit(&self, found: Found) -> Result<Found, Fault> {
        let is_named = self.player.as_deref().is_none_or(|text| {
            let text = text.to_lowercase();
            let mut names = found.players.iter().map(|player| player.name.to_lowercase());
            names.any(|name| name.contains(&text))
        });
        let least = self.min_rating.map_or(f64::NEG_INFINITY, f64::from);
        let mut ratings = found.players.iter().map(|player| player.rating);
        let is_rated =
            self.min_rating.is_none() || ratings.all(|rating| rating.is_some_and(|rating| rating >= least));
        match is_named && is_rated {
            true => Ok(found),
            false => Err(Fault::new(Reason::NotSelected, "other players, or lower ratings")),
        }
    }
}

/// Counts of the games that are left out, which print as lines.
#[derive(Debug, Default)]
pub struct LeftOut {
    counts: BTreeMap<Reason, u64>,
    examples: Vec<String>,
}

impl LeftOut {
    /// Counts a game of a file.
    pub fn add(&mut self, file: &str, number: u64, fault: &Fault) {
        *self.counts.entry(fault.reason).or_default() += 1;
        if fault.reason != Reason::NotSelected && self.examples.len() < EXAMPLES {
            self.examples.push(format!("{file}, game {number}: {fault}"));
        }
    }

    fn count(&self, reason: Reason) -> u64 {
        self.counts.get(&reason).copied().unwrap_or_default()
    }

    /// Returns the counts of all reasons, and the examples.
    pub fn as_json(&self) -> Value {
        let counts = Reason::ALL.map(|(reason, key, _)| (key.to_owned(), self.count(reason).into()));
        let mut fields = Map::from_iter(counts);
        fields.insert("examples".into(), self.examples.clone().into());
        Value::Object(fields)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Reason::ALL.iter().filter(|(reason, ..)| self.count(*reason) > 0);
        let words: Vec<String> = found
            .map(|&(reason, _, words)| format!("{} {words}", self.count(reason)))
            .collect();
        if !words.is_empty() {
            writeln!(out, "left out: {}", words.join(", "))?;
        }
        // A file of a stranger may hold any text.
        self.examples
            .iter()
            .try_for_each(|example| writeln!(out, "    {}", service::plain(example)))
    }
}

#[cfg(test)]
mod tests {
    use games::Outcome;

    use super::*;
    use crate::records::import::found::Named;

    #[test]
    fn games_are_selected_by_names_and_ratings() {
        let admits = |selected: &Selected, first: (&str, Option<f64>), second: (&str, Option<f64>)| {
            let players = [first, second].map(|(name, rating)| Named {
                name: name.into(),
                rating,
            });
            let found = Found {
                players,
                result: Some(Outcome::Draw),
                play: Box::new(|_| Err(Fault::new(Reason::NoResult, ""))),
            };
            selected.admit(found).is_ok()
        };
        let all = Selected::default();
        assert!(all.is_empty() && admits(&all, ("", None), ("", None)));
        let of = |player: Option<&str>, min_rating| Selected {
            player: player.map(str::to_owned),
            min_rating,
        };
        let ann = of(Some("ANN"), None);
        assert!(admits(&ann, ("Bob", None), ("Joann", None)));
        assert!(!admits(&ann, ("Bob", None), ("Eve", None)));
        let strong = of(Some("Ann"), Some(2000));
        assert!(admits(&strong, ("Ann", Some(2000.0)), ("Bob", Some(2500.0))));
        assert!(!admits(&strong, ("Ann", Some(2000.0)), ("Bob", Some(1999.0))));
        assert!(!admits(&strong, ("Ann", Some(2000.0)), ("Bob", None)));
    }

    #[test]
    fn counts_and_the_first_faults_are_printed() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.to_string(), "");
        left_out.add("a.pgn", 1, &Fault::new(Reason::NotSelected, "other players"));
        for number in 2..14 {
            left_out.add("a.pgn", number, &Fault::of_move(4, "Ke3", "not legal"));
        }
        let text = left_out.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + EXAMPLES);
        let first = [
            "left out: 1 not selected, 12 with an illegal start or move",
            "    a.pgn, game 2: move 5 (Ke3): not legal",
        ];
        assert_eq!(lines[..2], first);
        assert_eq!(left_out.as_json()["illegal"], 12);
    }
}
