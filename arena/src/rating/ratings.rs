//! The ratings of a run's checkpoints, computed from its matches: [`Ratings`].
//!
//! This module chooses the matches that count. The rating formula is in
//! [`bradley_terry`](crate::statistics::bradley_terry).

use std::collections::{HashMap, HashSet};

use checkpoints::Version;

use super::results::RatedMatch;
use crate::statistics::{BradleyTerry, Encounter, Pentanomial, Rating};

/// A match: candidate, opponent, and pairs of games counted by the candidate's points.
type Played<'a> = (&'a Version, &'a Version, Pentanomial);

/// The ratings of the checkpoints of a run. The first opponent has Elo 0.
///
/// A match between two checkpoints that neither has played before begins a new scale, because no game connects them with the
/// earlier ones. (This happens if somebody has moved `best` to a checkpoint that was never played, and no rated checkpoint is left
/// to play against it.)
#[derive(Debug)]
pub struct Ratings<'a> {
    numbers: HashMap<&'a Version, usize>,
    model: BradleyTerry,
}

impl<'a> Ratings<'a> {
    /// Computes the ratings from the finished matches and the present one.
    pub fn of(lines: &'a [RatedMatch], live: Option<Played<'a>>) -> Self {
        let played = present(lines, live);
        let mut numbers = HashMap::new();
        let mut encounters = Vec::new();
        for (candidate, opponent, pairs) in played {
            let mut number = |version| {
                let next = numbers.len();
                *numbers.entry(version).or_insert(next)
            };
            let opponent = number(opponent);
            encounters.push(Encounter::of_pairs([number(candidate), opponent], &pairs));
        }
        Self {
            model: BradleyTerry::fit(numbers.len(), &encounters),
            numbers,
        }
    }

    /// The rating of a checkpoint; `None` if no games connect it with the first checkpoint of the scale.
    pub fn rating(&self, version: &Version) -> Option<Rating> {
        self.model.rating(*self.numbers.get(version)?)
    }
}

/// The checkpoints that have a rating; the ones that played last come first.
pub fn members(lines: &[RatedMatch]) -> Vec<&Version> {
    let mut seen = HashSet::new();
    let latest = present(lines, None).into_iter().rev();
    latest
        .flat_map(|(candidate, opponent, _)| [candidate, opponent])
        .filter(|version| seen.insert(*version))
        .collect()
}

/// The matches of the present scale.
fn present<'a>(lines: &'a [RatedMatch], live: Option<Played<'a>>) -> Vec<Played<'a>> {
    let finished = lines
        .iter()
        .map(|line| (&line.candidate, &line.opponent, line.pairs));
    let mut present = Vec::new();
    let mut connected = HashSet::new();
    // A match counts only if it has a complete pair of games.
    for played in finished.chain(live).filter(|(_, _, pairs)| pairs.pairs() > 0) {
        let (candidate, opponent, _) = played;
        if !connected.contains(candidate) && !connected.contains(opponent) {
            present.clear();
            connected.clear();
        }
        connected.extend([candidate, opponent]);
        present.push(played);
    }
    present
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::results::{
        Outcome,
        tests::{live, version},
    };

    fn line(candidate: u64, opponent: u64, pairs: [u64; 5]) -> RatedMatch {
        let (candidate, opponent) = (version(candidate), version(opponent));
        RatedMatch::new(&candidate, &opponent, Outcome::Kept, &live(pairs))
    }

    #[test]
    fn the_present_match_counts_and_without_games_there_is_no_rating() {
        let (zero, one) = (version(0), version(1));
        assert_eq!(Ratings::of(&[], None).rating(&zero), None);
        let ratings = Ratings::of(&[], Some((&one, &zero, Pentanomial([1, 0, 2, 0, 4]))));
        assert_eq!(ratings.rating(&zero), Some(Rating::default()));
        assert!(ratings.rating(&one).unwrap().elo > 0.0);
    }

    #[test]
    fn a_match_of_unconnected_checkpoints_begins_a_new_scale_and_one_without_games_does_not() {
        let even = [1, 0, 4, 0, 1];
        let mut lines = vec![line(1, 0, [0, 0, 1, 0, 4]), line(8, 7, [0; 5]), line(2, 1, even)];
        assert_eq!(members(&lines), [2, 1, 0].map(version).each_ref());
        let ratings = Ratings::of(&lines, None);
        assert_eq!(ratings.rating(&version(0)), Some(Rating::default()));
        assert!(ratings.rating(&version(2)).unwrap().elo > 100.0);
        assert_eq!(ratings.rating(&version(7)), None);

        lines.push(line(6, 5, [0, 0, 1, 0, 4]));
        assert_eq!(members(&lines), [6, 5].map(version).each_ref());
        let ratings = Ratings::of(&lines, None);
        assert_eq!(ratings.rating(&version(5)), Some(Rating::default()));
        assert_eq!(ratings.rating(&version(2)), None);
        // A checkpoint that played one of the two is on their scale, whichever side it played.
        lines.push(line(5, 3, even));
        assert_eq!(members(&lines), [5, 3, 6].map(version).each_ref());
        assert!(Ratings::of(&lines, None).rating(&version(3)).is_some());
    }
}
