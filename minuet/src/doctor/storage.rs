//! The disk of the run's folder, and the store of checkpoints.

use std::{fs, io, io::Write as _, path::Path};

use checkpoints::Repository;
use config::RunConfig;
use indicatif::BinaryBytes;
use service::filesystem::Filesystem;

use super::Check;

/// Free space below which a run does not begin well, in bytes.
const LEAST: u64 = 256 << 20;

/// Checks the folder and the store. For a folder that does not exist, the place where it would be made is checked.
pub async fn checks(config: &RunConfig, folder: &Path, is_run: bool) -> Vec<Check> {
    let mut checks = vec![disk(config, folder)];
    let store = &config.checkpoints.store;
    if is_run && store.contains("://") && !store.starts_with("file://") {
        checks.push(remote(store).await);
    }
    checks
}

fn disk(config: &RunConfig, folder: &Path) -> Check {
    let there = match fs::canonicalize(folder) {
        Ok(there) => there,
        Err(error) => {
            let text = format!("{}: {error}", folder.display());
            return Check::fail("disk", text, "name a folder that exists and that you may read");
        }
    };
    let examine = || io::Result::Ok((Filesystem::of(&there)?, rustix::fs::statvfs(&there)?));
    let (system, space) = match examine() {
        Ok(examined) => examined,
        Err(error) => return Check::fail("disk", error.to_string(), "use another folder"),
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let (name, at) = (system.name, there.display());
    let text = format!("{} free on {name} at {at}", BinaryBytes(free));
    if let Err(error) = write_and_lock(&there) {
        let text = format!("{text}, but no file can be written there: {error}");
        return Check::fail("disk", text, "free the disk, or use a folder that you may write");
    }
    let wanted = config.replay.max_disk_mib << 20;
    if free < LEAST {
        let least = BinaryBytes(LEAST);
        let fix = format!("a run needs {least}; it keeps at most replay.max_disk_mib of games");
        Check::fail("disk", text, fix)
    } else if !system.durable {
        let fix = "this folder lies in memory: a power failure or a restart loses the run";
        Check::warn("disk", text, fix)
    } else {
        let size = BinaryBytes(wanted);
        let fix = format!("games may take {size} (replay.max_disk_mib): lower it, or use a larger disk");
        Check::warn_if(free < wanted, "disk", text, &fix)
    }
}

/// Writes, flushes and locks a file in the folder, as a run does, and removes it.
fn write_and_lock(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".doctor-").tempfile_in(folder)?;
    file.write_all(&[0; 4096])?;
    file.as_file().sync_all()?;
    file.as_file().try_lock().map_err(io::Error::from)
}

async fn remote(store: &str) -> Check {
    let probe = async { Repository::open(store)?.probe().await };
    match probe.await {
        Ok(()) => Check::ok("store", format!("{store} answers and has conditional writes")),
        Err(error) => Check::fail(
            "store",
            service::chain(&error).to_string(),
            "check the address, the credentials (AWS_*) and that the store has conditional writes (If-Match, If-None-Match)",
        ),
    }
}
