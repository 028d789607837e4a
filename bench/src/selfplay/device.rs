//! A simulated device: answers each batch after a time that follows from its number of rows, without using a core meanwhile. It
//! replaces a GPU, to see whether the rest of the system keeps such a device busy.
//!
//! Only this benchmark can name it. The server around it is the real one, in a process of its own ([`run`]).

use std::{
    num::NonZero,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ::inference_server::server;
use ::network::{
    batch::{Batch, Outputs, RunError, Runner},
    loader::Loader,
    provider::ProviderSettings,
};
use anyhow::ensure;
use config::RunConfig;
use games::RowLayout;
use service::role::{self, Role};
use tokio_util::sync::CancellationToken;

/// Time for a batch of any size, in microseconds.
const BATCH_MICROS: f64 = 300.0;
/// Time for each row of a batch, padding included, in microseconds.
const ROW_MICROS: f64 = 2.0;
/// Largest distance of a simulated logit from 0. The priors of a position then differ by a factor of 20 at most.
const LOGIT: f32 = 1.5;
/// Largest distance of a simulated value from 0, so that no move looks decided.
const VALUE: f32 = 0.2;

/// Returns the seconds that the device needs for `batches` batches with `rows` rows together.
pub fn seconds(batches: f64, rows: f64) -> f64 {
    (batches * BATCH_MICROS + rows * ROW_MICROS) * 1e-6
}

/// Does the work of the child process: runs the inference server with a simulated device until its standard input is closed.
pub fn run(arguments: role::Arguments) -> anyhow::Result<()> {
    let ended = role::main_with(Role::InferenceServer, arguments, |config, shutdown| {
        Box::pin(serve(config, shutdown))
    });
    ensure!(
        ended == ExitCode::SUCCESS,
        "the inference server ended; its log shows why"
    );
    Ok(())
}

async fn serve(config: RunConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    let listener = service::serve::listen(config.inference.listen_address()).await?;
    let loader = Loader::new(
        ProviderSettings::from(&config.inference),
        config.inference.largest_batch(),
        config::Provider::Auto,
    )?;
    let loader = loader.simulated(simulate);
    server::serve_with(listener, config, shutdown, Arc::new(loader)).await
}

/// Makes the device for a model of this layout.
pub fn simulate(layout: &RowLayout) -> Box<dyn Runner> {
    Box::new(Simulated(layout.actions as usize))
}

/// The device: one batch at a time. Number of logits of a row whose legal actions are not known.
struct Simulated(usize);

impl Runner for Simulated {
    fn run(&mut self, mut batch: Batch) -> Result<Outputs, RunError> {
        let began = Instant::now();
        let legal = batch.take_legal();
        let hashes: Vec<u64> = batch.each().map(hash).collect();
        let logits = match &legal {
            Some(legal) => {
                let positions = hashes.iter().zip(legal.actions.chunks(legal.width.max(1)));
                let logit = |hash: u64, action: i32| LOGIT * spread(mixed(hash ^ (action as u64 + 1)));
                let logits =
                    positions.flat_map(|(&hash, own)| own.iter().map(move |&action| logit(hash, action)));
                logits.collect()
            }
            None => vec![0.0; self.0 * hashes.len()],
        };
        let values = hashes.iter().map(|&hash| VALUE * spread(hash)).collect();
        let needed = Duration::from_secs_f64(seconds(1.0, batch.size() as f64));
        // A wait may end 50 µs late by default. It does end late, by the time of a wake-up, if this cannot be set.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZero::<u64>::MIN));
        thread::sleep(needed.saturating_sub(began.elapsed()));
        Ok(Outputs::new(logits, values).with_width(legal.map(|legal| legal.width)))
    }

    /// As on a GPU, which hands over the logits of legal actions only.
    fn picks_legal(&self) -> bool {
        true
    }
}

/// Hash of a row. Answers depend on it and the action, so that trees grow as with a network that prefers some actions.
fn hash(row: &[i32]) -> u64 {
    row.iter()
        .fold(0x9e37_79b9_7f4a_7c15, |hash, &number| mixed(hash ^ number as u64))
}

/// Mixes the bits of a number: one odd product and one shift.
fn mixed(number: u64) -> u64 {
    let product = number.wrapping_mul(0xd6e8_feb8_6659_fd93);
    product ^ (product >> 32)
}

/// Returns a number from -1 to 1 that depends on the upper bits of a hash.
fn spread(hash: u64) -> f32 {
    (mixed(hash) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::harness::measure::thread_seconds;

    #[test]
    fn batches_and_rows_have_their_price() {
        // Two batches of 64 rows: 2 · 300 + 128 · 2.
        assert!((seconds(2.0, 128.0) - 856e-6).abs() < 1e-12);
    }

    #[test]
    fn a_batch_takes_its_time_and_no_core() {
        let used = || thread_seconds(Path::new("/proc/thread-self")).unwrap();
        let (began, before) = (Instant::now(), used());
        for _ in 0..100 {
            Simulated(3).run([[7, 7]; 20].into_iter().collect()).unwrap();
        }
        assert!(began.elapsed() >= Duration::from_micros(100 * 340));
        assert!(used() - before < 0.02);
    }

    #[test]
    fn answers_follow_the_row_and_the_action() {
        let batch: Batch = [[1, 2], [3, 4], [1, 2]].into_iter().collect();
        let answers = Simulated(5)
            .run(batch.with_legal(vec![4, 0, 2, 2, 4, 0], 2))
            .unwrap();
        assert_eq!(answers.values()[0], answers.values()[2], "equal rows");
        assert_ne!(answers.values()[0], answers.values()[1]);
        let (picked, width) = answers.legal_logits().unwrap();
        assert_eq!(width, 2);
        assert_eq!(picked[0..2], picked[4..6], "equal rows and actions");
        assert_eq!(picked[2], picked[3], "equal actions");
        assert_ne!(picked[0], picked[1]);
        assert!(picked.iter().all(|logit| logit.abs() <= LOGIT));
        assert!(answers.values().iter().all(|value| value.abs() <= VALUE));
    }
}
