//! The ratings that follow from finished matches alone: [`Ratings`].

use std::collections::{HashMap, HashSet};

use checkpoints::Version;

use super::results::Line;
use crate::statistics::{BradleyTerry, Encounter, Pentanomial, Rating};

/// A match: candidate, opponent, pairs of games as the candidate sees them.
type Played<'a> = (&'a Version, &'a Version, Pentanomial);

/// The checkpoints of a run on one scale; the first opponent is worth 0.
///
/// A match between two of which neither has met anybody on the ladder begins a new one: nothing connects it with what was
/// before (somebody has moved `best` to a checkpoint that was never played, and nobody who was is left to play it).
#[derive(Debug)]
pub struct Ratings<'a> {
    numbers: HashMap<&'a Version, usize>,
    model: BradleyTerry,
}

impl<'a> Ratings<'a> {
    /// From finished matches, and one that is being played.
    pub fn of(lines: &'a [Line], live: Option<Played<'a>>) -> Self {
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

    /// A checkpoint's rating; `None` where nothing connects it with the first one.
    pub fn rating(&self, version: &Version) -> Option<Rating> {
        self.model.rating(*self.numbers.get(version)?)
    }
}

/// Who is on the ladder, in the order in which they were played last, the last one first.
pub fn members(lines: &[Line]) -> Vec<&Version> {
    let mut seen = HashSet::new();
    let latest = present(lines, None).into_iter().rev();
    latest
        .flat_map(|(candidate, opponent, _)| [candidate, opponent])
        .filter(|version| seen.insert(*version))
        .collect()
}

/// The matches of the ladder that is in use.
fn present<'a>(lines: &'a [Line], live: Option<Played<'a>>) -> Vec<Played<'a>> {
    let finished = lines
        .iter()
        .map(|line| (&line.candidate, &line.opponent, line.pairs));
    let mut ladder = Vec::new();
    let mut met = HashSet::new();
    // Without a whole pair of games nobody has met anybody.
    for played in finished.chain(live).filter(|(_, _, pairs)| pairs.pairs() > 0) {
        let (candidate, opponent, _) = played;
        if !met.contains(candidate) && !met.contains(opponent) {
            ladder.clear();
            met.clear();
        }
        met.extend([candidate, opponent]);
        ladder.push(played);
    }
    ladder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::results::{Outcome, tests::live, tests::version};

    fn line(candidate: u64, opponent: u64, pairs: [u64; 5]) -> Line {
        let (candidate, opponent) = (version(candidate), version(opponent));
        Line::new(&candidate, &opponent, Outcome::Kept, &live(pairs))
    }

    #[test]
    fn a_match_that_is_being_played_counts_and_nothing_played_is_no_rating() {
        let (zero, one) = (version(0), version(1));
        assert_eq!(Ratings::of(&[], None).rating(&zero), None);
        let ratings = Ratings::of(&[], Some((&one, &zero, Pentanomial([1, 0, 2, 0, 4]))));
        assert_eq!(ratings.rating(&zero), Some(Rating::default()));
        assert!(ratings.rating(&one).unwrap().elo > 0.0);
    }

    #[test]
    fn a_match_of_strangers_begins_a_new_ladder_and_one_without_games_does_not() {
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
        // Whoever met one of them comes along, whichever side it was on.
        lines.push(line(5, 3, even));
        assert_eq!(members(&lines), [5, 3, 6].map(version).each_ref());
        assert!(Ratings::of(&lines, None).rating(&version(3)).is_some());
    }
}
