//! Random inputs for readers of foreign bytes: [`fuzz`].
//!
//! Inputs are mutations of given examples, and of mutations that the reader accepted. There is no coverage feedback, which needs
//! a nightly compiler.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

use crate::peak_memory;

/// Maximum number of inputs for each reader. Without this variable and the next a reader gets [`SHORT`] inputs.
const INPUTS: &str = "MINUET_FUZZ_INPUTS";
/// Maximum number of seconds for each reader.
const SECONDS: &str = "MINUET_FUZZ_SECONDS";
/// Seed of the mutations: a number. Without this variable the seed is 0, so that `make test` repeats itself.
const SEED: &str = "MINUET_FUZZ_SEED";
/// Inputs of the short form.
const SHORT: u64 = 3_000;
/// Length limit of an input in bytes, for a reader whose examples are no longer than that.
const LONGEST: usize = 64 << 10;
/// Accepted mutations that are kept as examples.
const KEPT: usize = 500;
/// Time limit of one input. It is far above what a reader needs on a slow machine.
const SLOWEST: Duration = Duration::from_secs(1);
/// Time of one input from which on it is measured again.
const SUSPICIOUS: Duration = Duration::from_millis(5);
/// Memory that a reader may take for one input, in bytes.
const MEMORY: usize = 64 << 20;

/// Calls `read` with mutations of `examples`. `read` returns true if it accepted the input.
///
/// Prints the number of inputs. The environment sets the limits and the seed: `MINUET_FUZZ_INPUTS`, `MINUET_FUZZ_SECONDS`,
/// `MINUET_FUZZ_SEED`.
///
/// # Panics
/// If there is no example, if `read` rejects every example, if `read` panics, or if it takes longer than one second or more than 64
/// MiB for one input. The panic's message contains the input.
pub fn fuzz(name: &str, examples: &[&[u8]], mut read: impl FnMut(&[u8]) -> bool) {
    let (most, seconds): (Option<u64>, Option<u64>) = (number(INPUTS), number(SECONDS));
    let most = most.unwrap_or(if seconds.is_some() { u64::MAX } else { SHORT });
    let limit = seconds.map_or(Duration::MAX, Duration::from_secs);
    let mut draw = ChaCha8Rng::seed_from_u64(number(SEED).unwrap_or(0));
    let mut pool: Vec<Vec<u8>> = examples.iter().map(|example| example.to_vec()).collect();
    let accepted = pool.iter().filter(|example| read(example)).count();
    assert!(accepted > 0, "{name}: the reader accepts none of its examples");

    let longest = examples
        .iter()
        .map(|example| 2 * example.len())
        .fold(LONGEST, usize::max);
    let began = Instant::now();
    let (mut inputs, mut accepted) = (0_u64, 0_u64);
    let (mut slowest, mut largest) = (Duration::ZERO, 0);
    while inputs < most && began.elapsed() < limit {
        let mut input = mutated(&pool, &mut draw);
        input.truncate(longest);
        let started = Instant::now();
        let (outcome, memory) = peak_memory(|| catch_unwind(AssertUnwindSafe(|| read(&input))));
        let mut took = started.elapsed();
        let is_accepted = outcome.unwrap_or_else(|panic| {
            eprintln!("{name}: the reader panicked on {}", shown(&input));
            resume_unwind(panic)
        });
        if took >= SUSPICIOUS {
            // A busy machine may stop the process for a while: the input has more tries.
            took = (0..3).map(|_| timed(&mut read, &input)).fold(took, Duration::min);
            assert!(took < SLOWEST, "{name}: {took:?} for {}", shown(&input));
        }
        assert!(
            memory <= MEMORY,
            "{name}: {} MiB for {}",
            memory >> 20,
            shown(&input)
        );
        slowest = slowest.max(took);
        largest = largest.max(memory);
        inputs += 1;
        if is_accepted {
            accepted += 1;
            let place = if pool.len() < KEPT {
                pool.len()
            } else {
                draw.random_range(examples.len()..=KEPT)
            };
            pool.truncate(KEPT);
            if place < pool.len() {
                pool[place] = input;
            } else {
                pool.push(input);
            }
        }
    }
    println!(
        "fuzz {name}: {inputs} inputs, {accepted} accepted, at most {:.3} MiB and {:.1} ms for one, {:.0} s",
        largest as f64 / f64::from(1 << 20),
        slowest.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64()
    );
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn timed(read: &mut impl FnMut(&[u8]) -> bool, input: &[u8]) -> Duration {
    let started = Instant::now();
    read(input);
    started.elapsed()
}

fn mutated(pool: &[Vec<u8>], draw: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = pool.choose(draw).cloned().unwrap_or_default();
    for _ in 0..1 << draw.random_range(0..4) {
        mutate(&mut bytes, pool, draw);
    }
    bytes
}

/// Changes `bytes` in one place.
fn mutate(bytes: &mut Vec<u8>, pool: &[Vec<u8>], draw: &mut ChaCha8Rng) {
    let at = draw.random_range(0..=bytes.len());
    let end = (at + draw.random_range(0..=16)).min(bytes.len());
    match draw.random_range(0..9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << draw.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = draw.random(),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            for _ in 0..draw.random_range(1..8) {
                bytes.splice(at..at, piece.iter().copied());
            }
        }
        4 => {
            let value = *[0, 1, 0x7f, 0xff, b'-', b'"', b'{', b'\n', b' ']
                .choose(draw)
                .unwrap_or(&0);
            let count = draw.random_range(1..5);
            bytes.splice(at..at, std::iter::repeat_n(value, count));
        }
        // A number at a limit: four bytes, as lengths in binary files are.
        5 if at + 4 <= bytes.len() => {
            let value = *[0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff_u32]
                .choose(draw)
                .unwrap_or(&0);
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        // A number at a limit, in digits.
        6 => {
            let value = *[
                "0",
                "-1",
                "255",
                "4294967296",
                "18446744073709551615",
                "1e308",
                "nan",
            ]
            .choose(draw)
            .unwrap_or(&"0");
            bytes.splice(at..end, value.bytes());
        }
        7 => bytes.truncate(at),
        _ => {
            if let Some(other) = pool.choose(draw) {
                let from = draw.random_range(0..=other.len());
                let to = (from + draw.random_range(0..=64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
}

/// An input as a Rust byte string.
fn shown(input: &[u8]) -> String {
    format!("b\"{}\"", input.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_the_reader_is_found() {
        let reads_blindly = |bytes: &[u8]| bytes.len() < 4 || bytes[usize::from(bytes[0])] < 200;
        let found = catch_unwind(|| fuzz("blind", &[&[1, 2, 3, 4, 5]], reads_blindly));
        assert!(found.is_err());
    }

    #[test]
    fn a_slow_reader_is_found() {
        let sleeps = |bytes: &[u8]| {
            if bytes.len() > 8 {
                std::thread::sleep(SLOWEST);
            }
            true
        };
        assert!(catch_unwind(|| fuzz("slow", &[b"1234567"], sleeps)).is_err());
    }

    #[test]
    fn a_reader_that_trusts_a_length_is_found() {
        let reserves = |bytes: &[u8]| {
            let length = bytes
                .first_chunk()
                .map_or(0, |length| u32::from_le_bytes(*length));
            std::hint::black_box(Vec::<u8>::with_capacity(length as usize)).is_empty()
        };
        assert!(catch_unwind(|| fuzz("trusting", &[&[1, 0, 0, 0]], reserves)).is_err());
    }
}
