//! Options of the engine: the answer to `uci`, and `setoption`.

use std::{fmt::Write as _, time::Duration};

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
    /// Settings of the search. The options Hash, Batch and CPuct are its `tree_bytes`, `leaves` and `exploration`.
    pub search: Settings,
    /// Memory of the evaluation cache, which is kept from game to game, in MiB; 0: no cache.
    pub cache: u32,
    /// Number of lines shown.
    pub multi_pv: u32,
    /// Largest number of visits per move; 0: no limit.
    pub visits: u32,
    /// Temperature of the choice of moves; 0: the most visited move.
    pub temperature: f32,
    /// Reserve per move for time lost outside the engine.
    pub move_overhead: Duration,
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
            search: Settings {
                leaves: 8,
                noise_fraction: 0.0,
                // A random symmetry would halve the hits of the evaluation cache.
                random_symmetry: false,
                reuse: Reuse::Keep,
                tree_bytes: 256 << 20,
                ..Settings::default()
            },
            cache: 64,
            multi_pv: 1,
            visits: 0,
            temperature: 0.0,
            move_overhead: Duration::from_millis(100),
            under_promotions: true,
            show_wdl: false,
        }
    }
}

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

/// Ranges of the numeric options.
const THREADS: (u32, u32) = (1, 256);
const HASH: (u32, u32) = (1, 8192);
const CACHE: (u32, u32) = (0, 65_536);
const BATCH: (u32, u32) = (1, 256);
const MULTI_PV: (u32, u32) = (1, 218);
const VISITS: (u32, u32) = (0, Settings::MAX_VISITS);
const OVERHEAD: (u32, u32) = (0, 10_000);

impl Options {
    /// Returns the memory limit of the search tree in MiB.
    pub fn hash_mib(&self) -> u32 {
        (self.search.tree_bytes >> 20) as u32
    }

    /// Returns the list of options, one per line.
    pub fn list(&self) -> String {
        let mut list = String::new();
        let mut say = |name: &str, kind: &str| {
            let _ = writeln!(list, "option name {name} type {kind}");
        };
        let spin = |default: u32, (least, most)| format!("spin default {default} min {least} max {most}");
        let text = |default: &str| {
            format!(
                "string default {}",
                if default.is_empty() { "<empty>" } else { default }
            )
        };
        say("Model", &text(&self.model));
        let providers = Provider::ALL.map(|choice| format!("var {choice}"));
        let default = self.provider;
        say(
            "Provider",
            &format!("combo default {default} {}", providers.join(" ")),
        );
        say("Threads", &spin(self.threads, THREADS));
        say("Hash", &spin(self.hash_mib(), HASH));
        say("Cache", &spin(self.cache, CACHE));
        say("Clear Hash", "button");
        say("Batch", &spin(self.search.leaves, BATCH));
        say("MultiPV", &spin(self.multi_pv, MULTI_PV));
        say("Ponder", "check default false");
        say("Visits", &spin(self.visits, VISITS));
        say("CPuct", &text(&self.search.exploration.to_string()));
        say("Temperature", &text(&self.temperature.to_string()));
        let overhead = u32::try_from(self.move_overhead.as_millis()).unwrap_or(OVERHEAD.1);
        say("Move Overhead", &spin(overhead, OVERHEAD));
        say(
            "UnderPromotions",
            &format!("check default {}", self.under_promotions),
        );
        say("UCI_ShowWDL", &format!("check default {}", self.show_wdl));
        list
    }

    /// Sets an option. Names are case-insensitive, as the protocol requires.
    ///
    /// # Errors
    /// [`OptionError`]; the options are then unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name.to_lowercase().as_str() {
            "model" => {
                self.model = if value == "<empty>" {
                    String::new()
                } else {
                    value.into()
                }
            }
            "provider" => {
                self.provider = value.parse().map_err(|must| OptionError::Value {
                    name: "Provider",
                    value: value.into(),
                    must,
                })?;
            }
            "threads" => self.threads = number("Threads", value, THREADS)?,
            "hash" => self.search.tree_bytes = (number("Hash", value, HASH)? as usize) << 20,
            "cache" => self.cache = number("Cache", value, CACHE)?,
            "batch" => self.search.leaves = number("Batch", value, BATCH)?,
            "multipv" => self.multi_pv = number("MultiPV", value, MULTI_PV)?,
            "visits" => self.visits = number("Visits", value, VISITS)?,
            "cpuct" => self.search.exploration = float("CPuct", value, 100.0)?,
            "temperature" => self.temperature = float("Temperature", value, 100.0)?,
            "move overhead" => {
                self.move_overhead = Duration::from_millis(number("Move Overhead", value, OVERHEAD)?.into());
            }
            "underpromotions" => self.under_promotions = check("UnderPromotions", value)?,
            "uci_showwdl" => self.show_wdl = check("UCI_ShowWDL", value)?,
            // A hint that the GUI may send `go ponder`, which the engine always supports.
            "ponder" => drop(check("Ponder", value)?),
            _ => return Err(OptionError::Unknown(name.chars().take(40).collect())),
        }
        Ok(())
    }

    /// True if a change from `before` to these options requires loading the network again.
    pub fn need_another_network(&self, before: &Self) -> bool {
        let of = |options: &Self| {
            (
                options.model.clone(),
                options.provider,
                options.threads,
                options.search.leaves,
                options.cache,
            )
        };
        of(self) != of(before)
    }
}

fn number(name: &'static str, value: &str, (least, most): (u32, u32)) -> Result<u32, OptionError> {
    value
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| OptionError::Value {
            name,
            value: value.into(),
            must: format!("a whole number from {least} to {most}"),
        })
}

fn float(name: &'static str, value: &str, most: f32) -> Result<f32, OptionError> {
    value
        .parse()
        .ok()
        .filter(|number| (0.0..=most).contains(number))
        .ok_or_else(|| OptionError::Value {
            name,
            value: value.into(),
            must: format!("a number from 0 to {most}"),
        })
}

fn check(name: &'static str, value: &str) -> Result<bool, OptionError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(OptionError::Value {
            name,
            value: value.into(),
            must: "true or false".into(),
        }),
    }
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
            options.need_another_network(&before)
        };
        assert!(changed("Model", "uniform") && changed("Threads", "2") && changed("Batch", "4"));
        assert!(!changed("Hash", "2") && !changed("CPuct", "2") && !changed("Visits", "9"));
    }
}
