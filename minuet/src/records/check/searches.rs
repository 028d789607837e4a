//! [`SearchChecker`]: repeats the searches of games with the networks that they were played with.

use std::{collections::HashMap, sync::Arc};

use actor::check::{
    Problem,
    search::{Followed, follow, is_without_evaluations},
};
use anyhow::{Context as _, ensure};
use arena::players::{NetworkOptions, Networks, OpenedNetwork};
use config::Provider;
use games::{Game, registry};
use network::{ModelName, file::encoding_of};
use proto::v1;

use super::Outcome;

/// Repeats searches with networks that it keeps loaded.
pub struct SearchChecker {
    /// Model repository; `None` if no one is known.
    location: Option<String>,
    /// Provider to use instead of that of each game.
    provider: Option<Provider>,
    /// Networks of each provider.
    networks: HashMap<Provider, Networks>,
    /// Reasons why networks cannot be loaded, by provider and version, for the next games.
    failed: HashMap<(Provider, String), String>,
}

impl SearchChecker {
    /// Prepares to load networks from the repository at `location`. Without `provider`, each game is evaluated by the provider that
    /// its record names.
    pub fn new(location: Option<String>, provider: Option<Provider>) -> Self {
        Self {
            location,
            provider,
            networks: HashMap::new(),
            failed: HashMap::new(),
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
    fn networks_of(&mut self, game: &v1::Game) -> Result<Vec<Option<Arc<OpenedNetwork>>>, String> {
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
    ) -> Result<Arc<OpenedNetwork>, String> {
        let key = (provider, version.to_owned());
        if let Some(reason) = self.failed.get(&key) {
            return Err(reason.clone());
        }
        let options = NetworkOptions {
            provider,
            batch: BATCH,
            cache_mib: 0,
            ..NetworkOptions::default()
        };
        let networks = self.networks.entry(provider);
        let networks = networks.or_insert_with(|| Networks::new(options).trusting_stores());
        networks.close_unused(MOST_LOADED);
        let opened = networks.open(&ModelName::Store {
            url: location.into(),
            version: Some(version.into()),
        });
        opened.map_err(|error| {
            let reason = format!("{error:#}");
            self.failed.insert(key, reason.clone());
            reason
        })
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
    networks: Vec<Option<Arc<OpenedNetwork>>>,
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
            network.network().evaluate(batch, predictions)?;
            // As on the wire, so that the priors equal those of the game.
            predictions.round_priors();
            Ok(())
        })
    }
}

/// Largest number of positions of a batch. Searches request a few leaves at a time.
const BATCH: usize = 16;

/// Largest number of loaded networks of a provider.
const MOST_LOADED: usize = 32;
