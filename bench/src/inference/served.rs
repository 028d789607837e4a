//! The inference server as a child process: [`Served`].

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use ::network::ModelFile;
use checkpoints::LATEST;
use config::Provider;
use proto::v1::{DescribeModelRequest, ModelDescription, evaluator_client::EvaluatorClient};
use service::role::Role;
use tokio::runtime::Runtime;

use crate::harness::{
    measure::Subject,
    model,
    role::{RoleProcess, free_addresses},
    runtime,
};

/// Name of the simulated device in place of a provider.
pub const SIMULATED: &str = "simulated";
/// Longest time to load the model.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server process with its model.
pub struct Served {
    process: RoleProcess,
    address: SocketAddr,
    /// Metrics page; only if a GPU computes, because the cost of the page would be measured too.
    page: Option<SocketAddr>,
    store: String,
    network: ModelFile,
}

impl Served {
    /// Publishes the network and starts a server for it, on the core that this thread runs on, with these largest numbers of positions
    /// in a batch and in the queue.
    pub fn start(
        (batch, queue): (u16, u32),
        provider: &str,
        folder: &Path,
        network: ModelFile,
    ) -> anyhow::Result<Self> {
        let store = folder.join("checkpoints").display().to_string();
        runtime()?.block_on(model::publish(&store, LATEST, &network))?;
        let mut free = free_addresses(2)?.into_iter();
        let address = free.next().unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
        let page = free.next().filter(|_| is_gpu(provider));
        let mut settings = vec![
            format!("checkpoints.store={store}"),
            format!("game.name={}", network.layout.game),
            format!("game.options={}", network.layout.options),
            format!("inference.address={address}"),
            format!(
                "inference.provider={}",
                if provider == SIMULATED { "auto" } else { provider }
            ),
            format!("inference.max_batch={batch}"),
            format!("inference.max_queue={queue}"),
            // Without a cache, because evaluations are measured.
            "inference.cache_mib=0".into(),
        ];
        settings.extend(page.map(|page| format!("inference.metrics={page}")));
        let process = match provider {
            SIMULATED => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("device");
                command.args(
                    settings
                        .into_iter()
                        .flat_map(|setting| ["--set".to_owned(), setting]),
                );
                RoleProcess::spawn(Role::InferenceServer, command, true)?
            }
            _ => RoleProcess::start_with(Role::InferenceServer, settings)?,
        };
        Ok(Self {
            process,
            address,
            page,
            store,
            network,
        })
    }

    /// Waits until the server answers; returns the provider that it has chosen.
    pub fn wait(&mut self, runtime: &Runtime) -> anyhow::Result<String> {
        Ok(self.wait_until(runtime, |_| true)?.provider)
    }

    /// Publishes the network as that of the next step, and waits until the server answers with it.
    pub fn swap(&mut self, runtime: &Runtime) -> anyhow::Result<()> {
        self.network.step += 1;
        let version = runtime.block_on(model::publish(&self.store, LATEST, &self.network))?;
        let version = version.to_string();
        self.wait_until(runtime, |model| model.version == version)?;
        Ok(())
    }

    fn wait_until(
        &mut self,
        runtime: &Runtime,
        is_ready: impl Fn(&ModelDescription) -> bool,
    ) -> anyhow::Result<ModelDescription> {
        let _inside = runtime.enter();
        let mut client = EvaluatorClient::new(service::connect::channel(&self.address.to_string())?);
        self.process.wait_until(TIMEOUT, || {
            let reply = runtime.block_on(client.describe_model(DescribeModelRequest::default()))?;
            let model = reply.into_inner();
            anyhow::ensure!(
                is_ready(&model),
                "the server still answers with {}",
                model.version
            );
            Ok(model)
        })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the process that is measured.
    pub fn subject(&self) -> Subject {
        Subject {
            pid: self.process.pid(),
            page: self.page,
        }
    }
}

/// True if a provider's name, in a configuration or a reply, is that of a GPU provider.
pub(super) fn is_gpu(provider: &str) -> bool {
    provider.starts_with(Provider::Cuda.name()) || provider.starts_with(Provider::Tensorrt.name())
}
