//! A fake of every role for the tests of `minuet up`. It follows the roles' conventions (arguments, metrics page, health, stopping),
//! and the file `behaviour/<process>` in the run's folder changes its behaviour: `crash` ends at once, `crash-once` does so the
//! first time, `unusable` refuses its configuration, `stubborn` never stops. A fake that stops on request adds its name to the
//! file `order`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, io::Write, path::Path, process::ExitCode, time::Duration};

use config::{Override, RunConfig};
use service::{
    role::{self, Role},
    serve,
};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    role::main(played_role(), |config, shutdown| {
        Box::pin(run(played_role(), config, shutdown))
    })
}

/// Returns the role of the name under which this program was started.
fn played_role() -> Role {
    let binary = std::env::args().next().unwrap();
    let name = Path::new(&binary).file_name().unwrap().to_owned();
    let roles = [
        Role::ReplayStore,
        Role::InferenceServer,
        Role::Learner,
        Role::Actor,
    ];
    roles.into_iter().find(|role| role.binary() == name).unwrap()
}

async fn run(role: Role, config: RunConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    let folder = config.learner.folder.parent().unwrap().to_owned();
    let name = if role == Role::Actor {
        &config.actor.name
    } else {
        role.name()
    };
    let wish = folder.join("behaviour").join(name);
    let behaviour = fs::read_to_string(&wish).unwrap_or_default();
    match behaviour.as_str() {
        "crash" => anyhow::bail!("the {name} crashes"),
        "crash-once" => {
            fs::remove_file(&wish)?;
            anyhow::bail!("the {name} crashes once");
        }
        "unusable" => {
            Override::new("nothing", 0)?;
        }
        _ => {}
    }
    if role == Role::Actor {
        metrics::counter!("minuet_actor_visits_total").absolute(1_000);
    }
    let address = match role {
        Role::InferenceServer => Some(config.inference.address.clone()),
        Role::ReplayStore => Some(config.replay.listen_address().to_owned()),
        _ => None,
    };
    if let Some(address) = address {
        let listener = serve::listen(&address).await?;
        let (routes, health) = serve::standard_routes(&[], &[]).await?;
        health.set_serving(true).await;
        let policy = service::listener::ConnectionPolicy::plaintext()?;
        serve::serve_with(
            policy,
            routes,
            listener,
            health,
            shutdown.clone(),
            Duration::from_secs(1),
        )
        .await?;
    }
    shutdown.cancelled().await;
    if behaviour == "stubborn" {
        std::future::pending::<()>().await;
    }
    let mut order = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("order"))?;
    // One write, so that processes which stop at the same moment do not mix their lines.
    order.write_all(format!("{name}\n").as_bytes())?;
    Ok(())
}
