//! The store as a process.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use proto::v1::{StatsReply, StatsRequest, replay_store_client::ReplayStoreClient};
use service::role::Role;

use super::pool;

/// How long the store may take to open an empty folder.
const PATIENCE: Duration = Duration::from_secs(20);

/// The store; it ends with this.
pub struct Process {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl Process {
    /// Starts a store in `folder`, on the core that this thread runs on.
    pub fn start(folder: &Path, window: u64) -> anyhow::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let program = std::env::current_exe()?.with_file_name(Role::ReplayStore.binary());
        let mut command = Command::new(&program);
        for setting in [
            format!("game.name={}", pool::GAME),
            format!("game.options={}", pool::OPTIONS),
            format!("replay.address={address}"),
            format!("replay.folder={}", folder.join("replay").display()),
            format!("replay.window_positions={window}"),
            "replay.held_out=0".to_owned(),
        ] {
            command.arg("--set").arg(setting);
        }
        let log = std::env::var("MINUET_LOG").unwrap_or_else(|_| "warn".into());
        let child = command
            .arg("--supervised")
            .stdin(Stdio::piped())
            .env("MINUET_LOG", log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, address })
    }

    /// Waits until the store answers.
    pub async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while let Err(error) = self.stats().await {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the store ended with {status}; what it wrote stands above");
            }
            if began.elapsed() > PATIENCE {
                return Err(error.context(format!("the store does not answer after {PATIENCE:?}")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// The store in numbers.
    pub async fn stats(&self) -> anyhow::Result<StatsReply> {
        let mut client = ReplayStoreClient::new(service::connect::channel(&self.address)?);
        Ok(client.stats(StatsRequest::default()).await?.into_inner())
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory, in MiB.
    pub fn memory_mib(&self) -> anyhow::Result<f64> {
        let usage = service::process::usage(self.id()).context("the store is gone")?;
        Ok(usage.resident_bytes as f64 / f64::from(1 << 20))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its folder is removed next, so there is nothing to close in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
