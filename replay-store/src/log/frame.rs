//! Checksummed frames, the units of a log file. Damage to a frame is detected and costs only the game that the frame belongs to.
//!
//! ```text
//! part = "MnG1" · sequence u64 · part u16 · parts u16 · length u32 · crc32 u32 · payload
//! name = "MnI1" · sequence u64 · id [16] · crc32 u32
//! lost = "MnD1" · sequence u64 · 1 if the id is known, otherwise 0: u8 · id [16] · crc32 u32
//! deleted = "MnX1" · sequence u64 · crc32 u32
//! seal = "MnC1" · length u64 · crc32 of that many bytes before the seal u32 · crc32 u32
//! ```
//! Numbers are little-endian. The last crc32 of a frame covers all its other bytes after the magic. The magic identifies the kind of
//! frame, so that [`crate::log::recover`] can search a damaged file for intact frames.

/// A game's id.
pub type Id = [u8; 16];

/// Maximum number of record bytes in one part. Part of the format: readers treat a longer part as damaged.
pub const PART_BYTES: usize = 7 * 1024;

/// Maximum number of parts of a record.
pub const MAX_PARTS: usize = 4096;

const PART_MAGIC: [u8; 4] = *b"MnG1";
const NAME_MAGIC: [u8; 4] = *b"MnI1";
const PART_HEAD: usize = 24;
const LOST_MAGIC: [u8; 4] = *b"MnD1";
const DELETED_MAGIC: [u8; 4] = *b"MnX1";
const SEAL_MAGIC: [u8; 4] = *b"MnC1";

/// Length of a name frame in bytes.
pub const NAME_BYTES: usize = 32;
/// Length of a loss frame in bytes.
pub const LOST_BYTES: usize = 33;
/// Length of a deletion frame in bytes.
pub const DELETED_BYTES: usize = 16;
/// Length of a seal frame in bytes.
pub const SEAL_BYTES: usize = 20;
/// Maximum number of bytes that the part frames of one game take.
pub const MAX_GAME_BYTES: u64 = (MAX_PARTS * (PART_HEAD + PART_BYTES)) as u64;

/// A part of a record whose checksum is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The game's sequence number.
    pub sequence: u64,
    /// Number of the part, from 0.
    pub part: u16,
    /// Number of parts of the whole record.
    pub parts: u16,
    /// Record bytes of the part.
    pub payload: &'a [u8],
}

/// Splits a record into part frames. Returns `None` if the record needs more than [`MAX_PARTS`] parts.
#[cfg(test)]
pub(super) fn encode_parts(sequence: u64, record: &[u8]) -> Option<Vec<Vec<u8>>> {
    let payloads = payloads(record)?;
    let parts = payloads.len();
    let framed = payloads.into_iter().enumerate().map(|(part, payload)| {
        let mut frame = Vec::with_capacity(PART_HEAD + payload.len());
        encode_part(sequence, part, parts, payload, &mut frame);
        frame
    });
    Some(framed.collect())
}

/// Appends the part frames of a record to `out`. Returns `None` if the record needs more than [`MAX_PARTS`] parts.
pub fn encode_record(sequence: u64, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let payloads = payloads(record)?;
    let parts = payloads.len();
    for (part, payload) in payloads.into_iter().enumerate() {
        encode_part(sequence, part, parts, payload, out);
    }
    Some(())
}

fn payloads(record: &[u8]) -> Option<Vec<&[u8]>> {
    if record.is_empty() {
        return Some(vec![record]);
    }
    let payloads: Vec<&[u8]> = record.chunks(PART_BYTES).collect();
    (payloads.len() <= MAX_PARTS).then_some(payloads)
}

fn encode_part(sequence: u64, part: usize, parts: usize, payload: &[u8], out: &mut Vec<u8>) {
    let mut head = [0; PART_HEAD];
    head[..4].copy_from_slice(&PART_MAGIC);
    head[4..12].copy_from_slice(&sequence.to_le_bytes());
    head[12..14].copy_from_slice(&(part as u16).to_le_bytes());
    head[14..16].copy_from_slice(&(parts as u16).to_le_bytes());
    head[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let crc = checksum(&head[4..20], payload);
    head[20..].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload);
}

/// Reads the part frame at the beginning of `bytes`, and returns it with the length of the frame. Returns `None` if no intact part frame
/// begins there.
pub fn decode_part(bytes: &[u8]) -> Option<(Part<'_>, usize)> {
    let head = bytes.first_chunk::<PART_HEAD>()?;
    let (magic, rest) = head.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (part, rest) = rest.split_first_chunk::<2>()?;
    let (parts, rest) = rest.split_first_chunk::<2>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if *magic != PART_MAGIC || length > PART_BYTES {
        return None;
    }
    let payload = bytes.get(PART_HEAD..PART_HEAD + length)?;
    let part = Part {
        sequence: u64::from_le_bytes(*sequence),
        part: u16::from_le_bytes(*part),
        parts: u16::from_le_bytes(*parts),
        payload,
    };
    (checksum(&head[4..20], payload) == u32::from_le_bytes(*crc) && part.part < part.parts)
        .then_some((part, PART_HEAD + length))
}

/// Returns a name frame: the game with this sequence number has this id.
pub fn encode_name(sequence: u64, id: &Id) -> [u8; NAME_BYTES] {
    let mut frame = [0; NAME_BYTES];
    frame[..4].copy_from_slice(&NAME_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    frame[12..28].copy_from_slice(id);
    let crc = checksum(&frame[4..28], &[]);
    frame[28..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the name frame at the beginning of `bytes`. Returns `None` if no intact one begins there.
pub fn decode_name(bytes: &[u8]) -> Option<(u64, Id)> {
    let frame = bytes.first_chunk::<NAME_BYTES>()?;
    let (magic, rest) = frame.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (id, rest) = rest.split_first_chunk::<16>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    (*magic == NAME_MAGIC && checksum(&frame[4..28], &[]) == u32::from_le_bytes(*crc))
        .then_some((u64::from_le_bytes(*sequence), *id))
}

/// Returns a loss frame: the game with this sequence number is lost.
pub fn encode_lost(sequence: u64, id: Option<&Id>) -> [u8; LOST_BYTES] {
    let mut frame = [0; LOST_BYTES];
    frame[..4].copy_from_slice(&LOST_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    if let Some(id) = id {
        frame[12] = 1;
        frame[13..29].copy_from_slice(id);
    }
    let crc = checksum(&frame[4..29], &[]);
    frame[29..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the loss frame at the beginning of `bytes`. Returns `None` if no intact one begins there.
pub fn decode_lost(bytes: &[u8]) -> Option<(u64, Option<Id>)> {
    let frame = bytes.first_chunk::<LOST_BYTES>()?;
    let (body, crc) = frame.split_last_chunk::<4>()?;
    let (magic, rest) = body.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (&known, id) = rest.split_first()?;
    if *magic != LOST_MAGIC || checksum(&body[4..], &[]) != u32::from_le_bytes(*crc) {
        return None;
    }
    let id = (known == 1).then(|| id.try_into().ok()).flatten();
    Some((u64::from_le_bytes(*sequence), id))
}

/// Returns a deletion frame: the game with this sequence number was deleted.
pub fn encode_deleted(sequence: u64) -> [u8; DELETED_BYTES] {
    let mut frame = [0; DELETED_BYTES];
    frame[..4].copy_from_slice(&DELETED_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    let crc = checksum(&frame[4..12], &[]);
    frame[12..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the deletion frame at the beginning of `bytes`. Returns `None` if no intact one begins there.
pub fn decode_deleted(bytes: &[u8]) -> Option<u64> {
    let frame = bytes.first_chunk::<DELETED_BYTES>()?;
    let (body, crc) = frame.split_last_chunk::<4>()?;
    let (magic, sequence) = body.split_first_chunk::<4>()?;
    (*magic == DELETED_MAGIC && checksum(sequence, &[]) == u32::from_le_bytes(*crc))
        .then_some(u64::from_le_bytes(sequence.try_into().ok()?))
}

/// Returns the seal of `commit`. The seal is written directly after the commit and proves that all of it was written.
pub fn encode_seal(commit: &[u8]) -> [u8; SEAL_BYTES] {
    let mut frame = [0; SEAL_BYTES];
    frame[..4].copy_from_slice(&SEAL_MAGIC);
    frame[4..12].copy_from_slice(&(commit.len() as u64).to_le_bytes());
    frame[12..16].copy_from_slice(&checksum(&[], commit).to_le_bytes());
    let crc = checksum(&frame[4..16], &[]);
    frame[16..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the seal at offset `at` of `bytes`. Returns `None` if no intact seal begins there, `Some(None)` if the commit before the seal
/// is damaged or cut off, and otherwise the offset at which the commit begins.
pub fn decode_seal(bytes: &[u8], at: usize) -> Option<Option<usize>> {
    let frame = bytes.get(at..)?.first_chunk::<SEAL_BYTES>()?;
    let (body, crc) = frame.split_last_chunk::<4>()?;
    let (magic, rest) = body.split_first_chunk::<4>()?;
    let (length, expected) = rest.split_first_chunk::<8>()?;
    if *magic != SEAL_MAGIC || checksum(&body[4..], &[]) != u32::from_le_bytes(*crc) {
        return None;
    }
    let begin = usize::try_from(u64::from_le_bytes(*length))
        .ok()
        .and_then(|length| at.checked_sub(length));
    Some(begin.filter(|&begin| {
        bytes
            .get(begin..at)
            .is_some_and(|commit| checksum(&[], commit).to_le_bytes() == *expected)
    }))
}

/// Returns the CRC-32 of `head` followed by `payload`.
pub fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_a_record_decode_to_the_record(sequence: u64, record in prop::collection::vec(any::<u8>(), 0..40_000), more in 0usize..9) {
            let frames = encode_parts(sequence, &record).unwrap();
            let mut back = Vec::new();
            for (at, frame) in frames.iter().enumerate() {
                let mut bytes = frame.clone();
                bytes.extend(vec![7; more]);
                let (part, length) = decode_part(&bytes).unwrap();
                prop_assert_eq!((part.sequence, part.part as usize, part.parts as usize), (sequence, at, frames.len()));
                prop_assert_eq!(length, frame.len());
                back.extend_from_slice(part.payload);
            }
            prop_assert_eq!(back, record);
        }

        #[test]
        fn a_part_with_a_flipped_bit_is_refused(sequence: u64, record in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = encode_parts(sequence, &record).unwrap().remove(0);
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
            prop_assert!(decode_part(&frame).is_none());
        }

        #[test]
        fn loss_and_deletion_frames_decode_unless_damaged(sequence: u64, id in any::<Option<Id>>(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = encode_lost(sequence, id.as_ref());
            prop_assert_eq!(decode_lost(&frame), Some((sequence, id)));
            frame[at.index(LOST_BYTES)] ^= 1 << bit;
            prop_assert_eq!(decode_lost(&frame), None);
            let mut frame = encode_deleted(sequence);
            prop_assert_eq!(decode_deleted(&frame), Some(sequence));
            frame[at.index(DELETED_BYTES)] ^= 1 << bit;
            prop_assert_eq!(decode_deleted(&frame), None);
        }

        #[test]
        fn a_seal_is_valid_only_for_its_complete_commit(before in prop::collection::vec(any::<u8>(), 0..50), commit in prop::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = before.clone();
            bytes.extend_from_slice(&commit);
            let end = bytes.len();
            bytes.extend_from_slice(&encode_seal(&commit));
            prop_assert_eq!(decode_seal(&bytes, end), Some(Some(before.len())));
            prop_assert_eq!(decode_seal(&bytes[before.len() + 1..], end - before.len() - 1), Some(None));
            bytes[before.len() + at.index(commit.len() + SEAL_BYTES)] ^= 1 << bit;
            prop_assert!(!matches!(decode_seal(&bytes, end), Some(Some(_))));
        }

        #[test]
        fn name_frames_decode_unless_damaged(sequence: u64, id: Id, at in 0usize..32, bit in 0u8..8) {
            let mut frame = encode_name(sequence, &id);
            prop_assert_eq!(decode_name(&frame), Some((sequence, id)));
            frame[at] ^= 1 << bit;
            prop_assert_eq!(decode_name(&frame), None);
        }
    }
}
