//! Which games: the options that `list`, `export` and `delete` share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::v1::GameFilter;

use super::parse_id;

/// A choice of games; every option that is given must fit.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// A game's id; may be given often.
    #[arg(long = "id", value_name = "ID", value_parser = parse_id)]
    ids: Vec<[u8; 16]>,
    /// Games in which this checkpoint answered; may be given often.
    #[arg(long, value_name = "VERSION")]
    model: Vec<String>,
    /// Games of actors of this build (whole, or the part before the +); may be given often.
    #[arg(long, value_name = "BUILD")]
    build: Vec<String>,
    /// Games of this actor; may be given often.
    #[arg(long, value_name = "NAME")]
    actor: Vec<String>,
    /// Games that ended at this time or later: 2026-11-21T10:00:00Z, or 3h for three hours ago.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<u64>,
    /// Games that ended before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<u64>,
    /// Games with this ending, e.g. paco or repetition; may be given often.
    #[arg(long, value_name = "ENDING")]
    ending: Vec<String>,
    /// Games with this many positions: 40..80, ..80, 40.. or 40 (both ends included).
    #[arg(long, value_name = "MIN..MAX", value_parser = length, default_value = "..", hide_default_value = true)]
    length: (u32, u32),
}

impl Choice {
    /// The filter for the store.
    pub fn filter(&self) -> GameFilter {
        GameFilter {
            ids: self.ids.iter().map(|id| id.to_vec().into()).collect(),
            model_versions: self.model.clone(),
            builds: self.build.clone(),
            actors: self.actor.clone(),
            finished_from_ms: self.since.unwrap_or(0),
            finished_before_ms: self.before.unwrap_or(0),
            endings: self.ending.clone(),
            min_positions: self.length.0,
            max_positions: self.length.1,
        }
    }

    /// Whether nothing in particular is asked for.
    pub fn is_empty(&self) -> bool {
        self.filter() == GameFilter::default()
    }
}

/// Reads a range of lengths; 0 stands for no limit.
fn length(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse().ok().filter(|&number| number > 0),
    };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (number(low), number(high)) {
        (Some(low), Some(high)) if high == 0 || low <= high => Ok((low, high)),
        _ => Err(format!(
            "`{text}` is no range of lengths: 40..80, ..80, 40.. and 40 are possible"
        )),
    }
}

/// A time in milliseconds since the epoch, as people write it.
fn moment(text: &str) -> Result<u64, String> {
    let at = match humantime::parse_duration(text) {
        Ok(ago) => SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH),
        Err(_) => humantime::parse_rfc3339_weak(text)
            .map_err(|_| format!("`{text}` is neither a time (2026-11-21T10:00:00Z) nor a duration (3h)"))?,
    };
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Ok(since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lengths_are_read() {
        for (text, range) in [
            ("40..80", (40, 80)),
            ("..80", (0, 80)),
            ("40..", (40, 0)),
            ("..", (0, 0)),
            ("7", (7, 7)),
        ] {
            assert_eq!(length(text), Ok(range), "{text}");
        }
        for wrong in ["80..40", "0", "a..b", "-1..3"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(moment("2026-11-21T10:00:00Z"), Ok(1_795_255_200_000));
        assert!(moment("2h").unwrap() < moment("1h").unwrap());
        assert!(moment("yesterday").is_err());
    }
}
