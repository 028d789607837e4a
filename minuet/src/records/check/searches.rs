//! [`SearchChecker`]: repeats the searches of games with the networks that they were played with.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use actor::check::{
    Problem,
    search::{Followed, follow, is_without_evaluations},
};
use anyhow::{Context as _, ensure};
use config::Provider;
use games::{Game, registry};
use network::{LocalNetwork, ModelFile, ModelName, Network as _, file::encoding_of, loader::Loader};
use proto::v1;

use super::Outcome;

/// Repeats searches with networks that it keeps loaded.
pub struct SearchChecker {
    /// Model repository; `None` if no one is known.
    location: Option<String>,
    /// Folder of ONNX Runtime.
    runtime: PathBuf,
    /// Provider to use instead of that of each game.
    provider: Option<Provider>,
    /// Networks by provider and version, or the reason why one cannot be loaded, for the next games.
    loaded: HashMap<(Provider, String), Result<Arc<LocalNetwork>, String>>,
    /// One for each provider: making one tries the provider out.
    loaders: HashMap<Provider, Loader>,
}

impl SearchChecker {
    /// Prepares to load networks from the repository at `location`. Without `provider`, each game is evaluated by the provider that
    /// its record names.
    pub fn new(location: Option<String>, runtime: PathBuf, provider: Option<Provider>) -> Self {
        Self {
            location,
            runtime,
            provider,
            loaded: HashMap::new(),
            loaders: HashMap::new(),
        }
    }

    /// Repeats the searches of a game whose record agrees with the rules.
    pub fn check(&mut self, game: &v1::Game) -> anyhow::Result<Outcome> {
        if !game.provenance.is_empty() {
            let reason = format!("the game was not played by a search ({})", game.provenance);
            return Ok(Outcome::Replayed(reason));
        }
        let networks = match self.networks_of(game) {
            Ok(networks) => networks,
            Err(reason) => return Ok(Outcome::NotTried(reason)),
        };
        let following = Following { game, networks };
        let followed = match registry::visit(&game.game, following)? {
            Ok(followed) => followed,
            Err(error) if error.is::<Problem>() => return Ok(Outcome::NotTried(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(match followed.difference {
            Some(difference) => Outcome::Differs(vec![difference]),
            None => Outcome::Reproduced(followed),
        })
    }

    /// Loads the network of each of the game's `model_versions` that made evaluations.
    fn networks_of(&mut self, game: &v1::Game) -> Result<Vec<Option<Arc<LocalNetwork>>>, String> {
        if is_without_evaluations(game) {
            return Ok(Vec::new());
        }
        let location = self
            .location
            .clone()
            .ok_or("no model repository is known; name one with --checkpoints")?;
        let used = match game.evaluation_models.as_slice() {
            // Versions are listed in order of arrival, and a position names the newest one.
            [] => match game.model_of_position.first() {
                Some(0) => &game.model_of_position[..1],
                Some(_) => return Err("another checkpoint arrived during the first search".into()),
                None => return Err("the record does not name its checkpoint".into()),
            },
            used => used,
        };
        let mut networks = vec![None; game.model_versions.len()];
        for &model in used {
            let model = model as usize;
            let (Some(version), Some(network)) = (game.model_versions.get(model), networks.get_mut(model))
            else {
                return Err(format!("the record has no model {model}"));
            };
            if network.is_none() {
                let provider = self.provider_of(game, model)?;
                let loaded = self.load(&location, provider, version);
                *network = Some(loaded.map_err(|reason| format!("checkpoint {version}: {reason}"))?);
            }
        }
        Ok(networks)
    }

    fn provider_of(&self, game: &v1::Game, model: usize) -> Result<Provider, String> {
        let named = game.model_providers.get(model).map_or("", String::as_str);
        match self.provider {
            Some(provider) => Ok(provider),
            None if named.is_empty() => Ok(Provider::Cpu),
            None => parse_provider(named).map_err(|_| format!("provider `{named}` is unknown to this build")),
        }
    }

    fn load(
        &mut self,
        location: &str,
        provider: Provider,
        version: &str,
    ) -> Result<Arc<LocalNetwork>, String> {
        let key = (provider, version.to_owned());
        if let Some(known) = self.loaded.get(&key) {
            return known.clone();
        }
        if self.loaded.len() >= MOST_LOADED {
            self.loaded.clear();
        }
        let loader = match self.loaders.entry(provider) {
            Entry::Occupied(made) => Ok(made.into_mut()),
            Entry::Vacant(place) => {
                Loader::new(&self.runtime, 1, BATCH, provider).map(|made| place.insert(made))
            }
        };
        let load = || {
            let file = ModelFile::find(&ModelName::Store {
                url: location.into(),
                version: Some(version.into()),
            })?;
            anyhow::Ok(Arc::new(loader?.open(&file)?))
        };
        let network = load().map_err(|error| format!("{error:#}"));
        self.loaded.insert(key, network.clone());
        network
    }
}

/// Returns the provider with this name.
pub fn parse_provider(name: &str) -> anyhow::Result<Provider> {
    let choice: Option<Provider> = name.parse().ok();
    let named = choice.filter(|&choice| choice != Provider::Auto);
    named.ok_or_else(|| {
        let known: Vec<&str> = Provider::each().map(Provider::name).collect();
        anyhow::anyhow!(
            "--provider {name}: unknown provider; the providers are {}",
            known.join(", ")
        )
    })
}

struct Following<'a> {
    game: &'a v1::Game,
    /// Networks by the index of their version.
    networks: Vec<Option<Arc<LocalNetwork>>>,
}

impl registry::Visitor for Following<'_> {
    type Output = anyhow::Result<Followed>;

    fn visit<G: Game>(self) -> Self::Output {
        for network in self.networks.iter().flatten() {
            let description = network.description();
            let (version, layout) = (&description.version, &description.layout);
            encoding_of::<G>(layout, version)?;
            ensure!(
                layout.options == self.game.options,
                "{version} takes rows with options {}, the game has options {}",
                layout.options,
                self.game.options
            );
        }
        follow::<G>(self.game, |model, batch, predictions| {
            let network = self.networks.get(model).and_then(Option::as_ref);
            let network = network.with_context(|| format!("model {model} of the record is not loaded"))?;
            network.evaluate(batch, predictions)?;
            // As on the wire, so that the priors equal those of the game.
            predictions.round_priors();
            Ok(())
        })
    }
}

/// Largest number of positions of a batch. Searches request a few leaves at a time.
const BATCH: usize = 16;

/// Largest number of loaded networks.
const MOST_LOADED: usize = 32;
