//! How a person writes a player: [`Spec`].
//!
//! A player is a name followed by `,key=value` as often as needed:
//!
//! | written | plays |
//! |---|---|
//! | `runs/chess,visits=400` | a checkpoint (see [`ModelName`]) that searches |
//! | `uct,visits=100` | UCT whose every position is worth 0 and whose every action is as likely as the next |
//! | `random` | any legal action |
//! | `perfect` | Connect Four without a mistake |
//! | `uci:stockfish,nodes=1000,option.Skill Level=3` | a UCI engine, chess only |
//!
//! Keys: `name`, what the player is called; for searches `visits` (100), `leaves` (1; more are faster alone and play a little
//! worse), `exploration`, `first-play` (`parent`, `zero` or a reduction), `symmetry` (`true`, `false`), `reuse` (`gray`,
//! `keep`, `drop`), `temperature` (0); for engines `nodes`, `movetime` (milliseconds), `depth` and `option.NAME`.

use std::{fmt, str::FromStr};

use config::SearchConfig;
use search::{FirstPlay, Reuse, Settings};
use serde::{Deserialize, Serialize};

use network::ModelName;

/// A player as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What it is called: as it was written, unless `name` says otherwise.
    pub name: String,
    /// As it was written.
    pub written: String,
    /// What it is.
    pub kind: Kind,
}

/// What a player is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A network that searches.
    Model(ModelName, SearchSpec),
    /// UCT with uniform evaluations.
    Uct(SearchSpec),
    /// Any legal action.
    Random,
    /// Connect Four without a mistake.
    Perfect,
    /// A UCI engine.
    Uci(UciSpec),
}

/// How a player searches; what is not given is taken from the network's run, or else from [`Settings::default`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchSpec {
    /// Traversals for each decision; 100 where it is not given.
    pub visits: Option<u32>,
    /// Leaves handed out at once; 1 where it is not given.
    pub leaves: Option<u32>,
    /// The exploration constant.
    pub exploration: Option<f32>,
    /// First-play value.
    pub first_play: Option<FirstPlay>,
    /// Whether each leaf is seen in a symmetry drawn at random.
    pub symmetry: Option<bool>,
    /// What becomes of the subtree below the action played.
    pub reuse: Option<Reuse>,
    /// Actions are drawn in proportion to `visits^(1/temperature)`; 0 takes the most visited.
    pub temperature: f32,
}

/// A UCI engine and how long it thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UciSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it thinks.
    pub go: Go,
    /// What is set before it plays, in order.
    pub options: Vec<(String, String)>,
}

/// How long a UCI engine thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Go {
    /// So many nodes.
    Nodes(u64),
    /// So many milliseconds.
    Movetime(u64),
    /// So many plies.
    Depth(u32),
}

/// A text that is no player.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no player: {reason}")]
pub struct SpecError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Visits of a search that says nothing of them.
const VISITS: u32 = 100;
/// Nodes of an engine that is told nothing.
const NODES: u64 = 1_000;

impl SearchSpec {
    /// The search's settings: what is given here, then what the run trained with, then the defaults. Never noise.
    pub fn settings(&self, run: Option<&SearchConfig>) -> Settings {
        let mut settings = Settings::default();
        if let Some(run) = run {
            // Noise and numbers of games are the actor's business, and both are replaced below.
            if let Ok(trained) = actor::settings::search_settings(run, 1) {
                settings = trained;
            }
        }
        Settings {
            traversals: self.visits.unwrap_or(VISITS),
            leaves: self.leaves.unwrap_or(1),
            exploration: self.exploration.unwrap_or(settings.exploration),
            first_play: self.first_play.unwrap_or(settings.first_play),
            random_symmetry: self.symmetry.unwrap_or(settings.random_symmetry),
            reuse: self.reuse.unwrap_or(settings.reuse),
            noise: None,
            ..settings
        }
    }

    fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let done = match key {
            "visits" => read(value).map(|visits| self.visits = Some(visits)),
            "leaves" => read(value).map(|leaves| self.leaves = Some(leaves)),
            "exploration" => read(value).map(|exploration| self.exploration = Some(exploration)),
            "first-play" => first_play(value).map(|first_play| self.first_play = Some(first_play)),
            "symmetry" => read(value).map(|symmetry| self.symmetry = Some(symmetry)),
            "reuse" => reuse(value).map(|reuse| self.reuse = Some(reuse)),
            "temperature" => read(value).and_then(|temperature: f32| {
                self.temperature = temperature;
                let is_one = temperature >= 0.0 && temperature.is_finite();
                is_one.then_some(()).ok_or("is negative".into())
            }),
            _ => return None,
        };
        Some(done)
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
                Kind::Model(_, search) | Kind::Uct(search) => (search.take(key, value), SEARCH_KEYS),
                Kind::Uci(engine) => (engine.take(key, value), ENGINE_KEYS),
                Kind::Random | Kind::Perfect => (None, "name"),
            };
            taken
                .ok_or_else(|| fault(format!("it has no key `{key}`, but {keys}")))?
                .map_err(|reason| fault(format!("`{key}` {reason}")))?;
        }
        let spec = Self {
            name: name.unwrap_or_else(|| text.into()),
            written: text.into(),
            kind,
        };
        if let Kind::Model(_, search) | Kind::Uct(search) = &spec.kind {
            search
                .settings(None)
                .check()
                .map_err(|error| fault(error.to_string()))?;
        }
        Ok(spec)
    }
}

const SEARCH_KEYS: &str = "name, visits, leaves, exploration, first-play, symmetry, reuse, temperature";
const ENGINE_KEYS: &str = "name, nodes, movetime, depth, option.NAME";

fn kind(text: &str) -> Result<Kind, String> {
    if let Some(command) = text.strip_prefix("uci:") {
        let command: Vec<String> = command.split_whitespace().map(String::from).collect();
        if command.is_empty() {
            return Err("uci: is followed by the engine's program, e.g. uci:stockfish".into());
        }
        return Ok(Kind::Uci(UciSpec {
            command,
            go: Go::Nodes(NODES),
            options: Vec::new(),
        }));
    }
    Ok(match text {
        "uct" => Kind::Uct(SearchSpec::default()),
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

fn first_play(value: &str) -> Result<FirstPlay, String> {
    match value {
        "parent" => Ok(FirstPlay::Parent),
        "zero" => Ok(FirstPlay::Zero),
        _ => read(value)
            .map(FirstPlay::Reduction)
            .map_err(|_| format!("is `{value}`, and not parent, zero or a reduction such as 0.2")),
    }
}

fn reuse(value: &str) -> Result<Reuse, String> {
    match value {
        "gray" => Ok(Reuse::Gray),
        "keep" => Ok(Reuse::Keep),
        "drop" => Ok(Reuse::Drop),
        _ => Err(format!("is `{value}`, and not gray, keep or drop")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Spec {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_is_read_with_its_keys() {
        let Kind::Model(model, search) = read("runs/x@best,visits=400,leaves=8,first-play=0.2").kind else {
            panic!("a model");
        };
        assert_eq!(model.to_string(), "runs/x@best");
        let settings = search.settings(None);
        assert_eq!((settings.traversals, settings.leaves), (400, 8));
        assert_eq!(settings.first_play, FirstPlay::Reduction(0.2));
        assert_eq!(settings.noise, None, "never");

        assert_eq!(read("random").kind, Kind::Random);
        assert_eq!(read("perfect,name=truth").name, "truth");
        assert_eq!(read("uct").kind, Kind::Uct(SearchSpec::default()));
        let Kind::Uci(engine) = read("uci:/opt/engine -q, depth=3, option.Skill Level=2").kind else {
            panic!("an engine");
        };
        assert_eq!(engine.command, ["/opt/engine", "-q"]);
        assert_eq!(engine.go, Go::Depth(3));
        assert_eq!(engine.options, [("Skill Level".into(), "2".into())]);
    }

    #[test]
    fn the_runs_own_settings_stand_behind_what_is_given() {
        let run = SearchConfig {
            visits: 900,
            exploration: 3.5,
            leaves: 16,
            ..SearchConfig::default()
        };
        let spec = SearchSpec {
            visits: Some(50),
            ..SearchSpec::default()
        };
        let settings = spec.settings(Some(&run));
        assert_eq!(
            (settings.traversals, settings.leaves, settings.exploration),
            (50, 1, 3.5)
        );
    }

    #[test]
    fn slips_are_named() {
        let says = |text: &str, words: &str| {
            let said = text.parse::<Spec>().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        says("uct,visit=3", "no key `visit`, but name, visits");
        says("uct,visits=many", "`visits` is `many`");
        says("uct,visits=0", "traversals must be 1 to");
        says("uct,visits", "should be key=value");
        says("random,visits=3", "no key `visits`");
        says("uci:", "followed by the engine's program");
        says("", "names no network");
        says("uct,temperature=-1", "negative");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = text.parse::<Spec>();
        }
    }
}
