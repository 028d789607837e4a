//! [`wait`]: commands that read the stored games of a stopped run, for example a long export, and end before the run begins.

use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

use service::process;

use crate::event::Event;

/// File in the store's folder that readers and the replay store lock.
const LOCK: &str = "lock";
const POLL: Duration = Duration::from_millis(200);
/// Time after which the users of the store are named. A page of the studio gives the store up before.
const NAMED: Duration = Duration::from_secs(2);

/// Waits until no other process uses the store in `folder`. Passes an event that names those processes to `show`, and another one
/// whenever they change.
pub async fn wait(folder: &Path, mut show: impl FnMut(Event)) {
    let path = folder.join(LOCK);
    let is_used =
        || File::open(&path).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    let mut named = Vec::new();
    let mut waited = Duration::ZERO;
    while is_used() {
        if waited >= NAMED {
            let users = process::users(&path);
            if users != named || waited == NAMED {
                let text = format!(
                    "waiting for {}, which uses the stored games; the run begins when it has ended",
                    if users.is_empty() {
                        "a process".into()
                    } else {
                        users.join(", ")
                    }
                );
                show(Event::Warning { text });
                named = users;
            }
        }
        tokio::time::sleep(POLL).await;
        waited += POLL;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_reader_of_the_store_is_named_and_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        wait(folder.path(), |event| panic!("{event:?}")).await;
        let lock = File::create(folder.path().join(LOCK)).unwrap();
        lock.try_lock_shared().unwrap();
        let mut reader = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::from(lock))
            .spawn()
            .unwrap();
        let pid = reader.id();
        let mut events = Vec::new();
        wait(folder.path(), |event| {
            events.push(event);
            reader.kill().unwrap();
            reader.wait().unwrap();
        })
        .await;
        let [Event::Warning { text }] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert!(
            text.starts_with(&format!("waiting for process {pid} (sleep 1000)")),
            "{text}"
        );
    }
}
