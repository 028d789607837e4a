//! Text form of a player: [`Spec`].
//!
//! A player is a name followed by any number of `,key=value`:
//!
//! | text | player |
//! |---|---|
//! | `runs/chess,visits=400` | search with a checkpoint's network (see [`ModelName`]) |
//! | `chess`, `chess@beginner` | search with the network that comes with Minuet, of a level |
//! | `uct,visits=100` | UCT with value 0 for every position and equal priors |
//! | `luna,visits=10000` | the same, but it sees wins within a turn: 1 for one's own, -0.5 for a threat of one; Paco Ŝako only |
//! | `random` | random legal actions |
//! | `perfect` | optimal play in Connect Four |
//! | `uci:stockfish,nodes=1000,option.Skill Level=3` | a UCI engine, chess only |
//! | `gtp:gnugo --mode gtp --chinese-rules --capture-all-dead` | a GTP engine: Go, Gomoku, Hex, Othello |
//!
//! Keys: `name`, the player's name; for searches `visits` (default 100), `leaves` (default 1; more are faster in a single game
//! but play a little worse), `exploration`, `first-play` (`parent`, `zero`, `mean` or a reduction), `symmetry` (`true`, `false`),
//! `reuse` (`gray`, `keep`, `drop`), `solver` and `exact-leaves` (`true`, `false`), `root` (`puct`, `gumbel`; the latter takes no
//! temperature), `temperature` (default 0); for engines `nodes`, `movetime` (milliseconds), `depth` and `option.NAME`.

use std::{fmt, str::FromStr};

use config::{ConfigError, Override};
use search::{Root, Settings};
use serde::{Deserialize, Serialize};

use network::ModelName;

/// Specification of a player.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name of the player: the value of `name`, or else the whole text.
    pub name: String,
    /// The text of the specification.
    pub written: String,
    /// Kind of player.
    pub kind: Kind,
}

/// Kind of player.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Search with a network.
    Model(ModelName, SearchSpec),
    /// UCT with uniform evaluations.
    Uct(SearchSpec),
    /// UCT in Paco Ŝako with values by wins within a turn.
    Luna(SearchSpec),
    /// Random legal actions.
    Random,
    /// Optimal play in Connect Four.
    Perfect,
    /// A UCI engine.
    Uci(UciSpec),
    /// A GTP engine.
    Gtp(GtpSpec),
}

/// Search settings of a player that differ from those of its network's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchSpec {
    /// Values of `[search]` in `run.toml`, each checked when parsed.
    overrides: Vec<Override>,
    /// Temperature of the choice of actions, which are drawn in proportion to `visits^(1/temperature)`; 0: the most visited
    /// action.
    pub temperature: f32,
}

/// A UCI engine and its limit per move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UciSpec {
    /// Program and arguments of the engine.
    pub command: Vec<String>,
    /// Limit per move.
    pub go: Go,
    /// Options set before the first game, in order: names and values.
    pub options: Vec<(String, String)>,
}

/// A GTP engine. Its own arguments limit its search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtpSpec {
    /// Program and arguments of the engine.
    pub command: Vec<String>,
}

/// Limit of a UCI engine's search per move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Go {
    /// Number of nodes.
    Nodes(u64),
    /// Time in milliseconds.
    Movetime(u64),
    /// Depth in plies.
    Depth(u32),
}

/// Error: a text is not a player.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a player: {reason}")]
pub struct SpecError {
    /// The text.
    pub text: String,
    /// Reason of the error.
    pub reason: String,
}

/// Default visits per decision of a search.
const VISITS: u32 = 100;
/// Default limit of an engine, in nodes.
const NODES: u64 = 1_000;
/// Keys of a search, and the keys of `[search]` in `run.toml` that they set.
const SEARCH_SETTINGS: [(&str, &str); 9] = [
    ("visits", "visits"),
    ("leaves", "leaves"),
    ("exploration", "exploration"),
    ("first-play", "first_play"),
    ("symmetry", "random_symmetry"),
    ("reuse", "reuse"),
    ("solver", "solver"),
    ("exact-leaves", "exact_leaves"),
    ("root", "root"),
];

impl SearchSpec {
    /// Returns a search of `visits` visits for each decision.
    ///
    /// # Errors
    /// [`ConfigError`] if the number is out of range.
    pub fn with_visits(visits: u32) -> Result<Self, ConfigError> {
        let mut spec = Self::default();
        spec.set("visits", visits)?;
        Ok(spec)
    }

    /// Returns the settings of the search: the values given here, then those of the network's run, then the defaults. A match
    /// has no noise, and 100 visits with one leaf at a time unless the player gives others. A temperature draws from the visits of a
    /// PUCT root.
    pub fn settings(&self, run: Option<&Settings>) -> Settings {
        let mut settings = Settings {
            visits: VISITS,
            leaves: 1,
            noise_fraction: 0.0,
            ..run.cloned().unwrap_or_default()
        };
        if self.temperature > 0.0 {
            settings.root = Root::Puct;
        }
        // Each value was checked when parsed, and the ranges do not depend on each other.
        config::override_search(&settings, &self.overrides).unwrap_or(settings)
    }

    fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        if key == "temperature" {
            return Some(read(value).and_then(|temperature: f32| {
                self.temperature = temperature;
                let is_allowed = temperature >= 0.0 && temperature.is_finite();
                is_allowed.then_some(()).ok_or("is negative".into())
            }));
        }
        let (_, setting) = SEARCH_SETTINGS.iter().find(|(name, _)| *name == key)?;
        let set = if *setting == "first_play" && value.parse::<f32>().is_ok() {
            self.set("first_play_reduction", value)
                .and_then(|()| self.set(setting, "reduction"))
        } else {
            self.set(setting, value)
        };
        Some(set.map_err(|error| match error {
            ConfigError::Override { reason, .. } => format!("is `{value}`: {reason}"),
            ConfigError::Search(error) => error.must,
            other => format!("is `{value}`: {other}"),
        }))
    }

    /// Checks one value and stores it.
    fn set(&mut self, setting: &str, value: impl fmt::Display) -> Result<(), ConfigError> {
        let value = Override::new(&format!("search.{setting}"), value)?;
        config::override_search(&Settings::default(), std::slice::from_ref(&value))?;
        self.overrides.push(value);
        Ok(())
    }
}

impl UciSpec {
    fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let positive = |value: &str| match read(value) {
            Ok(0) => Err("must be at least 1".into()),
            read => read,
        };
        let go = match key {
            "nodes" => positive(value).map(Go::Nodes),
            "movetime" => positive(value).map(Go::Movetime),
            "depth" => positive(value)
                .and_then(|depth| u32::try_from(depth).map_err(|_| "is too deep".into()))
                .map(Go::Depth),
            _ => {
                let name = key.strip_prefix("option.").filter(|name| !name.is_empty())?;
                self.options.push((name.into(), value.into()));
                return Some(Ok(()));
            }
        };
        Some(go.map(|go| self.go = go))
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let fault = |reason: String| SpecError {
            text: text.into(),
            reason,
        };
        let mut parts = text.split(',').map(str::trim);
        let mut kind = kind(parts.next().unwrap_or_default()).map_err(fault)?;
        let mut name = None;
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
                .ok_or_else(|| fault(format!("`{part}` should be key=value")))?;
            if key == "name" {
                name = Some(value).filter(|name| !name.is_empty()).map(String::from);
                continue;
            }
            let (taken, keys) = match &mut kind {
                Kind::Model(_, search) | Kind::Uct(search) | Kind::Luna(search) => {
                    (search.take(key, value), SEARCH_KEYS)
                }
                Kind::Uci(engine) => (engine.take(key, value), ENGINE_KEYS),
                Kind::Random | Kind::Perfect | Kind::Gtp(_) => (None, "name"),
            };
            taken
                .ok_or_else(|| fault(format!("it has no key `{key}`, but {keys}")))?
                .map_err(|reason| fault(format!("`{key}` {reason}")))?;
        }
        if let Kind::Model(_, search) | Kind::Uct(search) | Kind::Luna(search) = &kind
            && search.temperature > 0.0
            && search.settings(None).root == Root::Gumbel
        {
            return Err(fault("a temperature needs root=puct".into()));
        }
        Ok(Self {
            name: name.unwrap_or_else(|| text.into()),
            written: text.into(),
            kind,
        })
    }
}

const SEARCH_KEYS: &str =
    "name, visits, leaves, exploration, first-play, symmetry, reuse, solver, exact-leaves, root, temperature";
const ENGINE_KEYS: &str = "name, nodes, movetime, depth, option.NAME";

fn kind(text: &str) -> Result<Kind, String> {
    let words = |command: &str| -> Vec<String> { command.split_whitespace().map(String::from).collect() };
    if let Some(command) = text.strip_prefix("uci:").map(words) {
        if command.is_empty() {
            return Err("uci: is followed by the engine's program, e.g. uci:stockfish".into());
        }
        return Ok(Kind::Uci(UciSpec {
            command,
            go: Go::Nodes(NODES),
            options: Vec::new(),
        }));
    }
    if let Some(command) = text.strip_prefix("gtp:").map(words) {
        if command.is_empty() {
            return Err("gtp: is followed by the engine's program, e.g. gtp:gtp-rhino".into());
        }
        return Ok(Kind::Gtp(GtpSpec { command }));
    }
    Ok(match text {
        "uct" => Kind::Uct(SearchSpec::default()),
        "luna" => Kind::Luna(SearchSpec::default()),
        "random" => Kind::Random,
        "perfect" => Kind::Perfect,
        _ => Kind::Model(
            text.parse()
                .map_err(|error: network::name::NoModelName| error.to_string())?,
            SearchSpec::default(),
        ),
    })
}

fn read<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("is `{value}`: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use search::FirstPlay;

    use super::*;

    fn read(text: &str) -> Spec {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_of_player_is_parsed_with_its_keys() {
        let Kind::Model(model, search) = read("runs/x@best,visits=400,leaves=8,first-play=0.2").kind else {
            panic!("a model");
        };
        assert_eq!(model.to_string(), "runs/x@best");
        let settings = search.settings(None);
        assert_eq!((settings.visits, settings.leaves), (400, 8));
        assert_eq!(settings.first_play, FirstPlay::Reduction);
        assert_eq!(settings.first_play_reduction, 0.2);
        assert_eq!(settings.noise_fraction, 0.0);

        assert_eq!(read("random").kind, Kind::Random);
        assert_eq!(read("perfect,name=truth").name, "truth");
        assert_eq!(read("uct").kind, Kind::Uct(SearchSpec::default()));
        let Kind::Luna(search) = read("luna,visits=10000").kind else {
            panic!("luna");
        };
        assert_eq!(search.settings(None).visits, 10_000);
        let Kind::Uci(engine) = read("uci:/opt/engine -q, depth=3, option.Skill Level=2").kind else {
            panic!("an engine");
        };
        assert_eq!(engine.command, ["/opt/engine", "-q"]);
        assert_eq!(engine.go, Go::Depth(3));
        assert_eq!(engine.options, [("Skill Level".into(), "2".into())]);
        let Kind::Gtp(engine) = read("gtp:gtp-rhino --level=3,name=rhino").kind else {
            panic!("an engine");
        };
        assert_eq!(engine.command, ["gtp-rhino", "--level=3"]);
    }

    #[test]
    fn given_settings_override_those_of_the_run() {
        let run = Settings {
            visits: 900,
            exploration: 3.5,
            leaves: 16,
            ..Settings::default()
        };
        let spec = SearchSpec::with_visits(50).unwrap();
        let settings = spec.settings(Some(&run));
        assert_eq!(
            (settings.visits, settings.leaves, settings.exploration),
            (50, 1, 3.5)
        );
    }

    #[test]
    fn errors_name_the_mistake() {
        let says = |text: &str, words: &str| {
            let said = text.parse::<Spec>().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        says("uct,visit=3", "no key `visit`, but name, visits");
        says("uct,visits=many", "`visits` is `many`");
        says("uct,visits=0", "`visits` must be at least 1");
        says("uct,reuse=paint", "`reuse` is `paint`");
        says("uct,visits", "should be key=value");
        says("random,visits=3", "no key `visits`");
        says("uci:", "followed by the engine's program");
        says("gtp:", "followed by the engine's program");
        says("gtp:rhino,level=3", "no key `level`, but name");
        says("", "unknown network");
        says("uct,temperature=-1", "negative");
        says("uct,root=oak", "`root` is `oak`");
        says("luna,nodes=3", "no key `nodes`, but name, visits");
        says("luna,root=gumbel,temperature=1", "a temperature needs root=puct");
        says("uct,root=gumbel,temperature=1", "a temperature needs root=puct");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = text.parse::<Spec>();
        }
    }
}
