//! Chaos: random faults while a small run goes on, and what must hold whatever happened.
//!
//! A few faults of each kind in `make test`; for longer `make chaos SECONDS=1800`. The seed is printed, and
//! `MINUET_CHAOS_SEED` repeats its faults (their moments depend on the machine). In the long form the rating plays as well.
//!
//! | module | what it is for |
//! |---|---|
//! | [`connections`] | how connections are cut |
//! | [`faults`] | what is done to the run |
//! | [`promises`] | what must hold all the same |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod connections;
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

/// Uses of a position that the store allows, and that the learner aims at. Where they are the same a store that was killed, and has
/// counted ahead, is the one that holds batches back. So little that a learner which shares its processor with actors gets there.
const USES: [(f64, f64); 2] = [(0.1, 0.05), (0.05, 0.05)];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn a_run_survives_what_happens_to_it() {
    let seed = number("MINUET_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::make(&folder.path().join("replay"));
    let (max_uses, samples_per_position) = USES[seed as usize % USES.len()];
    println!("seed {seed}, {max_uses} uses at most, {samples_per_position} aimed at, {disk}");
    let seconds = number("MINUET_CHAOS_SECONDS").unwrap_or_default();
    let uses = [
        format!("replay.max_uses={max_uses}"),
        format!("learner.samples_per_position={samples_per_position}"),
    ];
    let more = [
        uses[0].as_str(),
        uses[1].as_str(),
        "replay.min_free_mib=4",
        "checkpoints.keep=1000",
    ];
    let mut arguments = Vec::new();
    let has_rating = seconds > 0;
    arguments.extend(has_rating.then_some("--rating"));
    let mut run = Run::with_arguments(&arguments, folder.path(), &[&tiny_run()[..], &more].concat());
    let can_cut = connections::can_be_cut(run.pid("learner"));
    if !can_cut {
        println!("the sockets of another process cannot be had here: no connection is cut");
    }
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));

    let mut witness = Witness::default();
    let mut tally = Tally::default();
    // In the long form peers' patience runs out as well, and they connect anew.
    let longest_stall = if seconds > 0 { 40 } else { 2 };
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        // Each kind once in a round, in another order.
        let mut round = Fault::all(&disk, can_cut, has_rating);
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
    if can_cut {
        assert!(tally.cut > 0, "no connection was there to be cut");
    }
    witness.judge(folder.path(), &tally, max_uses.min(samples_per_position));
    println!("{tally}; all survived: {witness}");
}
