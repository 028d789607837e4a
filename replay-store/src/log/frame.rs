//! Checksummed frames, the units of a log file. Damage to a frame is detected and costs only the game that the frame belongs to.
//!
//! ```text
//! part = "MnG2" · sequence u64 · part u16 · parts u16 · length u32 · crc32 u32 · payload
//! name = "MnI2" · sequence u64 · id [16] · crc32 u32
//! lost = "MnD2" · sequence u64 · 1 if the id is known, otherwise 0: u8 · id [16] · crc32 u32
//! deleted = "MnX2" · sequence u64 · crc32 u32
//! seal = "MnC2" · length u64 · crc32 of that many bytes before the seal u32 · crc32 u32
//! ```
//! Numbers are little-endian. The last crc32 of a frame covers all its other bytes. The magic identifies the kind of frame and its
//! version, so that [`crate::log::recover`] can search a damaged file for intact frames. In version 1 the checksum does not cover the
//! magic; the rest is equal.
//!
//! A frame of a later version is recognised by [`unknown`], so that it is not taken for damage. It must therefore have the length and
//! the place of the checksum of its kind, or this form: magic · length of the payload u32 · crc32 u32 · payload. Its checksum covers
//! the magic, so that a damaged version digit is not taken for a later version.

/// A game's id.
pub type Id = [u8; 16];

/// Maximum number of record bytes in one part. Part of the format: readers treat a longer part as damaged.
pub const PART_BYTES: usize = 7 * 1024;

/// Maximum number of parts of a record.
pub const MAX_PARTS: usize = 4096;

/// First bytes of a frame: `Mn`, the letter of its kind and the digit of its version.
pub type Magic = [u8; 4];

/// Frames that this build reads. Those of the ledger are [`crate::log::ledger`]'s, those of drawn batches [`crate::log::drawn`]'s.
pub const KNOWN: &[Magic] = &[
    *b"MnG1", *b"MnG2", *b"MnI1", *b"MnI2", *b"MnD1", *b"MnD2", *b"MnX1", *b"MnX2", *b"MnC1", *b"MnC2",
    *b"MnL1", *b"MnL2", *b"MnB1",
];

const PART_MAGIC: Magic = *b"MnG2";
const NAME_MAGIC: Magic = *b"MnI2";
const PART_HEAD: usize = 24;
const LOST_MAGIC: Magic = *b"MnD2";
const DELETED_MAGIC: Magic = *b"MnX2";
const SEAL_MAGIC: Magic = *b"MnC2";
/// Bytes before the payload of a frame in the general form.
const GENERAL_HEAD: usize = 12;

/// Length of a name frame in bytes.
pub const NAME_BYTES: usize = 32;
/// Length of a loss frame in bytes.
pub const LOST_BYTES: usize = 33;
/// Length of a deletion frame in bytes.
pub const DELETED_BYTES: usize = 16;
/// Length of a seal frame in bytes.
pub const SEAL_BYTES: usize = 20;
/// Length of a ledger frame in bytes: magic, generation, five counts of eight bytes and two of four, crc32.
pub const LEDGER_BYTES: usize = 64;
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
    let crc = checksum(&head[..20], payload);
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
    if !is_kind(*magic, PART_MAGIC) || length > PART_BYTES {
        return None;
    }
    let payload = bytes.get(PART_HEAD..PART_HEAD + length)?;
    let part = Part {
        sequence: u64::from_le_bytes(*sequence),
        part: u16::from_le_bytes(*part),
        parts: u16::from_le_bytes(*parts),
        payload,
    };
    (frame_checksum(&head[..20], payload) == u32::from_le_bytes(*crc) && part.part < part.parts)
        .then_some((part, PART_HEAD + length))
}

/// Returns a name frame: the game with this sequence number has this id.
pub fn encode_name(sequence: u64, id: &Id) -> [u8; NAME_BYTES] {
    let mut frame = [0; NAME_BYTES];
    frame[..4].copy_from_slice(&NAME_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    frame[12..28].copy_from_slice(id);
    let crc = checksum(&frame[..28], &[]);
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
    (is_kind(*magic, NAME_MAGIC) && frame_checksum(&frame[..28], &[]) == u32::from_le_bytes(*crc))
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
    let crc = checksum(&frame[..29], &[]);
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
    if !is_kind(*magic, LOST_MAGIC) || frame_checksum(body, &[]) != u32::from_le_bytes(*crc) {
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
    let crc = checksum(&frame[..12], &[]);
    frame[12..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the deletion frame at the beginning of `bytes`. Returns `None` if no intact one begins there.
pub fn decode_deleted(bytes: &[u8]) -> Option<u64> {
    let frame = bytes.first_chunk::<DELETED_BYTES>()?;
    let (body, crc) = frame.split_last_chunk::<4>()?;
    let (magic, sequence) = body.split_first_chunk::<4>()?;
    (is_kind(*magic, DELETED_MAGIC) && frame_checksum(body, &[]) == u32::from_le_bytes(*crc))
        .then_some(u64::from_le_bytes(sequence.try_into().ok()?))
}

/// Returns the seal of `commit`. The seal is written directly after the commit and proves that all of it was written.
pub fn encode_seal(commit: &[u8]) -> [u8; SEAL_BYTES] {
    let mut frame = [0; SEAL_BYTES];
    frame[..4].copy_from_slice(&SEAL_MAGIC);
    frame[4..12].copy_from_slice(&(commit.len() as u64).to_le_bytes());
    frame[12..16].copy_from_slice(&checksum(&[], commit).to_le_bytes());
    let crc = checksum(&frame[..16], &[]);
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
    if !is_kind(*magic, SEAL_MAGIC) || frame_checksum(body, &[]) != u32::from_le_bytes(*crc) {
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

/// Returns the magic of the intact frame at the beginning of `bytes` if `known` does not list it: a newer build wrote it.
pub fn unknown(bytes: &[u8], known: &[Magic]) -> Option<Magic> {
    let magic = *bytes.first_chunk::<4>()?;
    let [b'M', b'n', kind, version] = magic else {
        return None;
    };
    if !kind.is_ascii_uppercase() || !version.is_ascii_alphanumeric() || known.contains(&magic) {
        return None;
    }
    let of_its_kind = match kind {
        b'G' => is_whole_with_payload(bytes, PART_HEAD),
        b'I' => ends_with_checksum(bytes, NAME_BYTES),
        b'D' => ends_with_checksum(bytes, LOST_BYTES),
        b'X' => ends_with_checksum(bytes, DELETED_BYTES),
        b'C' => ends_with_checksum(bytes, SEAL_BYTES),
        b'L' => ends_with_checksum(bytes, LEDGER_BYTES),
        _ => false,
    };
    (of_its_kind || is_whole_with_payload(bytes, GENERAL_HEAD)).then_some(magic)
}

/// True if the frame has a head of `head` bytes, of which the last eight are the length of its payload and its checksum.
fn is_whole_with_payload(bytes: &[u8], head: usize) -> bool {
    let whole = || {
        let (body, rest) = bytes.split_at_checked(head - 4)?;
        let (crc, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*body.last_chunk::<4>()?) as usize;
        let payload = rest.get(..length)?;
        Some(checksum(body, payload) == u32::from_le_bytes(*crc))
    };
    whole().unwrap_or(false)
}

/// True if the first `length` bytes end with the checksum of the others.
fn ends_with_checksum(bytes: &[u8], length: usize) -> bool {
    bytes
        .get(..length)
        .and_then(|frame| frame.split_last_chunk::<4>())
        .is_some_and(|(body, crc)| checksum(body, &[]) == u32::from_le_bytes(*crc))
}

/// True if `magic` is that of a frame of this kind in version 1 or in the version of `current`.
fn is_kind(magic: Magic, current: Magic) -> bool {
    magic[..3] == current[..3] && (magic[3] == current[3] || magic[3] == b'1')
}

/// Returns the checksum of a frame whose bytes before the checksum are `head`. That of version 1 does not cover the magic.
fn frame_checksum(head: &[u8], payload: &[u8]) -> u32 {
    let covered = match head {
        [_, _, _, b'1', rest @ ..] => rest,
        all => all,
    };
    checksum(covered, payload)
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

    /// Returns a frame with another version digit. Its checksum, at `crc`, covers the magic.
    fn with_version(frame: &[u8], version: u8, crc: usize) -> Vec<u8> {
        let mut frame = frame.to_vec();
        frame[3] = version;
        let sum = checksum(&frame[..crc], &frame[crc + 4..]);
        frame[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
        frame
    }

    /// Returns a frame in version 1, whose checksum does not cover the magic.
    fn of_version_1(frame: &[u8], crc: usize) -> Vec<u8> {
        let mut frame = frame.to_vec();
        frame[3] = b'1';
        let sum = checksum(&frame[4..crc], &frame[crc + 4..]);
        frame[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
        frame
    }

    /// Returns a frame of an unknown kind in the general form.
    fn general(payload: &[u8]) -> Vec<u8> {
        let mut frame = b"MnQ1".to_vec();
        frame.extend((payload.len() as u32).to_le_bytes());
        let sum = checksum(&frame, payload);
        frame.extend(sum.to_le_bytes());
        frame.extend(payload);
        frame
    }

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
        fn frames_of_version_1_decode(sequence: u64, id: Id, record in prop::collection::vec(any::<u8>(), 0..300)) {
            let part = of_version_1(&encode_parts(sequence, &record).unwrap()[0], 20);
            prop_assert_eq!(decode_part(&part).map(|(part, _)| (part.sequence, part.payload)), Some((sequence, record.as_slice())));
            prop_assert_eq!(decode_name(&of_version_1(&encode_name(sequence, &id), 28)), Some((sequence, id)));
            prop_assert_eq!(decode_lost(&of_version_1(&encode_lost(sequence, Some(&id)), 29)), Some((sequence, Some(id))));
            prop_assert_eq!(decode_deleted(&of_version_1(&encode_deleted(sequence), 12)), Some(sequence));
            let sealed = [record.as_slice(), &of_version_1(&encode_seal(&record), 16)].concat();
            prop_assert_eq!(decode_seal(&sealed, record.len()), Some(Some(0)));
        }

        #[test]
        fn an_intact_frame_of_a_later_version_is_not_damage(sequence: u64, id: Id, record in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let part = encode_parts(sequence, &record).unwrap().remove(0);
            let frames: [(Vec<u8>, usize); 6] = [
                (part, 20),
                (encode_name(sequence, &id).to_vec(), 28),
                (encode_lost(sequence, Some(&id)).to_vec(), 29),
                (encode_deleted(sequence).to_vec(), 12),
                (encode_seal(&record).to_vec(), 16),
                (general(&record), 8),
            ];
            for (frame, crc) in frames {
                prop_assert_eq!(unknown(&frame, KNOWN), (crc == 8).then_some(*b"MnQ1"));
                let mut later = with_version(&frame, b'7', crc);
                let magic: Magic = later[..4].try_into().unwrap();
                prop_assert_eq!(unknown(&later, KNOWN), Some(magic));
                later[at.index(frame.len())] ^= 1 << bit;
                prop_assert_eq!(unknown(&later, KNOWN), None);
                // Only the digit is damaged.
                let mut damaged = frame;
                damaged[3] ^= 1 << bit;
                prop_assert_eq!(unknown(&damaged, KNOWN), None);
            }
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
