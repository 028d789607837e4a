//! The networks of all players, each opened once: [`Networks`].

use std::{path::PathBuf, sync::Arc};

use config::{Provider, SearchConfig, SecurityConfig};
use network::{
    Description, ModelFile, ModelName, Network, RemoteNetwork, cache::Cache, client::local::Opener,
};

use super::PlayerError;
use crate::evaluator::Source;

/// How networks are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkOptions {
    /// What runs networks in this process.
    pub provider: Provider,
    /// Threads that will ask at once: each gets a copy of every network in this process, so that none waits.
    pub copies: usize,
    /// Threads that compute one batch.
    pub threads: usize,
    /// Largest batch, in positions.
    pub batch: usize,
    /// Memory for what each network has said, in MiB; 0: nothing is remembered.
    pub cache_mib: usize,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            provider: Provider::Auto,
            copies: 1,
            threads: 1,
            batch: 64,
            cache_mib: 64,
        }
    }
}

/// Opens networks.
#[derive(Debug)]
pub struct Networks {
    options: NetworkOptions,
    /// Empty: found as every program finds it.
    runtime: PathBuf,
    /// `None`: that of the run which the environment names.
    security: Option<SecurityConfig>,
    opener: Option<Opener>,
    opened: Vec<(ModelName, Arc<OpenedNetwork>)>,
}

impl Networks {
    /// None yet.
    pub fn new(options: NetworkOptions) -> Self {
        Self {
            options,
            runtime: PathBuf::new(),
            security: None,
            opener: None,
            opened: Vec::new(),
        }
    }

    /// With the ONNX Runtime library and the `[security]` of a run.
    #[must_use]
    pub fn of_run(mut self, runtime: PathBuf, security: SecurityConfig) -> Self {
        self.runtime = runtime;
        self.security = Some(security);
        self
    }

    /// Forgets every network that was opened; players that hold one keep it. What was measured of the machine is kept.
    pub fn forget(&mut self) {
        self.opened.clear();
    }

    /// The network that `name` stands for; the same one for the same name, and for names that stand for the same version.
    ///
    /// # Errors
    /// [`PlayerError`]
    pub fn open(&mut self, name: &ModelName) -> Result<Arc<OpenedNetwork>, PlayerError> {
        if let Some((_, network)) = self.opened.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(network));
        }
        let network = match name {
            ModelName::Server { address, model } => {
                let model = model.as_deref().unwrap_or_default();
                let network = match &self.security {
                    Some(security) => RemoteNetwork::connect_with(address, model, security)?,
                    None => RemoteNetwork::connect(address, model)?,
                };
                Arc::new(OpenedNetwork {
                    cache: self.cache(),
                    copies: vec![Arc::new(network)],
                    digest: String::new(),
                    search: None,
                })
            }
            _ => self.open_file(ModelFile::find(name)?)?,
        };
        self.opened.push((name.clone(), Arc::clone(&network)));
        Ok(network)
    }

    fn open_file(&mut self, file: ModelFile) -> Result<Arc<OpenedNetwork>, PlayerError> {
        let digest = checkpoints::version::sha256_hex(&file.bytes);
        if let Some((_, network)) = self
            .opened
            .iter()
            .find(|(_, network)| network.digest == digest && network.search == file.search)
        {
            return Ok(Arc::clone(network));
        }
        let opener = match &self.opener {
            Some(opener) => opener.clone(),
            None => {
                let NetworkOptions {
                    provider,
                    threads,
                    batch,
                    ..
                } = self.options;
                let opener = Opener::new(&self.runtime, provider, threads, batch)?;
                self.opener.insert(opener).clone()
            }
        };
        let mut copies: Vec<Arc<dyn Network>> = Vec::new();
        for _ in 0..self.options.copies.max(1) {
            copies.push(Arc::new(opener.open(&file)?));
        }
        Ok(Arc::new(OpenedNetwork {
            cache: self.cache(),
            copies,
            digest,
            search: file.search,
        }))
    }

    fn cache(&self) -> Option<Arc<Cache>> {
        Cache::new(self.options.cache_mib << 20).map(Arc::new)
    }
}

/// A network that is open.
#[derive(Debug)]
pub struct OpenedNetwork {
    /// At least one.
    copies: Vec<Arc<dyn Network>>,
    cache: Option<Arc<Cache>>,
    /// Of its file; empty for one behind a server.
    digest: String,
    search: Option<SearchConfig>,
}

impl OpenedNetwork {
    /// What it says of itself.
    pub fn description(&self) -> &Description {
        self.copies[0].description()
    }

    /// The search settings of the run that it was found in.
    pub fn search(&self) -> Option<&SearchConfig> {
        self.search.as_ref()
    }

    /// The sha-256 of its file; empty for one behind a server.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Who answers the questions of one thread.
    pub fn source(&self, thread: usize) -> Source {
        Source::Network {
            network: Arc::clone(&self.copies[thread % self.copies.len()]),
            cache: self.cache.clone(),
        }
    }
}
