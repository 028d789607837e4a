//! `minuet games check`: replays games from their records, and repeats their searches with the same networks.
//!
//! [`searches`] repeats the searches of a game.

mod searches;

use actor::check::{Problem, rules, search::Followed};
use games::{Game, registry};
use proto::{
    ids::hex,
    v1::{self, GameFilter},
};
use replay_store::client::NEWEST;
use serde_json::json;

use super::{
    selection::parse_id,
    source::{Access, StoreLocation},
};
use searches::{SearchChecker, parse_provider};

/// Arguments of `minuet games check`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games check 4be1f0a2… --run runs/paco-sako
  minuet games check --newest 50 --run runs/paco-sako --json
Each game has one of four outcomes:
  replayed            every move, row, visit and draw follows from the rules and the seed; there is no search to repeat
                      (--rules-only, or a recorded solution)
  search reproduced   repeated searches with the same checkpoints come to every recorded visit
  not tried           the searches cannot be repeated, for example because a checkpoint is gone (checkpoints.keep_for_games)
  differs             the record contradicts the rules or its searches
A search is reproduced exactly if the provider is the same and deterministic (cpu is).
Exit status: 0 if all games are replayed or reproduced (with --strict: reproduced); 1 if a game differs; 3 if acknowledged games of
the store cannot be read; 4 if no game differs, and a search was not tried (with --strict: not reproduced).")]
pub struct Arguments {
    /// Ids of the games.
    #[arg(value_parser = parse_id, required_unless_present = "newest")]
    ids: Vec<[u8; 16]>,
    /// Check this many of the newest games.
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    newest: Option<u64>,
    #[command(flatten)]
    place: StoreLocation,
    /// Model repository. [default: that of the run]
    #[arg(long, value_name = "LOCATION")]
    checkpoints: Option<String>,
    /// Execution provider of the networks. [default: that of each game, or cpu]
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Check the records against the rules only; no network is needed.
    #[arg(long)]
    rules_only: bool,
    /// Fail unless the search of every game is reproduced.
    #[arg(long, conflicts_with = "rules_only")]
    strict: bool,
    /// Print one JSON object for each game.
    #[arg(long)]
    json: bool,
}

/// Checks games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let provider = arguments.provider.as_deref().map(parse_provider).transpose()?;
    let mut source = arguments.place.open(Access::Read).await?;
    let ids: Vec<Vec<u8>> = match arguments.newest {
        Some(count) => {
            let filter = GameFilter::default();
            let listed = source.list(NEWEST, filter, count, Vec::new()).await?.games;
            listed.iter().map(|game| game.id.to_vec()).collect()
        }
        None => arguments.ids.iter().map(|id| id.to_vec()).collect(),
    };
    let own = source.config.as_ref();
    let own = own.map(|config| config.checkpoints.store.clone());
    let location = arguments.checkpoints.clone().or(own);
    let mut checker = SearchChecker::new(location, provider);
    let mut counts = Counts::default();
    for id in &ids {
        let Some(game) = source.game(id).await? else {
            continue;
        };
        let problems = registry::visit(&game.game, Rules(&game))?;
        let outcome = match problems.as_slice() {
            [] if arguments.rules_only => Outcome::Replayed("only the rules were requested".into()),
            [] => checker.check(&game)?,
            _ => Outcome::Differs(problems),
        };
        counts.add(&outcome);
        outcome.print(&game, arguments.json);
    }
    let closed = source.close().await;
    if !arguments.json {
        println!("{counts}");
    }
    match counts.failure(arguments.strict) {
        Some(failure @ Failure::Differ(_)) => Err(failure.into()),
        failure => closed.and_then(|()| failure.map_or(Ok(()), |failure| Err(failure.into()))),
    }
}

struct Rules<'a>(&'a v1::Game);

impl registry::Visitor for Rules<'_> {
    type Output = Vec<Problem>;

    fn visit<G: Game>(self) -> Vec<Problem> {
        rules::check::<G>(self.0)
    }
}

/// Result of checking a game.
enum Outcome {
    /// The record agrees with the rules. There was no search to repeat, for this reason.
    Replayed(String),
    /// The record agrees with the rules, and its searches come to every recorded visit.
    Reproduced(Followed),
    /// The record agrees with the rules. Its searches cannot be repeated, for this reason.
    NotTried(String),
    /// The record contradicts the rules or its searches.
    Differs(Vec<Problem>),
}

impl Outcome {
    /// Name of the outcome in the output.
    fn name(&self) -> &'static str {
        match self {
            Self::Replayed(_) => "replayed",
            Self::Reproduced(_) => "search reproduced",
            Self::NotTried(_) => "not tried",
            Self::Differs(_) => "differs",
        }
    }

    /// Prints the outcome of a game, as one JSON object if `as_json`.
    fn print(&self, game: &v1::Game, as_json: bool) {
        let (id, plies) = (hex(&game.id), game.actions.len());
        let (mut reason, mut problems, mut value_difference) = (None, [].as_slice(), None);
        match self {
            Self::Replayed(found) | Self::NotTried(found) => reason = Some(found),
            Self::Reproduced(followed) => value_difference = Some(followed.value_difference),
            Self::Differs(found) => problems = found,
        }
        if as_json {
            let line = json!({
                "id": id,
                "outcome": self.name(),
                "positions": plies,
                "reason": reason,
                "problems": problems,
                "value_difference": value_difference,
            });
            println!("{line}");
            return;
        }
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        println!(
            "{id}  {plies} positions  {}{}",
            self.name(),
            service::plain(&reason)
        );
        for problem in problems {
            println!("    {}", service::plain(&problem.to_string()));
        }
    }
}

/// Numbers of games by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    replayed: u64,
    reproduced: u64,
    not_tried: u64,
    differ: u64,
}

impl Counts {
    /// Counts a game.
    fn add(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Replayed(_) => &mut self.replayed,
            Outcome::Reproduced(_) => &mut self.reproduced,
            Outcome::NotTried(_) => &mut self.not_tried,
            Outcome::Differs(_) => &mut self.differ,
        };
        *count += 1;
    }

    /// Returns the failure of the whole check. With `is_strict`, every search must have been reproduced.
    fn failure(&self, is_strict: bool) -> Option<Failure> {
        let not_reproduced = self.not_tried + if is_strict { self.replayed } else { 0 };
        match (self.differ, not_reproduced) {
            (0, 0) => None,
            (0, games) => Some(Failure::NotReproduced(games)),
            (games, _) => Some(Failure::Differ(games)),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} games: {} replayed, {} searches reproduced, {} not tried, {} differ",
            self.replayed + self.reproduced + self.not_tried + self.differ,
            self.replayed,
            self.reproduced,
            self.not_tried,
            self.differ
        )
    }
}

/// Error: not all games were checked with success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Games that do not agree with their records. The process exits with 1.
    #[error("{0} games do not agree with their records")]
    Differ(u64),
    /// Games whose searches were not reproduced. The process exits with 4.
    #[error("the searches of {0} games were not reproduced")]
    NotReproduced(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replayed_games_and_reproduced_searches_are_success() {
        let counts = |outcomes: &[Outcome]| {
            let mut counts = Counts::default();
            outcomes.iter().for_each(|outcome| counts.add(outcome));
            counts
        };
        let replayed = || Outcome::Replayed("a known solution".into());
        let reproduced = || Outcome::Reproduced(Followed::default());
        let not_tried = || Outcome::NotTried("the checkpoint is gone".into());
        let differs = || Outcome::Differs(Vec::new());

        let good = counts(&[replayed(), reproduced()]);
        assert_eq!(
            (good.failure(false), good.failure(true)),
            (None, Some(Failure::NotReproduced(1)))
        );
        assert_eq!(counts(&[reproduced()]).failure(true), None);
        let gone = counts(&[replayed(), reproduced(), not_tried()]);
        assert_eq!(gone.failure(false), Some(Failure::NotReproduced(1)));
        assert_eq!(gone.failure(true), Some(Failure::NotReproduced(2)));
        let bad = counts(&[not_tried(), differs()]);
        assert_eq!(bad.failure(false), Some(Failure::Differ(1)));
        assert_eq!(
            bad.to_string(),
            "2 games: 0 replayed, 0 searches reproduced, 1 not tried, 1 differ"
        );
    }
}
