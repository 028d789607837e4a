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

/// An opponent that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Opponent {
    /// Id in requests.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// True if the opponent searches, so that it takes a number of visits.
    pub searches: bool,
    kind: Kind,
}

impl Opponent {
    fn new(id: &str, name: impl Into<String>, kind: Kind) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            searches: matches!(kind, Kind::Model(..) | Kind::Uct(_)),
            kind,
        }
    }

    fn model(id: &str, name: impl Into<String>, model: ModelName) -> Self {
        Self::new(id, name, Kind::Model(model, SearchSpec::default()))
    }

    /// Specification of the player, with `visits` for each decision if it searches.
    ///
    /// # Errors
    /// [`Failure::BadRequest`] if the number of visits is out of range.
    pub fn spec(&self, visits: u32) -> Result<Spec, Failure> {
        let search =
            || SearchSpec::with_visits(visits).map_err(|error| Failure::BadRequest(error.to_string()));
        let kind = match &self.kind {
            Kind::Model(name, _) => Kind::Model(name.clone(), search()?),
            Kind::Uct(_) => Kind::Uct(search()?),
            other => other.clone(),
        };
        Ok(Spec {
            name: self.name.clone(),
            written: self.id.clone(),
            kind,
        })
    }
}

/// Opponents for a game, the usual one first.
pub async fn opponents(tables: &Tables, game: &AnyGame) -> Vec<Opponent> {
    let mut found = Vec::new();
    let run = tables.run.as_ref();
    if let Some(run) = run.filter(|run| run.config.game.name == game.name) {
        found.extend(of_run(run).await);
    }
    for level in Level::ALL {
        if shipped::folder(game.name, level).is_ok() {
            let (id, name) = match level {
                Level::Strong => ("shipped", "Minuet, strong"),
                Level::Medium => ("shipped-medium", "Minuet, medium"),
                Level::Beginner => ("shipped-beginner", "Minuet, beginner"),
            };
            found.push(Opponent::model(id, name, ModelName::Shipped(game.name, level)));
        }
    }
    found.push(Opponent::new(
        "uct",
        "search without a network",
        Kind::Uct(SearchSpec::default()),
    ));
    if game.has_solver {
        found.push(Opponent::new("perfect", "perfect play", Kind::Perfect));
    }
    found.push(Opponent::new("random", "random moves", Kind::Random));
    found
}

/// Checkpoints of a run, newest first, and the network that its inference server serves while the run is at work.
async fn of_run(run: &Run) -> Vec<Opponent> {
    let kept = kept(run).await.unwrap_or_default();
    let newest_first = kept.iter().rev().take(MOST);
    let mut found: Vec<Opponent> = newest_first
        .map(|kept| Opponent::model(kept.version.as_str(), kept.name(), kept.model(run)))
        .collect();
    if let Some(addresses) = launcher::run::addresses::Addresses::of_running(&run.folder) {
        let model = ModelName::Server {
            address: format!("http://{}", addresses.inference),
            model: None,
        };
        found.push(Opponent::model(
            "server",
            "the newest, by the run's inference server",
            model,
        ));
    }
    found
}
