//! The state of a run, and its alarms while it is at work.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use checkpoints::{LATEST, Manifest, Repository};
use config::RunConfig;
use launcher::{
    alarms::{self, Alarm, LearningReader, Look, NewestCheckpoint},
    moment::{age, rfc3339},
    run::addresses::Addresses,
};

use super::{Check, files};

/// Tolerated difference between the clock of the machine that published a checkpoint and this one's.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Looks at the run's checkpoints and, if it is at work, at its processes.
pub async fn state(run: &Path, config: &RunConfig) -> (Vec<Check>, Vec<Alarm>) {
    let newest = newest_checkpoint(config).await;
    let mut checks = vec![checkpoint(&newest)];
    checks.extend(files::checks(run, config).await);
    let Some(addresses) = Addresses::of_running(run) else {
        checks.push(Check::ok("run", "not at work; `minuet up` continues it"));
        return (checks, Vec::new());
    };
    let newest = newest.ok().flatten().map(|manifest| NewestCheckpoint {
        step: manifest.draft.step,
        age: age(manifest.created_at_ms),
    });
    let learned = LearningReader::new(run).read(config, &addresses).await;
    let look = Look::at(config, &addresses, newest, learned).await;
    let (answer, all) = look.answers();
    let mut text = format!("at work: {answer} of {all} processes answer");
    if let Some(age) = look.newest_game_age {
        text.push_str(&format!(", the last game was stored {} s ago", age.as_secs()));
    }
    checks.push(Check::ok("run", text));
    (checks, alarms::raised(&look, None))
}

async fn newest_checkpoint(config: &RunConfig) -> Result<Option<Manifest>, checkpoints::Error> {
    let store = &config.checkpoints.store;
    // Opening a folder would create it.
    if !store.contains("://") && !Path::new(store).exists() {
        return Ok(None);
    }
    let repository = Repository::open(store)?;
    match repository.resolve(LATEST).await {
        Ok(manifest) => Ok(Some(manifest)),
        Err(checkpoints::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn checkpoint(newest: &Result<Option<Manifest>, checkpoints::Error>) -> Check {
    match newest {
        Ok(None) => Check::ok("checkpoint", "none yet"),
        Ok(Some(manifest)) => {
            let (version, step) = (&manifest.version, manifest.draft.step);
            let made = SystemTime::UNIX_EPOCH + Duration::from_millis(manifest.created_at_ms);
            if made > SystemTime::now() + CLOCK_TOLERANCE {
                let made = rfc3339(manifest.created_at_ms);
                return Check::warn(
                    "clock",
                    format!("checkpoint {version} was published in the future, at {made}"),
                    "set the clocks of the machines that share the run",
                );
            }
            let minutes = age(manifest.created_at_ms).as_secs() / 60;
            Check::ok(
                "checkpoint",
                format!("{version}, step {step}, {minutes} minutes old"),
            )
        }
        Err(error) => Check::fail(
            "checkpoint",
            service::chain(error).to_string(),
            "check checkpoints.store; older versions in it can be served by name",
        ),
    }
}
