//! `minuet games check`: replays games from their records, and repeats their searches with the same networks.

use std::path::Path;

use actor::check::{
    Problem, Unplayable, rules,
    search::{FollowError, Followed, follow},
};
use config::ProviderChoice;
use games::{Game, registry};
use network::{LocalNetwork, Network as _, file::encoding_of, provider::Provider};
use proto::v1::{self, GameFilter};
use serde_json::json;

use super::{
    format::{hex, parse_id},
    network::{Networks, evaluate},
    source::{Access, NEWEST, StoreLocation},
};

/// Arguments of `minuet games check`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games check 4be1f0a2… --run runs/paco-sako
  minuet games check --newest 50 --run runs/paco-sako --json
The search is reproduced exactly if the game was evaluated by the same provider and the provider is deterministic (cpu is). A game
that was played with several checkpoints is checked up to the first position of the second checkpoint.
Exits with 3 if acknowledged games of the store cannot be read.")]
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
    /// Print one JSON object for each game.
    #[arg(long)]
    json: bool,
}

/// Result of repeating a game's search.
enum SearchResult {
    Skipped,
    /// The search could not be repeated, for this reason.
    Unavailable(String),
    Followed(Followed),
}

/// Checks games. Returns an error if any of them does not agree with its record.
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
    let mut checker = SearchChecker {
        location,
        runtime,
        networks: Vec::new(),
    };
    let (mut checked, mut sound, mut reproduced) = (0, 0, 0);
    for id in &ids {
        let Some(game) = source.game(id).await? else {
            continue;
        };
        checked += 1;
        let problems = registry::visit(&game.game, Rules(&game))?;
        let search = if arguments.rules_only {
            SearchResult::Skipped
        } else {
            checker.search(&game, provider).await?
        };
        let is_sound = problems.is_empty()
            && !matches!(&search, SearchResult::Followed(followed) if followed.difference.is_some());
        sound += usize::from(is_sound);
        reproduced += usize::from(matches!(&search, SearchResult::Followed(followed)
            if followed.difference.is_none() && followed.positions == game.actions.len()));
        print(&game, &problems, &search, is_sound, arguments.json);
    }
    let damage = source.close().await?;
    if !arguments.json {
        println!(
            "{sound} of {checked} games agree with their records, {reproduced} searches reproduced completely"
        );
    }
    anyhow::ensure!(
        sound == checked,
        "{} of {checked} games do not agree with their records",
        checked - sound
    );
    damage.map_or(Ok(()), |damage| Err(damage.into()))
}

fn print(game: &v1::Game, problems: &[Problem], search: &SearchResult, is_sound: bool, as_json: bool) {
    let plies = game.actions.len();
    if as_json {
        let search = match search {
            SearchResult::Skipped => json!(null),
            SearchResult::Unavailable(reason) => json!({ "unavailable": reason }),
            SearchResult::Followed(followed) => json!({
                "positions": followed.positions,
                "of": plies,
                "value_difference": followed.value_difference,
                "difference": followed.difference,
            }),
        };
        let line = json!({
            "id": hex(&game.id), "holds": is_sound, "positions": plies, "problems": problems, "search": search,
        });
        println!("{line}");
        return;
    }
    let rules = match problems {
        [] => format!("{plies} positions agree with the rules"),
        problems => format!("{} problems", problems.len()),
    };
    let search = match search {
        SearchResult::Skipped => String::new(),
        SearchResult::Unavailable(reason) => format!("; search not repeated: {reason}"),
        SearchResult::Followed(followed) => match &followed.difference {
            Some(difference) => format!("; search differs at {difference}"),
            None if followed.positions < plies => format!(
                "; search reproduced for {} of {plies} positions (another checkpoint was used then)",
                followed.positions
            ),
            None => format!(
                "; search reproduced exactly (root values within {:.1e})",
                followed.value_difference
            ),
        },
    };
    println!("{}  {rules}{search}", hex(&game.id));
    for problem in problems {
        println!("    {problem}");
    }
}

/// Returns the provider with this name.
fn parse_provider(name: &str) -> anyhow::Result<ProviderChoice> {
    let choice: Option<ProviderChoice> = name.parse().ok();
    let named = choice.filter(|&choice| choice != ProviderChoice::Auto);
    named.ok_or_else(|| {
        let known: Vec<&str> = Provider::ALL.into_iter().map(Provider::name).collect();
        anyhow::anyhow!(
            "--provider {name}: unknown provider; the providers are {}",
            known.join(", ")
        )
    })
}

/// Repeats searches, with one set of networks for each provider.
struct SearchChecker {
    location: Option<String>,
    runtime: std::path::PathBuf,
    networks: Vec<(ProviderChoice, Networks)>,
}

impl SearchChecker {
    async fn search(
        &mut self,
        game: &v1::Game,
        chosen: Option<ProviderChoice>,
    ) -> anyhow::Result<SearchResult> {
        if !game.provenance.is_empty() {
            let reason = format!("the game was not played by a search ({})", game.provenance);
            return Ok(SearchResult::Unavailable(reason));
        }
        let Some(location) = self.location.clone() else {
            return Ok(SearchResult::Unavailable(
                "no model repository is known; name one with --checkpoints".into(),
            ));
        };
        let Some((version, model_number)) = game
            .model_of_position
            .first()
            .and_then(|&model| Some((game.model_versions.get(model as usize)?, model as usize)))
        else {
            return Ok(SearchResult::Unavailable("the record names no checkpoint".into()));
        };
        // Versions are listed in order of arrival, and a position names the newest one.
        if model_number > 0 {
            let reason = "another checkpoint arrived during the first search".into();
            return Ok(SearchResult::Unavailable(reason));
        }
        let named = game.model_providers.get(model_number).map_or("", String::as_str);
        let provider = match chosen {
            Some(provider) => provider,
            None if named.is_empty() => ProviderChoice::Cpu,
            None => match parse_provider(named) {
                Ok(provider) => provider,
                Err(_) => {
                    return Ok(SearchResult::Unavailable(format!(
                        "provider `{named}` is unknown to this build"
                    )));
                }
            },
        };
        let networks = match self.networks.iter().position(|(of, _)| *of == provider) {
            Some(at) => &mut self.networks[at].1,
            None => {
                let runtime: &Path = &self.runtime;
                let opened = match Networks::open(&location, provider, runtime) {
                    Ok(opened) => opened,
                    Err(error) => return Ok(SearchResult::Unavailable(format!("{error:#}"))),
                };
                self.networks.push((provider, opened));
                let last = self.networks.len() - 1;
                &mut self.networks[last].1
            }
        };
        let network = match networks.get(version) {
            Ok(network) => network,
            Err(reason) => {
                return Ok(SearchResult::Unavailable(format!(
                    "checkpoint {version}: {reason}"
                )));
            }
        };
        let following = Following {
            game,
            network: &network,
        };
        match registry::visit(&game.game, following)? {
            Ok(followed) => Ok(SearchResult::Followed(followed)),
            Err(FollowError::Unplayable(error)) => Ok(SearchResult::Unavailable(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

struct Rules<'a>(&'a v1::Game);

impl registry::Visitor for Rules<'_> {
    type Output = Vec<Problem>;

    fn visit<G: Game>(self) -> Vec<Problem> {
        rules::check::<G>(self.0).unwrap_or_else(|error| {
            let field = match &error {
                Unplayable::Game { .. } => "game",
                Unplayable::Id(_) => "id",
                Unplayable::Rules(_) => "rules_json",
                Unplayable::Start(_) => "start",
                Unplayable::Columns(error) => error.column,
                Unplayable::Search(_) | Unplayable::Settings(_) => "search_json",
            };
            vec![Problem {
                ply: None,
                field,
                problem: error.to_string(),
            }]
        })
    }
}

struct Following<'a> {
    game: &'a v1::Game,
    network: &'a LocalNetwork,
}

impl registry::Visitor for Following<'_> {
    type Output = Result<Followed, FollowError<String>>;

    fn visit<G: Game>(self) -> Self::Output {
        let description = self.network.description();
        let (version, layout) = (&description.version, &description.layout);
        encoding_of::<G>(layout, version).map_err(|error| FollowError::Network(error.to_string()))?;
        if layout.options != self.game.options {
            return Err(FollowError::Network(format!(
                "{version} takes rows with options {}, the game has options {}",
                layout.options, self.game.options
            )));
        }
        follow::<G, String>(self.game, |batch, predictions| {
            evaluate(self.network, batch, predictions)
        })
    }
}
