//! `minuet games check`: games replayed from their records, and their searches with the same networks.

use std::path::Path;

use actor::check::{
    Problem, Unplayable, rules,
    search::{FollowError, Followed, follow},
};
use games::{Game, registry};
use network::{model::Model, provider::Provider};
use proto::v1::{self, GameFilter};
use serde_json::json;

use super::{
    hex,
    list::NEWEST,
    network::{Networks, evaluate},
    parse_id,
    source::Where,
};

/// Arguments of `minuet games check`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games check 4be1f0a2… --run runs/paco-sako
  minuet games check --newest 50 --run runs/paco-sako --json
The search is reproduced exactly where the game was evaluated by the same provider (cpu is one that does); a game that
several checkpoints answered is followed up to the position where the second came in.")]
pub struct Arguments {
    /// The games' ids.
    #[arg(value_parser = parse_id, required_unless_present = "newest")]
    ids: Vec<[u8; 16]>,
    /// Check this many of the newest games.
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    newest: Option<u64>,
    #[command(flatten)]
    place: Where,
    /// The model repository. [default: the run's]
    #[arg(long, value_name = "LOCATION")]
    checkpoints: Option<String>,
    /// What runs the networks. [default: what each game names, or cpu]
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Check the records against the rules only; no network is needed.
    #[arg(long)]
    rules_only: bool,
    /// Print one JSON object for each game.
    #[arg(long)]
    json: bool,
}

/// What came of following a game's search.
enum Search {
    NotAsked,
    /// It could not be tried, and why.
    Unavailable(String),
    Followed(Followed),
}

/// Checks games; an error where any of them does not hold.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let provider = arguments.provider.as_deref().map(parse_provider).transpose()?;
    let mut source = arguments.place.open().await?;
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
    let mut shelf = Shelf {
        location,
        runtime,
        networks: Vec::new(),
    };
    let (mut sound, mut reproduced) = (0, 0);
    for id in &ids {
        let game = source.game(id).await?;
        let problems = registry::visit(&game.game, Rules(&game))?;
        let search = if arguments.rules_only {
            Search::NotAsked
        } else {
            shelf.search(&game, provider).await?
        };
        let is_sound = problems.is_empty()
            && !matches!(&search, Search::Followed(followed) if followed.difference.is_some());
        sound += usize::from(is_sound);
        reproduced += usize::from(matches!(&search, Search::Followed(followed)
            if followed.difference.is_none() && followed.positions == game.actions.len()));
        tell(&game, &problems, &search, is_sound, arguments.json);
    }
    source.close().await?;
    if !arguments.json {
        println!(
            "{sound} of {} games hold, {reproduced} searches reproduced whole",
            ids.len()
        );
    }
    anyhow::ensure!(
        sound == ids.len(),
        "{} of {} games do not hold",
        ids.len() - sound,
        ids.len()
    );
    Ok(())
}

fn tell(game: &v1::Game, problems: &[Problem], search: &Search, is_sound: bool, as_json: bool) {
    let plies = game.actions.len();
    if as_json {
        let search = match search {
            Search::NotAsked => json!(null),
            Search::Unavailable(reason) => json!({ "unavailable": reason }),
            Search::Followed(followed) => json!({
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
        Search::NotAsked => String::new(),
        Search::Unavailable(reason) => format!("; search not tried: {reason}"),
        Search::Followed(followed) => match &followed.difference {
            Some(difference) => format!("; search differs at {difference}"),
            None if followed.positions < plies => format!(
                "; search reproduced for {} of {plies} positions (another checkpoint came in then)",
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

/// Providers by their names.
fn parse_provider(name: &str) -> anyhow::Result<Provider> {
    let provider: Option<config::Provider> = serde_json::from_value(name.into()).ok();
    provider.and_then(Provider::asked_for).ok_or_else(|| {
        let known: Vec<&str> = Provider::ALL.into_iter().map(Provider::name).collect();
        anyhow::anyhow!("--provider {name}: there are {}", known.join(", "))
    })
}

/// The networks, one set for each provider that was needed.
struct Shelf {
    location: Option<String>,
    runtime: std::path::PathBuf,
    networks: Vec<(Provider, Networks)>,
}

impl Shelf {
    async fn search(&mut self, game: &v1::Game, asked: Option<Provider>) -> anyhow::Result<Search> {
        if !game.provenance.is_empty() {
            let reason = format!("the game was not searched but recorded ({})", game.provenance);
            return Ok(Search::Unavailable(reason));
        }
        let Some(location) = self.location.clone() else {
            return Ok(Search::Unavailable("no --checkpoints were named".into()));
        };
        let Some((version, model_number)) = game
            .model_of_position
            .first()
            .and_then(|&model| Some((game.model_versions.get(model as usize)?, model as usize)))
        else {
            return Ok(Search::Unavailable("the record names no checkpoint".into()));
        };
        // They are listed as they came, and a position names the newest.
        if model_number > 0 {
            let reason = "another checkpoint came in during its first search".into();
            return Ok(Search::Unavailable(reason));
        }
        let named = game.model_providers.get(model_number).map_or("", String::as_str);
        let backend = match asked {
            Some(backend) => backend,
            None if named.is_empty() => Provider::Cpu,
            None => match parse_provider(named) {
                Ok(backend) => backend,
                Err(_) => {
                    return Ok(Search::Unavailable(format!(
                        "provider `{named}` is not known here"
                    )));
                }
            },
        };
        let networks = match self.networks.iter().position(|(of, _)| *of == backend) {
            Some(at) => &mut self.networks[at].1,
            None => {
                let runtime: &Path = &self.runtime;
                let opened = match Networks::open(&location, backend, runtime) {
                    Ok(opened) => opened,
                    Err(error) => return Ok(Search::Unavailable(format!("{error:#}"))),
                };
                self.networks.push((backend, opened));
                let last = self.networks.len() - 1;
                &mut self.networks[last].1
            }
        };
        let model = match networks.get(version).await {
            Ok(model) => model,
            Err(reason) => return Ok(Search::Unavailable(format!("checkpoint {version}: {reason}"))),
        };
        match registry::visit(&game.game, Following { game, model: &model })? {
            Ok(followed) => Ok(Search::Followed(followed)),
            Err(FollowError::Unplayable(error)) => Ok(Search::Unavailable(error.to_string())),
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
    model: &'a Model,
}

impl registry::Visitor for Following<'_> {
    type Output = Result<Followed, FollowError<String>>;

    fn visit<G: Game>(self) -> Self::Output {
        follow::<G, String>(self.game, |questions| evaluate(self.model, questions))
    }
}
