//! Options of the engine: the answer to `uci`, and `setoption`.

use std::{str::FromStr, time::Duration};

use arena::players::NetworkOptions;
use config::Provider;
use search::{Reuse, Settings};

/// Values of all options.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The network, in the form of `--model`; `uniform`: no network. Empty: not set yet.
    pub model: String,
    /// Execution provider of the network.
    pub provider: Provider,
    /// Threads that evaluate a batch.
    pub threads: u32,
    /// Memory limit of the search tree, in MiB.
    pub hash: u32,
    /// Memory of the evaluation cache, which is kept from game to game, in MiB; 0: no cache.
    pub cache: u32,
    /// Positions that are evaluated together.
    pub batch: u32,
    /// Number of lines shown.
    pub multi_pv: u32,
    /// A hint that the GUI may send `go ponder`, which the engine always supports.
    pub ponder: bool,
    /// Largest number of visits per move; 0: no limit.
    pub visits: u32,
    /// Exploration constant of the search.
    pub exploration: f32,
    /// Temperature of the choice of moves; 0: the most visited move.
    pub temperature: f32,
    /// Reserve per move for time lost outside the engine, in milliseconds.
    pub move_overhead: u32,
    /// True if promotions to knight, bishop and rook are searched.
    pub under_promotions: bool,
    /// True if the probabilities of win, draw and loss are shown.
    pub show_wdl: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: String::new(),
            provider: Provider::Auto,
            threads: 1,
            hash: 256,
            cache: 64,
            batch: 8,
            multi_pv: 1,
            ponder: false,
            visits: 0,
            exploration: Settings::default().exploration,
            temperature: 0.0,
            move_overhead: 100,
            under_promotions: true,
            show_wdl: false,
        }
    }
}

/// Type of an option in the protocol, its range, and the field that holds its value.
enum Kind {
    Text(fn(&mut Options) -> &mut String),
    Provider,
    Spin(u32, u32, fn(&mut Options) -> &mut u32),
    /// A number from 0 to [`MOST`] as text, because the protocol has no type for fractions.
    Fraction(fn(&mut Options) -> &mut f32),
    Check(fn(&mut Options) -> &mut bool),
    Button,
}

/// Largest value of a [`Kind::Fraction`].
const MOST: f32 = 100.0;

/// Name of the option that discards the tree. The engine does that itself.
pub const CLEAR_HASH: &str = "Clear Hash";

/// All options in the order of the list.
const TABLE: [(&str, Kind); 15] = [
    ("Model", Kind::Text(|options| &mut options.model)),
    ("Provider", Kind::Provider),
    ("Threads", Kind::Spin(1, 256, |options| &mut options.threads)),
    ("Hash", Kind::Spin(1, 8192, |options| &mut options.hash)),
    ("Cache", Kind::Spin(0, 65_536, |options| &mut options.cache)),
    (CLEAR_HASH, Kind::Button),
    ("Batch", Kind::Spin(1, 256, |options| &mut options.batch)),
    ("MultiPV", Kind::Spin(1, 218, |options| &mut options.multi_pv)),
    ("Ponder", Kind::Check(|options| &mut options.ponder)),
    (
        "Visits",
        Kind::Spin(0, Settings::MAX_VISITS, |options| &mut options.visits),
    ),
    ("CPuct", Kind::Fraction(|options| &mut options.exploration)),
    ("Temperature", Kind::Fraction(|options| &mut options.temperature)),
    (
        "Move Overhead",
        Kind::Spin(0, 10_000, |options| &mut options.move_overhead),
    ),
    (
        "UnderPromotions",
        Kind::Check(|options| &mut options.under_promotions),
    ),
    ("UCI_ShowWDL", Kind::Check(|options| &mut options.show_wdl)),
];

/// Error: an option was not set; the previous value stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The option does not exist.
    #[error("there is no option {0:?}; `uci` lists them")]
    Unknown(String),
    /// The option cannot have this value.
    #[error("option {name} cannot be {value:?}: {must}")]
    Value {
        /// The option.
        name: &'static str,
        /// The given value.
        value: String,
        /// Requirement for the value.
        must: String,
    },
}

impl Options {
    /// Returns the list of options, one per line.
    pub fn list(&self) -> String {
        let mut options = self.clone();
        let lines = TABLE
            .iter()
            .map(|(name, kind)| format!("option name {name} type {}\n", kind.describe(&mut options)));
        lines.collect()
    }

    /// Sets an option. Names are case-insensitive, as the protocol requires.
    ///
    /// # Errors
    /// [`OptionError`]; the options are then unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let known = TABLE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let &(name, ref kind) = known.ok_or_else(|| OptionError::Unknown(name.chars().take(40).collect()))?;
        kind.set(self, value).map_err(|must| OptionError::Value {
            name,
            value: value.into(),
            must,
        })
    }

    /// Returns the settings by which the network is opened. If these and the model are the same, so is the network.
    pub fn network(&self) -> NetworkOptions {
        NetworkOptions {
            provider: self.provider,
            copies: 1,
            threads: self.threads as usize,
            batch: self.batch as usize,
            cache_mib: self.cache as usize,
        }
    }

    /// Returns the settings of the search.
    pub fn search(&self) -> Settings {
        Settings {
            leaves: self.batch,
            exploration: self.exploration,
            noise_fraction: 0.0,
            // A random symmetry would halve the hits of the evaluation cache.
            random_symmetry: false,
            reuse: Reuse::Keep,
            solver: true,
            tree_bytes: (self.hash as usize) << 20,
            ..Settings::default()
        }
    }

    /// Returns the reserve per move for time lost outside the engine.
    pub fn move_overhead(&self) -> Duration {
        Duration::from_millis(self.move_overhead.into())
    }
}

impl Kind {
    /// Returns the type, the value and the range, as `uci` lists them.
    fn describe(&self, options: &mut Options) -> String {
        match self {
            Self::Text(field) => match field(options).as_str() {
                "" => "string default <empty>".into(),
                text => format!("string default {text}"),
            },
            Self::Provider => {
                let choices = Provider::ALL.map(|choice| format!(" var {choice}"));
                format!("combo default {}{}", options.provider, choices.concat())
            }
            Self::Spin(least, most, field) => {
                format!("spin default {} min {least} max {most}", field(options))
            }
            Self::Fraction(field) => format!("string default {}", field(options)),
            Self::Check(field) => format!("check default {}", field(options)),
            Self::Button => "button".into(),
        }
    }

    /// Sets the value. The error is the requirement that `value` breaks.
    fn set(&self, options: &mut Options, value: &str) -> Result<(), String> {
        match self {
            Self::Text(field) => *field(options) = if value == "<empty>" { "" } else { value }.into(),
            Self::Provider => options.provider = value.parse()?,
            Self::Spin(least, most, field) => {
                *field(options) = parsed(value, |number| (least..=most).contains(&number))
                    .ok_or_else(|| format!("a whole number from {least} to {most}"))?;
            }
            Self::Fraction(field) => {
                *field(options) = parsed(value, |number| (0.0..=MOST).contains(number))
                    .ok_or_else(|| format!("a number from 0 to {MOST}"))?;
            }
            Self::Check(field) => *field(options) = parsed(value, |_| true).ok_or("true or false")?,
            Self::Button => {}
        }
        Ok(())
    }
}

fn parsed<T: FromStr>(value: &str, accepts: impl Fn(&T) -> bool) -> Option<T> {
    value.parse().ok().filter(accepts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_in_the_list_can_be_set_to_its_default() {
        let options = Options::default();
        let list = options.list();
        assert!(list.lines().count() >= 14);
        for line in list.lines() {
            let (name, kind) = line
                .strip_prefix("option name ")
                .and_then(|rest| rest.split_once(" type "))
                .unwrap();
            let words: Vec<&str> = kind.split(' ').collect();
            if words[0] == "button" {
                continue;
            }
            assert_eq!(words[1], "default", "{line}");
            let mut same = options.clone();
            assert_eq!(same.set(&name.to_uppercase(), words[2]), Ok(()), "{line}");
            assert_eq!(same, options, "{line}");
        }
    }

    #[test]
    fn values_out_of_range_change_nothing() {
        let mut options = Options::default();
        for (name, value) in [
            ("Hash", "0"),
            ("Hash", "lots"),
            ("Threads", "257"),
            ("MultiPV", "-1"),
            ("CPuct", "NaN"),
            ("CPuct", "-1"),
            ("Temperature", "inf"),
            ("Move Overhead", "10001"),
            ("UnderPromotions", "maybe"),
            ("Provider", "abacus"),
            ("Contempt", "3"),
        ] {
            let error = options.set(name, value).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert_eq!(options, Options::default());
        }
    }

    #[test]
    fn some_options_require_loading_the_network_again() {
        let before = Options::default();
        let changed = |name, value| {
            let mut options = before.clone();
            options.set(name, value).unwrap();
            options.network() != before.network()
        };
        assert!(changed("Provider", "cpu") && changed("Threads", "2") && changed("Batch", "4"));
        assert!(!changed("Hash", "2") && !changed("CPuct", "2") && !changed("Visits", "9"));
    }
}
