//! The server as a process.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use checkpoints::{Draft, LATEST, MODEL, Repository};
use proto::v1::{DescribeModelRequest, evaluator_client::EvaluatorClient};
use service::role::Role;
use tokio::runtime::Runtime;

use super::{Arguments, is_gpu, machine::Subject, positions::Positions};

/// How long the server may take to load the model.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server.
pub struct Served {
    child: Child,
    address: String,
    /// Its metrics page: only where a GPU computes, since what the page costs would be measured too.
    page: Option<SocketAddr>,
}

impl Served {
    /// Publishes the model and starts a server for it, on the core that this thread runs on.
    pub fn start(
        arguments: &Arguments,
        provider: &str,
        folder: &Path,
        model: &[u8],
        positions: &Positions,
    ) -> anyhow::Result<Self> {
        let store = folder.join("checkpoints").display().to_string();
        publish(&store, model, positions)?;
        let address = free_address()?.to_string();
        let page = is_gpu(provider).then(free_address).transpose()?;
        let program = std::env::current_exe()?.with_file_name(Role::InferenceServer.binary());
        let layout = &positions.layout;
        let settings = [
            format!("checkpoints.store={store}"),
            format!("game.name={}", layout.game),
            format!("game.options={}", layout.options),
            format!("inference.address={address}"),
            format!("inference.provider={provider}"),
            format!("inference.max_batch={}", arguments.batch),
            format!("inference.max_queue={}", arguments.queue),
            // What is measured is evaluation: nothing may be remembered.
            "inference.cache_mib=0".into(),
        ];
        let mut command = Command::new(&program);
        let page_setting = page.map(|page| format!("inference.metrics={page}"));
        for setting in settings.into_iter().chain(page_setting) {
            command.arg("--set").arg(setting);
        }
        let child = command
            .arg("--supervised")
            .stdin(Stdio::piped())
            .env(
                "MINUET_LOG",
                std::env::var("MINUET_LOG").unwrap_or_else(|_| "warn".into()),
            )
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, address, page })
    }

    /// Waits until it answers; gives the provider it has chosen.
    pub fn wait(&mut self, runtime: &Runtime) -> anyhow::Result<String> {
        runtime.block_on(self.wait_until_ready())
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What is measured.
    pub fn subject(&self) -> Subject {
        Subject {
            pid: self.child.id(),
            page: self.page,
        }
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<String> {
        let mut client = EvaluatorClient::new(service::connect::channel(&self.address)?);
        let began = Instant::now();
        loop {
            match client.describe_model(DescribeModelRequest::default()).await {
                Ok(description) => return Ok(description.into_inner().provider),
                Err(status) if began.elapsed() > PATIENCE => {
                    anyhow::bail!("the server has no model after {PATIENCE:?}: {status}")
                }
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended with {status}; what it wrote stands above");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn publish(store: &str, model: &[u8], positions: &Positions) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let repository = Repository::open(store)?;
        let draft = Draft {
            game: positions.layout.game.clone(),
            layout: serde_json::to_value(&positions.layout)?,
            actions: positions.layout.actions,
            step: 1,
            ..Draft::default()
        };
        let version = repository
            .publish(draft, vec![(MODEL, model.to_vec().into())])
            .await?;
        repository.set_label(LATEST, &version).await?;
        Ok(())
    })
}

fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?)
}
