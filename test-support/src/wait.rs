//! Waiting for events that must happen: [`in_time`], [`until`].

use std::time::Duration;

/// Longest wait for an event that must happen, on a slow machine too.
pub const FOR_EVER: Duration = Duration::from_secs(150);

/// Waits for a future.
///
/// # Panics
/// If it is not ready after [`FOR_EVER`].
pub async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(FOR_EVER, what)
        .await
        .expect("it does not come")
}

/// Waits until `holds` returns true. It is called every few milliseconds, and may panic if that cannot happen any more.
///
/// # Panics
/// If it does not return true within [`FOR_EVER`].
pub async fn until(mut holds: impl FnMut() -> bool) {
    in_time(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
