//! A simulated device: answers each batch after a time that follows from its number of rows, without using a core meanwhile. It
//! replaces a GPU, to see whether the rest of the system keeps such a device busy.
//!
//! Only this benchmark can name it. The server around it is the real one, in a process of its own ([`run`]).

use std::{
    fmt,
    num::NonZero,
    path::Path,
    process::ExitCode,
    str::FromStr,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use ::inference_server::server;
use ::network::{
    batch::{Batch, Legal, Outputs, RunError, Runner},
    loader::Loader,
    provider::ProviderSettings,
};
use anyhow::ensure;
use config::RunConfig;
use service::role::{self, Role};
use tokio_util::sync::CancellationToken;

/// Pace of this process's device.
static PACE: OnceLock<Pace> = OnceLock::new();
/// Largest distance of a simulated logit from 0. The priors of a position then differ by a factor of 20 at most.
const LOGIT: f32 = 1.5;
/// Largest distance of a simulated value from 0, so that no move looks decided.
const VALUE: f32 = 0.2;

/// Time that a device takes for a batch: one part for the batch, one for each of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Microseconds for a batch of any size.
    fixed: f64,
    /// Microseconds for each row, padding included.
    row: f64,
}

/// Error: a text is not the pace of a device.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not FIXED+ROW, two numbers of microseconds from 0 to 1000000, e.g. 300+2")]
pub struct NoPace(String);

impl FromStr for Pace {
    type Err = NoPace;

    fn from_str(text: &str) -> Result<Self, NoPace> {
        let number = |part: &str| {
            let number = part.trim().parse::<f64>().ok();
            number.filter(|number| (0.0..=1e6).contains(number))
        };
        let pace = text.split_once('+').and_then(|(fixed, row)| {
            Some(Self {
                fixed: number(fixed)?,
                row: number(row)?,
            })
        });
        pace.ok_or_else(|| NoPace(text.into()))
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}+{}", self.fixed, self.row)
    }
}

impl Pace {
    /// Returns the seconds that a device of this pace needs for `batches` batches with `rows` rows together.
    pub fn seconds(self, batches: f64, rows: f64) -> f64 {
        (batches * self.fixed + rows * self.row) * 1e-6
    }
}

/// Arguments of the server's process.
#[derive(clap::Args)]
pub struct Arguments {
    /// Pace of the device.
    #[arg(long)]
    pace: Pace,
    #[command(flatten)]
    role: role::Arguments,
}

/// Does the work of the child process: runs the inference server with a simulated device until its standard input is closed.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    PACE.get_or_init(|| arguments.pace);
    let ended = role::main_with(Role::InferenceServer, arguments.role, |config, shutdown| {
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
        Path::new(""),
        ProviderSettings::from(&config.inference),
        config.inference.largest_batch(),
        config::Provider::Auto,
    )?;
    let loader = loader.simulated(|layout| {
        Box::new(Simulated {
            pace: PACE.get().copied().unwrap_or_default(),
            actions: layout.actions as usize,
        })
    });
    server::serve_with(listener, config, shutdown, Arc::new(loader)).await
}

/// The device: one batch at a time.
struct Simulated {
    pace: Pace,
    actions: usize,
}

impl Runner for Simulated {
    fn run(&mut self, mut batch: Batch) -> Result<Outputs, RunError> {
        let began = Instant::now();
        let legal = batch.take_legal();
        let answers = answers(&batch, legal, self.actions);
        let needed = Duration::from_secs_f64(self.pace.seconds(1.0, batch.size() as f64));
        // A wait may end 50 µs late by default. It does end late, by the time of a wake-up, if this cannot be set.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZero::<u64>::MIN));
        thread::sleep(needed.saturating_sub(began.elapsed()));
        Ok(answers)
    }

    /// As on a GPU, which hands over the logits of legal actions only.
    fn picks_legal(&self) -> bool {
        true
    }
}

/// Returns answers that depend on the row and nothing else, so that trees grow as with a network that prefers some actions.
fn answers(batch: &Batch, legal: Option<Legal>, actions: usize) -> Outputs {
    let hashes: Vec<u64> = batch.each().map(hash).collect();
    let width = legal.as_ref().map(|legal| legal.width);
    let logits = match legal {
        Some(legal) => {
            let positions = hashes.iter().zip(legal.actions.chunks(legal.width.max(1)));
            let logits = positions.flat_map(|(&hash, own)| own.iter().map(move |&of| logit(hash, of as u64)));
            logits.collect()
        }
        None => hashes
            .iter()
            .flat_map(|&hash| (0..actions as u64).map(move |action| logit(hash, action)))
            .collect(),
    };
    let values = hashes.iter().map(|&hash| VALUE * spread(hash)).collect();
    Outputs::new(logits, values).with_width(width)
}

/// Hash of a row.
fn hash(row: &[i32]) -> u64 {
    row.iter()
        .fold(0x9e37_79b9_7f4a_7c15, |hash, &number| mixed(hash ^ number as u64))
}

fn logit(hash: u64, action: u64) -> f32 {
    LOGIT * spread(mixed(hash ^ (action + 1)))
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
    use super::*;
    use crate::harness::measure::thread_seconds;

    #[test]
    fn a_pace_is_two_numbers_of_microseconds() {
        let pace: Pace = "300+2.5".parse().unwrap();
        assert_eq!(pace.to_string(), "300+2.5");
        // Two batches of 64 rows: 2 · 300 + 128 · 2.5.
        assert!((pace.seconds(2.0, 128.0) - 920e-6).abs() < 1e-12);
        for wrong in ["", "300", "300+", "-1+2", "300+nan", "300+inf", "1e9+1", "1+2+3"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_batch_takes_its_time_and_no_core() {
        let mut device = Simulated {
            pace: "20000+1000".parse().unwrap(),
            actions: 3,
        };
        let used = || thread_seconds(Path::new("/proc/thread-self")).unwrap();
        let (began, before) = (Instant::now(), used());
        device.run(Batch::new(vec![7; 40], 20)).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(40));
        assert!(used() - before < 0.01);
    }

    #[test]
    fn answers_follow_the_row_and_are_the_same_for_legal_actions_as_for_all() {
        let rows = vec![1, 2, 3, 4, 1, 2];
        let all = answers(&Batch::new(rows.clone(), 3), None, 5);
        let legal = Legal {
            actions: vec![4, 0, 2, 2, 4, 0],
            width: 2,
        };
        let some = answers(&Batch::new(rows, 3), Some(legal), 5);
        assert_eq!(all.values(), some.values());
        assert_eq!(all.values()[0], all.values()[2], "equal rows");
        assert_ne!(all.values()[0], all.values()[1]);
        let (picked, width) = some.legal_logits().unwrap();
        let place = |position: usize, action: usize| all.logits()[5 * position + action];
        assert_eq!(width, 2);
        let places = [(0, 4), (0, 0), (1, 2), (1, 2), (2, 4), (2, 0)];
        assert_eq!(picked, places.map(|(position, action)| place(position, action)));
        assert!(all.logits().iter().all(|logit| logit.abs() <= LOGIT));
        assert!(all.values().iter().all(|value| value.abs() <= VALUE));
        let distinct: std::collections::HashSet<u32> =
            all.logits().iter().map(|logit| logit.to_bits()).collect();
        assert_eq!(distinct.len(), 10);
    }
}
