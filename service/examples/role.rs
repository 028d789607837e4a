//! A role in a few lines. `run.seed` says what it does, so that the tests can try every way to end:
//! 1 (the default) runs until it is asked to stop, 2 fails, 3 panics in a thread of its own, 4 refuses its
//! configuration, 5 never stops.

use std::process::ExitCode;

use config::{Override, RunConfig};
use service::role::{self, Role};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    role::main(Role::Actor, |config, shutdown| Box::pin(run(config, shutdown)))
}

async fn run(config: RunConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    match config.run.seed {
        2 => anyhow::bail!("the store is gone"),
        3 => {
            std::thread::spawn(|| {
                let nothing: [u32; 0] = [];
                let index = std::process::id() as usize;
                nothing[index]
            });
        }
        4 => {
            Override::new("game", "unknown")?;
        }
        5 => std::future::pending().await,
        _ => {}
    }
    println!("running");
    shutdown.cancelled().await;
    println!("kept");
    Ok(())
}
