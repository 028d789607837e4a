//! The networks of all players, each opened once: [`Networks`].

use std::{
    iter,
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use config::{InferenceConfig, Provider, SecurityConfig};
use network::batched::EvaluationSource;
use network::{
    Description, ModelFile, ModelName, Network, RemoteNetwork,
    cache::Cache,
    loader::{self, LoadError, Loader},
    session::Contract,
    trial::{self, Trial},
};

/// Settings for opening networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkOptions {
    /// Execution provider for networks in this process.
    pub provider: Provider,
    /// Most copies of each network in this process: one for each thread that evaluates, so that no thread waits. The first is loaded at
    /// once, each other one when its thread begins.
    pub copies: usize,
    /// Number of threads that compute one batch.
    pub threads: usize,
    /// Number of positions in the largest batch.
    pub batch: usize,
    /// Size of the evaluation cache of each network in MiB; 0: no cache.
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

/// Opens networks, each once.
#[derive(Debug)]
pub struct Networks {
    options: NetworkOptions,
    /// `None`: the `[security]` of the run that the environment names.
    security: Option<SecurityConfig>,
    /// True if networks in stores and folders are those of the user's own runs.
    trusts_stores: bool,
    loader: Option<Arc<Loader>>,
    opened: Vec<(ModelName, Arc<OpenedNetwork>)>,
}

impl Networks {
    /// Returns an empty set of networks.
    pub fn new(options: NetworkOptions) -> Self {
        Self {
            options,
            security: None,
            trusts_stores: false,
            loader: None,
            opened: Vec::new(),
        }
    }

    /// Sets the `[security]` of a run, whose own networks are opened without a trial.
    #[must_use]
    pub fn of_run(mut self, security: SecurityConfig) -> Self {
        self.security = Some(security);
        self.trusting_stores()
    }

    /// Opens networks in stores and folders without a trial, because the user's own runs made them.
    #[must_use]
    pub fn trusting_stores(mut self) -> Self {
        self.trusts_stores = true;
        self
    }

    /// Closes networks that no player holds, the one that was opened first before the others, until at most `most` are open. The measured choice
    /// of the provider stays.
    pub fn close_unused(&mut self, most: usize) {
        let mut excess = self.opened.len().saturating_sub(most);
        self.opened.retain(|(_, network)| {
            let is_closed = excess > 0 && Arc::strong_count(network) == 1;
            excess -= usize::from(is_closed);
            !is_closed
        });
    }

    /// Opens the network called `name`. Equal names, and names for the same file, give the same network. A file that another program may
    /// have made is first tried out in a process of its own, with limits of memory and time.
    ///
    /// # Errors
    /// The network cannot be found or loaded, does not pass its trial, or its server cannot be used.
    pub fn open(&mut self, name: &ModelName) -> anyhow::Result<Arc<OpenedNetwork>> {
        if let Some((_, network)) = self.opened.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(network));
        }
        let network = match name {
            ModelName::Server { address, model } => {
                let model = model.as_deref().unwrap_or_default();
                let network: Arc<dyn Network> = Arc::new(match &self.security {
                    Some(security) => RemoteNetwork::connect_with(address, model, security)?,
                    None => RemoteNetwork::connect(address, model)?,
                });
                Arc::new(OpenedNetwork {
                    cache: self.cache(),
                    copies: vec![OnceLock::from(Arc::clone(&network))],
                    first: network,
                    file: None,
                    digest: String::new(),
                    search: None,
                })
            }
            _ => self.open_file(name)?,
        };
        self.opened.push((name.clone(), Arc::clone(&network)));
        Ok(network)
    }

    fn open_file(&mut self, name: &ModelName) -> anyhow::Result<Arc<OpenedNetwork>> {
        let file = ModelFile::find(name)?;
        let digest = checkpoints::version::sha256_hex(&file.bytes);
        if let Some((_, network)) = self
            .opened
            .iter()
            .find(|(_, network)| network.digest == digest && network.search == file.search)
        {
            return Ok(Arc::clone(network));
        }
        let is_trusted = match name {
            ModelName::Shipped(..) => true,
            ModelName::File(_) => false,
            _ => self.trusts_stores,
        };
        if !is_trusted {
            try_out(&file).with_context(|| format!("{name} is not loaded"))?;
        }
        let loader = match &self.loader {
            Some(loader) => loader.clone(),
            None => {
                let NetworkOptions {
                    provider,
                    threads,
                    batch,
                    ..
                } = self.options;
                let loader = Loader::new(threads.max(1), batch.max(1), provider)?
                    .keeping_choices(loader::cache_folder());
                self.loader.insert(Arc::new(loader)).clone()
            }
        };
        let first: Arc<dyn Network> = Arc::new(loader.open(&file)?);
        let others = (1..self.options.copies).map(|_| OnceLock::new());
        Ok(Arc::new(OpenedNetwork {
            cache: self.cache(),
            copies: iter::once(OnceLock::from(Arc::clone(&first)))
                .chain(others)
                .collect(),
            first,
            digest,
            search: file.search.clone(),
            file: Some((loader, file)),
        }))
    }

    fn cache(&self) -> Option<Arc<Cache>> {
        Cache::new(self.options.cache_mib << 20).map(Arc::new)
    }
}

/// Tries a network out in a process of its own.
fn try_out(file: &ModelFile) -> anyhow::Result<()> {
    let trial = Trial {
        layout: file.layout.clone(),
        contract: Contract::default(),
        memory: InferenceConfig::default().memory_mib << 20,
        memory_setting: "",
        time: trial::TIME,
    };
    let folder = loader::cache_folder();
    trial
        .run_once(&file.bytes, folder.as_deref())
        .map_err(anyhow::Error::msg)
}

/// An open network.
#[derive(Debug)]
pub struct OpenedNetwork {
    first: Arc<dyn Network>,
    /// Copies of the network, the first at the beginning; a copy is empty until a thread needs it.
    copies: Vec<OnceLock<Arc<dyn Network>>>,
    /// Loader and file of the copies; `None` behind a server.
    file: Option<(Arc<Loader>, ModelFile)>,
    cache: Option<Arc<Cache>>,
    /// SHA-256 of the file; empty for a network behind a server.
    digest: String,
    search: Option<search::Settings>,
}

impl OpenedNetwork {
    /// The network itself, without its cache.
    pub fn network(&self) -> &dyn Network {
        &*self.first
    }

    /// Description of the network.
    pub fn description(&self) -> &Description {
        self.network().description()
    }

    /// Search settings of the run that the network belongs to.
    pub fn search(&self) -> Option<&search::Settings> {
        self.search.as_ref()
    }

    /// SHA-256 of the file; empty for a network behind a server.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Forgets the evaluations in the cache.
    pub fn clear_cache(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// Returns the source of evaluations for one thread. Loads the thread's copy of the network if it is the first to need it.
    ///
    /// # Errors
    /// The copy cannot be loaded, e.g. for lack of memory.
    pub fn source(&self, thread: usize) -> Result<EvaluationSource, LoadError> {
        let copy = &self.copies[thread % self.copies.len()];
        let network = match (copy.get(), &self.file) {
            (None, Some((loader, file))) => {
                let loaded: Arc<dyn Network> = Arc::new(loader.open(file)?);
                copy.get_or_init(|| loaded)
            }
            (known, _) => known.unwrap_or(&self.first),
        };
        Ok(EvaluationSource::Network {
            network: Arc::clone(network),
            cache: self.cache.clone(),
        })
    }
}
