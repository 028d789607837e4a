//! Framing of records in a file that may be cut off or damaged anywhere: magic, length, CRC-32, payload.
//!
//! A reader gets every intact record in order, and the ranges of all other bytes. The magic ends with the digit of the version.
//! From version 2 on the checksum covers the magic, so that a damaged digit is not taken for a later version. A record of a later
//! version must keep the header and the checksum, so that [`read`] recognises it.

use std::ops::Range;

/// First bytes of a record. They allow reading to continue behind a damaged range.
pub(super) type Magic = [u8; 4];

const MAGIC: Magic = *b"MGM2";
/// Magic of records whose checksum does not cover the magic.
const MAGIC_1: Magic = *b"MGM1";
/// Records that this build reads.
pub(super) const KNOWN: &[Magic] = &[MAGIC_1, MAGIC];
/// Length of the header: magic, length of the payload, checksum (four bytes each, numbers little-endian).
pub(super) const HEADER: usize = 12;
/// Longest payload. A greater length means that the record is damaged.
const LONGEST: usize = 1 << 28;

/// A range of a file that holds no intact record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) range: Range<usize>,
    pub(super) reason: &'static str,
}

/// Contents of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    /// Ranges of the intact records, headers included.
    pub(super) whole: Vec<Range<usize>>,
    pub(super) damage: Vec<Damage>,
}

/// Appends a record.
pub(super) fn append(payload: &[u8], out: &mut Vec<u8>) {
    let length = (payload.len() as u32).to_le_bytes();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&length);
    out.extend_from_slice(&checksum(MAGIC, length, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Returns the payload of the record at the beginning of `bytes`, or the reason why there is none.
pub(super) fn payload(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let magic = bytes.first_chunk().ok_or("cut off")?;
    if !KNOWN.contains(magic) {
        return Err("no record begins here");
    }
    whole(bytes)
}

/// Returns the payload of the record of any version at the beginning of `bytes`.
fn whole(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (header, rest) = bytes.split_at_checked(HEADER).ok_or("cut off")?;
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let length = u32::from_le_bytes(word(4)) as usize;
    if length > LONGEST {
        return Err("impossible length");
    }
    let payload = rest.get(..length).ok_or("cut off")?;
    if checksum(word(0), word(4), payload) != u32::from_le_bytes(word(8)) {
        return Err("wrong checksum");
    }
    Ok(payload)
}

/// Returns the magic of the first intact record that `known` does not list: a newer build wrote it.
pub(super) fn newer(bytes: &[u8], known: &[Magic]) -> Option<Magic> {
    let mut at = next_whole(bytes, 0);
    while let Some(magic) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        if !known.contains(magic) {
            return Some(*magic);
        }
        let length = whole(&bytes[at..]).map_or(1, |payload| HEADER + payload.len());
        at = next_whole(bytes, at + length);
    }
    None
}

/// Finds the intact records and the damaged ranges of a file.
pub(super) fn read(bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    let mut at = 0;
    while at < bytes.len() {
        match payload(&bytes[at..]) {
            Ok(payload) => {
                let end = at + HEADER + payload.len();
                frames.whole.push(at..end);
                at = end;
            }
            Err(reason) => {
                let end = next_whole(bytes, at + 1);
                frames.damage.push(Damage {
                    range: at..end,
                    reason,
                });
                at = end;
            }
        }
    }
    frames
}

/// Returns where the next intact record of any version begins, from `from` on; the length of `bytes` if there is none.
fn next_whole(bytes: &[u8], from: usize) -> usize {
    let is_whole = |rest: &[u8]| {
        rest.starts_with(&MAGIC[..3])
            && rest.get(3).is_some_and(u8::is_ascii_alphanumeric)
            && whole(rest).is_ok()
    };
    (from..bytes.len())
        .find(|&at| is_whole(&bytes[at..]))
        .unwrap_or(bytes.len())
}

fn checksum(magic: Magic, length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if magic != MAGIC_1 {
        hasher.update(&magic);
    }
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fuzz_spool_files() {
        let mut file = Vec::new();
        append(b"a game", &mut file);
        append(b"another game", &mut file);
        test_support::fuzz("spool file", &[&file], |bytes| {
            let frames = read(bytes);
            let ranges = frames
                .whole
                .iter()
                .cloned()
                .chain(frames.damage.iter().map(|damage| damage.range.clone()));
            assert_eq!(
                ranges.map(|range| range.len()).sum::<usize>(),
                bytes.len(),
                "a byte has no place"
            );
            !frames.whole.is_empty()
        });
    }

    fn file(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for payload in payloads {
            append(payload, &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        // A payload may well contain the magic.
        let byte = prop_oneof![any::<u8>(), prop::sample::select(MAGIC.to_vec())];
        prop::collection::vec(prop::collection::vec(byte, 0..30), 1..5)
    }

    proptest! {
        #[test]
        fn cut_anywhere_the_whole_records_remain(payloads in payloads()) {
            let (bytes, ends) = file(&payloads);
            for cut in 0..=bytes.len() {
                let frames = read(&bytes[..cut]);
                let whole = ends.iter().filter(|&&end| end <= cut).count();
                let found: Vec<&[u8]> =
                    frames.whole.iter().map(|range| &bytes[range.start + HEADER..range.end]).collect();
                prop_assert_eq!(found, payloads[..whole].iter().map(Vec::as_slice).collect::<Vec<_>>());
                let is_between = cut == 0 || ends.contains(&cut);
                prop_assert_eq!(frames.damage.is_empty(), is_between);
            }
        }

        #[test]
        fn one_damaged_byte_costs_one_record(payloads in payloads(), place in any::<prop::sample::Index>(), flip in 1u8..) {
            let (mut bytes, ends) = file(&payloads);
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            let hit = ends.iter().filter(|&&end| end <= at).count();
            let frames = read(&bytes);
            let found: Vec<&[u8]> = frames.whole.iter().map(|range| &bytes[range.start + HEADER..range.end]).collect();
            let mut expected: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            expected.remove(hit);
            prop_assert_eq!(found, expected);
            prop_assert!(!frames.damage.is_empty());
            let damaged: usize = frames.damage.iter().map(|damage| damage.range.len()).sum();
            prop_assert_eq!(damaged, payloads[hit].len() + HEADER);
        }

        #[test]
        fn records_of_version_1_are_read_and_those_of_a_newer_build_are_found(payloads in payloads(), at in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            for payload in &payloads {
                let length = (payload.len() as u32).to_le_bytes();
                bytes.extend(MAGIC_1);
                bytes.extend(length);
                bytes.extend(checksum(MAGIC_1, length, payload).to_le_bytes());
                bytes.extend(payload);
            }
            let old = read(&bytes);
            prop_assert_eq!((old.whole.len(), old.damage.len()), (payloads.len(), 0));
            let (mut bytes, ends) = file(&payloads);
            prop_assert_eq!(newer(&bytes, KNOWN), None);
            prop_assert_eq!(newer(&bytes, &[MAGIC_1]), Some(MAGIC));
            // One record of a later version, and damage before it.
            let hit = at.index(payloads.len());
            let begin = ends[hit] - HEADER - payloads[hit].len();
            let magic = *b"MGM3";
            let sum = checksum(magic, (payloads[hit].len() as u32).to_le_bytes(), &payloads[hit]);
            bytes[begin..begin + 4].copy_from_slice(&magic);
            prop_assert_eq!(newer(&bytes, KNOWN), None, "the checksum is wrong: the digit is damaged");
            bytes[begin + 8..begin + 12].copy_from_slice(&sum.to_le_bytes());
            prop_assert_eq!(newer(&bytes, KNOWN), Some(magic));
            if hit > 0 {
                bytes[0] ^= 1;
                prop_assert_eq!(newer(&bytes, KNOWN), Some(magic));
            }
        }

        #[test]
        fn never_fails_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let frames = read(&bytes);
            let all: usize = frames.whole.iter().map(Range::len).sum::<usize>()
                + frames.damage.iter().map(|damage| damage.range.len()).sum::<usize>();
            prop_assert_eq!(all, bytes.len());
        }
    }
}
