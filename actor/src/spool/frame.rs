//! Framing of records in a file that may be cut off or damaged anywhere: magic, length, CRC-32, payload.
//!
//! A reader gets every intact record in order, and the ranges of all other bytes.

use std::ops::Range;

/// First bytes of a record. They allow reading to continue behind a damaged range.
const MAGIC: [u8; 4] = *b"MGM1";
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
    out.extend_from_slice(&checksum(length, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Returns the payload of the record at the beginning of `bytes`, or the reason why there is none.
pub(super) fn payload(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (header, rest) = bytes.split_at_checked(HEADER).ok_or("cut off")?;
    if header[..4] != MAGIC {
        return Err("no record begins here");
    }
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let length = u32::from_le_bytes(word(4)) as usize;
    if length > LONGEST {
        return Err("impossible length");
    }
    let payload = rest.get(..length).ok_or("cut off")?;
    if checksum(word(4), payload) != u32::from_le_bytes(word(8)) {
        return Err("wrong checksum");
    }
    Ok(payload)
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

fn next_whole(bytes: &[u8], from: usize) -> usize {
    (from..bytes.len())
        .find(|&at| bytes[at..].starts_with(&MAGIC) && payload(&bytes[at..]).is_ok())
        .unwrap_or(bytes.len())
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
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
        fn never_fails_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let frames = read(&bytes);
            let all: usize = frames.whole.iter().map(Range::len).sum::<usize>()
                + frames.damage.iter().map(|damage| damage.range.len()).sum::<usize>();
            prop_assert_eq!(all, bytes.len());
        }
    }
}
