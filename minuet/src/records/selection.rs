//! Options that select games, shared by `list`, `export` and `delete`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::{ids::parse_game_id, v1::GameFilter};

/// A selection of games. A game must match every given option.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Id of a game; may be repeated.
    #[arg(long = "id", value_name = "ID", value_parser = parse_id)]
    ids: Vec<[u8; 16]>,
    /// Games in which this checkpoint was used; may be repeated.
    #[arg(long, value_name = "VERSION")]
    model: Vec<String>,
    /// Games of actors of this build (whole, or the part before the +); may be repeated.
    #[arg(long, value_name = "BUILD")]
    build: Vec<String>,
    /// Games of this actor; may be repeated.
    #[arg(long, value_name = "NAME")]
    actor: Vec<String>,
    /// Games that ended at this time or later: 2026-11-21T10:00:00Z, or 3h for three hours ago.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<u64>,
    /// Games that ended before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<u64>,
    /// Games with this ending, e.g. paco or repetition; may be repeated.
    #[arg(long, value_name = "ENDING")]
    ending: Vec<String>,
    /// Games with this many positions: 40..80, ..80, 40.. or 40 (both ends included).
    #[arg(long, value_name = "MIN..MAX", value_parser = parse_lengths, default_value = "..", hide_default_value = true)]
    length: (u32, u32),
}

impl Selection {
    /// Returns the filter for the request to the store.
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

    /// True if no option is given.
    pub fn is_empty(&self) -> bool {
        self.filter() == GameFilter::default()
    }
}

/// Parses a range of lengths. 0 means no limit.
fn parse_lengths(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse().ok().filter(|&number| number > 0),
    };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (number(low), number(high)) {
        (Some(low), Some(high)) if high == 0 || low <= high => Ok((low, high)),
        _ => Err(format!(
            "`{text}` is not a range of lengths; examples: 40..80, ..80, 40.., 40"
        )),
    }
}

/// Parses a time or a duration before now. Returns milliseconds since the Unix epoch.
fn parse_time(text: &str) -> Result<u64, String> {
    let at = match humantime::parse_duration(text) {
        Ok(ago) => SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH),
        Err(_) => humantime::parse_rfc3339_weak(text)
            .or_else(|_| humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z")))
            .map_err(|_| {
                format!(
                    "`{text}` is not a day (2026-11-21), a time (2026-11-21T10:00:00Z) or a duration (3h)"
                )
            })?,
    };
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Ok(since.as_millis() as u64)
}

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
    fn ranges_of_lengths_are_parsed() {
        for (text, range) in [
            ("40..80", (40, 80)),
            ("..80", (0, 80)),
            ("40..", (40, 0)),
            ("..", (0, 0)),
            ("7", (7, 7)),
        ] {
            assert_eq!(parse_lengths(text), Ok(range), "{text}");
        }
        for wrong in ["80..40", "0", "a..b", "-1..3"] {
            assert!(parse_lengths(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_durations_are_parsed() {
        assert_eq!(parse_time("2026-11-21T10:00:00Z"), Ok(1_795_255_200_000));
        assert_eq!(parse_time("2026-11-21"), Ok(1_795_219_200_000));
        assert!(parse_time("2h").unwrap() < parse_time("1h").unwrap());
        assert!(parse_time("yesterday").is_err());
    }

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
