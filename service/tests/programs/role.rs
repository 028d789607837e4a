//! A minimal role. `run.seed` selects how it ends, for the tests: 1 (the default) runs until shutdown, 2 fails, 3 panics in
//! another thread, 4 reports a configuration error, 5 never stops, 6 takes all descriptors until a line arrives
//! on standard input.

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
        6 => {
            let mut files = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                files.push(file);
            }
            println!("running");
            let line = || std::io::stdin().read_line(&mut String::new());
            tokio::task::spawn_blocking(line).await??;
            drop(files);
        }
        _ => {}
    }
    println!("running");
    shutdown.cancelled().await;
    println!("kept");
    Ok(())
}
