//! The file of an experiment: [`Experiment`].

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use config::{Override, RunConfig};
use games::{Game as _, connect_four::ConnectFour};
use launcher::new_run;
use serde::Deserialize;

/// Settings of every run unless the experiment says otherwise. The roles would choose both by their speed on this machine, and the
/// results would depend on it.
const PINNED: [&str; 2] = ["learner.precision=f32", "inference.provider=cpu"];

/// An experiment: arms that differ in settings, each run once for each seed with the same budget.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Sentence that says what the experiment decides.
    pub question: String,
    /// Name of the game.
    pub game: String,
    /// Seeds of the runs; every arm has a run for each.
    pub seeds: Vec<u64>,
    /// Budget of a run.
    pub budget: Budget,
    /// Number of positions of the games that end between two trainings.
    #[serde(default = "default_round_positions")]
    pub round_positions: usize,
    /// Measurements of strength.
    pub rating: Rating,
    /// Settings of all arms, by their key in `run.toml`.
    #[serde(default)]
    pub settings: toml::Table,
    /// The arms. The first one is the control.
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
}

/// A run ends as soon as one of its limits is reached.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Number of fresh evaluations.
    pub evaluations: u64,
    /// Number of samples trained on.
    pub samples: u64,
}

/// Measurements of strength.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rating {
    /// Number of fresh evaluations between two measurements. The end of the run is measured too.
    pub every: u64,
    /// Visits per move of the network in matches, and in the second measurement against the exact solver.
    pub visits: u32,
    /// Number of games against each opponent, even.
    #[serde(default)]
    pub games: u32,
    /// Opponents, as in `minuet arena`.
    #[serde(default)]
    pub against: Vec<String>,
    /// Number of games of an arm's last network against the last one of the first arm with the same seed, even. Both search as in
    /// training. 0: none.
    #[serde(default)]
    pub control_games: u32,
    /// Positions per phase of the game in which the moves are compared with those of an exact solver, as by `minuet bench accuracy`;
    /// 0: none.
    #[serde(default)]
    pub solver_positions: u32,
}

/// Runs that share their settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Name, part of a folder's name: letters, digits, `-` and `.`.
    pub name: String,
    /// Settings in which the arm differs, by their key in `run.toml`.
    #[serde(default)]
    pub settings: toml::Table,
}

fn default_round_positions() -> usize {
    1000
}

impl Experiment {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, a key is unknown, or a value is invalid.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let experiment = toml::from_str::<Self>(&text)
            .map_err(anyhow::Error::from)
            .and_then(|experiment| experiment.check().map(|()| experiment));
        experiment.with_context(|| format!("{} is not an experiment", path.display()))
    }

    fn check(&self) -> anyhow::Result<()> {
        let rating = &self.rating;
        let has_games = rating.games > 0 || rating.against.is_empty();
        let has_solver = rating.solver_positions == 0 || self.game == ConnectFour::NAME;
        for (is_good, fault) in [
            (!self.seeds.is_empty(), "`seeds` is empty"),
            (!self.arms.is_empty(), "there is no [[arm]]"),
            (
                self.budget.evaluations > 0,
                "`budget.evaluations` must be above 0",
            ),
            (self.budget.samples > 0, "`budget.samples` must be above 0"),
            (rating.every > 0, "`rating.every` must be above 0"),
            (self.round_positions > 0, "`round_positions` must be above 0"),
            (
                rating.games.is_multiple_of(2) && has_games,
                "`rating.games` must be an even number above 0, because every opening is played with both colours",
            ),
            (
                rating.control_games.is_multiple_of(2),
                "`rating.control_games` must be even, because every opening is played with both colours",
            ),
            (
                has_solver,
                "`rating.solver_positions`: there is a solver for connect-four only",
            ),
        ] {
            ensure!(is_good, fault);
        }
        for (place, arm) in self.arms.iter().enumerate() {
            let is_usual = |char: char| char.is_ascii_alphanumeric() || "-.".contains(char);
            ensure!(
                !arm.name.is_empty() && !arm.name.starts_with('.') && arm.name.chars().all(is_usual),
                "arm `{}`: a name has letters, digits, `-` and `.`",
                arm.name
            );
            ensure!(
                self.arms[..place].iter().all(|other| other.name != arm.name),
                "two arms are called `{}`",
                arm.name
            );
            self.config(arm, 1)
                .with_context(|| format!("arm `{}`", arm.name))?;
        }
        Ok(())
    }

    /// Returns the configuration of an arm's run with `seed`.
    ///
    /// # Errors
    /// A key does not exist, or a value is out of range.
    pub fn config(&self, arm: &Arm, seed: u64) -> anyhow::Result<RunConfig> {
        let mut overrides: Vec<Override> = vec![format!("run.seed={seed}").parse()?];
        for pinned in PINNED {
            overrides.push(pinned.parse()?);
        }
        for (key, value) in self.settings.iter().chain(&arm.settings) {
            let setting = format!("{key}={value}");
            overrides.push(setting.parse().with_context(|| format!("setting `{setting}`"))?);
        }
        Ok(new_run(Some(&self.game), &overrides)?)
    }

    /// Returns true for the arm that the others are compared with.
    pub fn is_control(&self, arm: &str) -> bool {
        self.arms.first().is_some_and(|control| control.name == arm)
    }

    /// Returns the arm called `name`.
    ///
    /// # Errors
    /// No arm has this name.
    pub fn arm(&self, name: &str) -> anyhow::Result<&Arm> {
        let found = self.arms.iter().find(|arm| arm.name == name);
        found.with_context(|| format!("unknown arm `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        question = "Do fewer visits learn faster?"
        game = "connect-four"
        seeds = [1, 2]
        budget = { evaluations = 1000, samples = 1000 }
        rating = { every = 500, visits = 10 }
        settings = { "learner.batch_size" = 64 }
        [[arm]]
        name = "control"
        [[arm]]
        name = "visits-32"
        settings = { "search.visits" = 32, "learner.batch_size" = 32 }
    "#;

    fn read(text: &str) -> anyhow::Result<Experiment> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text)?;
        Experiment::read(file.path())
    }

    #[test]
    fn an_arms_settings_override_those_of_the_experiment() {
        let experiment = read(TEXT).unwrap();
        let config = |name| experiment.config(experiment.arm(name).unwrap(), 7).unwrap();
        let (control, other) = (config("control"), config("visits-32"));
        assert_eq!((control.run.seed, control.learner.batch_size), (7, 64));
        assert_eq!((other.search.visits, other.learner.batch_size), (32, 32));
        assert_eq!(control.game.name, "connect-four");
    }

    #[test]
    fn an_invalid_experiment_is_refused_and_the_place_is_named() {
        let refused = |from: &str, to: &str| format!("{:#}", read(&TEXT.replace(from, to)).unwrap_err());
        assert!(refused("search.visits", "search.vists").contains("vists"));
        assert!(refused("visits-32", "control").contains("two arms"));
        assert!(refused("visits-32", "../x").contains("../x"));
        assert!(refused("connect-four", "draughts").contains("draughts"));
        assert!(refused("[1, 2]", "[]").contains("seeds"));
        assert!(refused("every = 500", "evry = 500").contains("evry"));
        assert!(refused("visits = 10", "visits = 10, games = 3").contains("even"));
        assert!(refused("visits = 10", "visits = 10, control_games = 3").contains("even"));
    }
}
