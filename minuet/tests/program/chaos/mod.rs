//! Chaos test: injects random faults into a small run, and checks that the run loses nothing that it must keep.
//!
//! `make test` injects each fault once; `make chaos SECONDS=1800` continues for longer, with the rating role. The seed is printed,
//! and `MINUET_CHAOS_SEED` repeats its faults (their times depend on the machine).
//!
//! | module | content |
//! |---|---|
//! | [`connections`] | cuts connections |
//! | [`faults`] | the faults |
//! | [`checks`] | the checks |

mod checks;
mod connections;
mod faults;

use std::{
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use checks::RunChecks;
use faults::{Fault, FaultCounts};
use rand::{Rng as _, SeedableRng as _, seq::SliceRandom as _};
use rand_chacha::ChaCha8Rng;
use test_support::SmallDisk;

use crate::support::{
    acknowledged,
    run::{Run, tiny_run},
};

/// Pairs of `replay.max_uses` and `learner.samples_per_position`. If both are equal, a store that was killed and has counted ahead
/// holds batches back. The numbers are small, so that a learner which shares its processor with actors reaches them.
const USES: [(f64, f64); 2] = [(0.1, 0.05), (0.05, 0.05)];

/// Size of the store's disk.
const DISK_MIB: u32 = 48;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn a_run_survives_faults() {
    let seed = number("MINUET_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    // The store has a disk of its own, so that only this test notices that the disk is full.
    let Some(disk) = SmallDisk::mount(DISK_MIB) else {
        return;
    };
    symlink(disk.path(), folder.path().join("replay")).unwrap();
    let (max_uses, samples_per_position) = USES[seed as usize % USES.len()];
    println!("seed {seed}, max_uses {max_uses}, samples_per_position {samples_per_position}");
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
    let settings = [&tiny_run()[..], &more].concat();
    let mut run = Run::with_arguments(&arguments, folder.path(), &settings, &[acknowledged::LOGGING]);
    let can_cut = connections::can_be_cut(run.pid("learner"));
    if !can_cut {
        test_support::skip(
            "chaos: connections are cut",
            "this process may not open the sockets of its children",
        );
    }
    run.wait_for("checkpoint", |event| {
        event["step"].as_u64() >= Some(checks::FIRST_FAULT)
    });

    let mut checks = RunChecks::default();
    let mut counts = FaultCounts::default();
    // A long test also suspends processes until the calls of their peers time out.
    let longest_stall = if seconds > 0 { 40 } else { 2 };
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        // Each fault once in a round, in random order.
        let mut round = Fault::all(can_cut, has_rating);
        round.shuffle(&mut draw);
        for fault in round {
            checks.record_games(&mut run, folder.path());
            fault.inject(
                &mut run,
                folder.path(),
                &disk,
                longest_stall,
                draw.random(),
                &mut counts,
            );
            // The run continues: a new game is stored.
            checks.wait_for_a_new_game(&mut run);
        }
        if Instant::now() >= end {
            break;
        }
    }
    let step = checks.newest_step(folder.path());
    run.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step));
    checks.record_games(&mut run, folder.path());
    run.stop();
    if can_cut {
        assert!(counts.cut > 0, "no connection was found to cut");
    }
    checks.check(folder.path(), &counts, max_uses.min(samples_per_position));
    println!("{counts}; all checks passed: {checks}");
}
