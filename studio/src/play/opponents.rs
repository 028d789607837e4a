//! Opponents that a page offers for a game: checkpoints of the run, shipped networks, and players without a network.
//!
//! A page names an opponent by its id, never by a path, so that it cannot make the studio read a file or start a program.

use arena::{
    Spec,
    players::spec::{Kind, SearchSpec},
};
use games::erased::AnyGame;
use network::{
    ModelName,
    shipped::{self, Level},
};

use super::tables::Tables;
use crate::{
    failure::Failure,
    run::{Run, kept},
};

/// Most checkpoints that are listed; the newest ones.
const MOST: usize = 200;

/// An opponent that a request calls `id`, and a person `name`.
fn opponent(id: &str, name: impl Into<String>, kind: Kind) -> Spec {
    Spec {
        name: name.into(),
        written: id.into(),
        kind,
    }
}

fn model(id: &str, name: impl Into<String>, model: ModelName) -> Spec {
    opponent(id, name, Kind::Model(model, SearchSpec::default()))
}

/// True if a player searches, so that it takes a number of visits.
pub fn searches(player: &Spec) -> bool {
    matches!(player.kind, Kind::Model(..) | Kind::Uct(_))
}

/// The player with `visits` for each decision, if it searches.
///
/// # Errors
/// [`Failure::BadRequest`] if the number of visits is out of range.
pub fn with_visits(player: &Spec, visits: u32) -> Result<Spec, Failure> {
    let search = || SearchSpec::with_visits(visits).map_err(|error| Failure::BadRequest(error.to_string()));
    let kind = match &player.kind {
        Kind::Model(name, _) => Kind::Model(name.clone(), search()?),
        Kind::Uct(_) => Kind::Uct(search()?),
        other => other.clone(),
    };
    Ok(Spec {
        kind,
        ..player.clone()
    })
}

/// Words for people about an opponent: whom it suits, or how it plays. Empty for checkpoints of a run.
pub fn words(opponent: &Spec) -> &'static str {
    match opponent.written.as_str() {
        "shipped" => ": for those who play well",
        "shipped-medium" => ": for those who play now and then",
        "shipped-beginner" => ": for those who have just learned the rules",
        "uct" => ": counts ahead, has learned nothing",
        "perfect" => ": cannot be beaten",
        "random" => ": loses to everybody",
        _ => "",
    }
}

/// Opponents for a game, the usual one first. The text of each is its id in requests.
pub async fn opponents(tables: &Tables, game: &AnyGame) -> Vec<Spec> {
    let mut found = Vec::new();
    let run = tables.run.as_ref();
    let is_of_game = |run: &&Run| run.game().is_ok_and(|own| own.title() == game.title());
    if let Some(run) = run.filter(is_of_game) {
        found.extend(of_run(run).await);
    }
    for level in Level::ALL {
        if shipped::for_board(game, level).is_some() {
            let (id, name) = match level {
                Level::Strong => ("shipped", "Minuet, strong"),
                Level::Medium => ("shipped-medium", "Minuet, medium"),
                Level::Beginner => ("shipped-beginner", "Minuet, beginner"),
            };
            found.push(model(id, name, ModelName::Shipped(game.name.into(), level)));
        }
    }
    found.push(opponent(
        "uct",
        "search without a network",
        Kind::Uct(SearchSpec::default()),
    ));
    if game.has_solver {
        found.push(opponent("perfect", "perfect play", Kind::Perfect));
    }
    found.push(opponent("random", "random moves", Kind::Random));
    found
}

/// Checkpoints of a run, newest first, and the network that its inference server serves while the run is at work.
async fn of_run(run: &Run) -> Vec<Spec> {
    let kept = kept(run).await.unwrap_or_default();
    let newest_first = kept.iter().rev().take(MOST);
    let mut found: Vec<Spec> = newest_first
        .map(|kept| model(kept.version.as_str(), kept.name(), kept.model(run)))
        .collect();
    if let Some(addresses) = launcher::run::addresses::Addresses::of_running(&run.folder) {
        let served = ModelName::Server {
            address: format!("http://{}", addresses.inference),
            model: None,
        };
        found.push(model(
            "server",
            "the newest, by the run's inference server",
            served,
        ));
    }
    found
}
