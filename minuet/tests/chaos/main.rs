//! Chaos: random faults while a small run goes on, and what must hold whatever happened.
//!
//! A few faults of each kind in `make test`; for longer `make chaos SECONDS=1800`. The seed is printed, and
//! `MINUET_CHAOS_SEED` repeats its faults (their moments depend on the machine). The run has two replay stores, or as many as
//! `MINUET_CHAOS_STORES` says (1 or 2).
//!
//! | module | what it is for |
//! |---|---|
//! | [`faults`] | what is done to the run |
//! | [`promises`] | what must hold all the same |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod faults;
mod promises;
#[path = "../support/run.rs"]
mod run;

use std::time::{Duration, Instant};

use faults::{Disk, Fault, Tally};
use promises::Witness;
use rand::{Rng as _, SeedableRng as _, seq::SliceRandom as _};
use rand_chacha::ChaCha8Rng;
use run::{Run, tiny_run};

/// Uses of a position that the store allows, and that the learner aims at.
const MAX_USES: f64 = 4.0;
const SAMPLES_PER_POSITION: f64 = 2.0;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn a_run_survives_what_happens_to_it() {
    let seed = number("MINUET_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::make(&folder.path().join("replay"));
    let stores = number("MINUET_CHAOS_STORES").unwrap_or(2) as usize;
    println!("seed {seed}, {stores} replay stores, {disk}");
    let (max_uses, ratio) = (
        format!("replay.max_uses={MAX_USES}"),
        format!("learner.samples_per_position={SAMPLES_PER_POSITION}"),
    );
    let more = [
        max_uses.as_str(),
        ratio.as_str(),
        "replay.min_free_mib=4",
        "checkpoints.keep=1000",
    ];
    let mut run = Run::with_stores(stores, folder.path(), &[&tiny_run()[..], &more].concat());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));

    let mut witness = Witness::default();
    let mut tally = Tally::default();
    let seconds = number("MINUET_CHAOS_SECONDS").unwrap_or_default();
    // In the long form peers' patience runs out as well, and they connect anew.
    let longest_stall = if seconds > 0 { 40 } else { 2 };
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        // Each kind once in a round, in another order.
        let mut round = Fault::all(&disk, stores);
        round.shuffle(&mut draw);
        for fault in round {
            witness.look(&mut run);
            fault.inject(
                &mut run,
                folder.path(),
                &disk,
                longest_stall,
                draw.random(),
                &mut tally,
            );
            // It goes on: a game that nobody had seen is stored.
            witness.wait_for_a_new_game(&mut run);
        }
        if Instant::now() >= end {
            break;
        }
    }
    let step = witness.newest_step(folder.path());
    run.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step));
    witness.look(&mut run);
    run.stop();
    witness.judge(folder.path(), &tally, MAX_USES, SAMPLES_PER_POSITION);
    println!("{tally}; all survived: {witness}");
}
