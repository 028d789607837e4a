//! `minuet games check`: replays games from their records, and repeats their searches with the same networks.
//!
//! | module | contents |
//! |---|---|
//! | [`outcome`] | the four outcomes of a check, and the failure of the whole check |
//! | [`searches`] | repeating the searches of a game |

pub mod outcome;
mod searches;

use actor::check::{Problem, rules};
use games::{Game, registry};
use proto::v1::{self, GameFilter};
use replay_store::client::NEWEST;

use super::{
    selection::parse_id,
    source::{Access, StoreLocation},
};
use outcome::{Counts, Failure, Outcome};
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
        Some(count) => source
            .list(NEWEST, GameFilter::default(), count, Vec::new())
            .await?
            .games
            .iter()
            .map(|game| game.id.to_vec())
            .collect(),
        None => arguments.ids.iter().map(|id| id.to_vec()).collect(),
    };
    let location = arguments.checkpoints.clone().or_else(|| {
        source
            .config
            .as_ref()
            .map(|config| config.checkpoints.store.clone())
    });
    let runtime = source
        .config
        .as_ref()
        .map(|config| config.inference.runtime.clone())
        .unwrap_or_default();
    let mut checker = SearchChecker::new(location, runtime, provider);
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
    let damage = source.close().await?;
    if !arguments.json {
        println!("{counts}");
    }
    match (counts.failure(arguments.strict), damage) {
        (Some(failure @ Failure::Differ(_)), _) => Err(failure.into()),
        (_, Some(damage)) => Err(damage.into()),
        (Some(failure), None) => Err(failure.into()),
        (None, None) => Ok(()),
    }
}

struct Rules<'a>(&'a v1::Game);

impl registry::Visitor for Rules<'_> {
    type Output = Vec<Problem>;

    fn visit<G: Game>(self) -> Vec<Problem> {
        rules::check::<G>(self.0)
    }
}
