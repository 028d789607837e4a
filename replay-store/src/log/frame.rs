//! Checksummed frames: what is written for a game, part by part, so that damage is found and costs that game alone.
//!
//! ```text
//! part = "MnG1" · sequence u64 · part u16 · parts u16 · length u32 · crc32 u32 · payload
//! name = "MnI1" · sequence u64 · id [16] · crc32 u32
//! lost = "MnD1" · sequence u64 · whether the id is known u8 · id [16] · crc32 u32
//! deleted = "MnX1" · sequence u64 · crc32 u32
//! seal = "MnC1" · length u64 · crc32 of so many bytes before it u32 · crc32 u32
//! ```
//! All numbers little-endian; the crc is over everything else after the magic. A frame says by itself
//! what it is, so [`crate::log::salvage`] can find it in a database file that can no longer be opened.

/// A game's id.
pub type Id = [u8; 16];

/// Most bytes of a record in one part. Seventeen parts, the most a leaf of sled holds, stay below the
/// size at which sled 0.34 would put the leaf into a file of its own, which it never syncs.
pub const PART_BYTES: usize = 7 * 1024;

/// Most parts of a record.
pub const MAX_PARTS: usize = 4096;

const PART_MAGIC: [u8; 4] = *b"MnG1";
const NAME_MAGIC: [u8; 4] = *b"MnI1";
const PART_HEAD: usize = 24;
const LOST_MAGIC: [u8; 4] = *b"MnD1";
const DELETED_MAGIC: [u8; 4] = *b"MnX1";
const SEAL_MAGIC: [u8; 4] = *b"MnC1";

/// Bytes of a framed name.
pub const NAME_BYTES: usize = 32;
/// Bytes of a framed loss.
pub const LOST_BYTES: usize = 33;
/// Bytes of a framed deletion.
pub const DELETED_BYTES: usize = 16;
/// Bytes of a framed seal.
pub const SEAL_BYTES: usize = 20;
/// Most bytes that the parts of one game take.
pub const MAX_GAME_BYTES: u64 = (MAX_PARTS * (PART_HEAD + PART_BYTES)) as u64;

/// A part of a record that carries the right checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The game's sequence number.
    pub sequence: u64,
    /// Which part this is, from 0.
    pub part: u16,
    /// Parts of the whole record.
    pub parts: u16,
    /// The part's bytes.
    pub payload: &'a [u8],
}

/// Splits a record into framed parts; `None` where it is longer than [`MAX_PARTS`] of them.
pub fn split(sequence: u64, record: &[u8]) -> Option<Vec<Vec<u8>>> {
    let payloads = payloads(record)?;
    let parts = payloads.len();
    let framed = payloads.into_iter().enumerate().map(|(part, payload)| {
        let mut frame = Vec::with_capacity(PART_HEAD + payload.len());
        put_part(sequence, part, parts, payload, &mut frame);
        frame
    });
    Some(framed.collect())
}

/// Appends a record's framed parts, back to back; `None` where it is longer than [`MAX_PARTS`] of them.
pub fn put(sequence: u64, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let payloads = payloads(record)?;
    let parts = payloads.len();
    for (part, payload) in payloads.into_iter().enumerate() {
        put_part(sequence, part, parts, payload, out);
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

fn put_part(sequence: u64, part: usize, parts: usize, payload: &[u8], out: &mut Vec<u8>) {
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

/// Reads a part that begins at the first of `bytes` (more may follow), with its length; `None` where there is none.
pub fn part(bytes: &[u8]) -> Option<(Part<'_>, usize)> {
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

/// Frames a game's name: that this sequence number has this id.
pub fn name(sequence: u64, id: &Id) -> [u8; NAME_BYTES] {
    let mut frame = [0; NAME_BYTES];
    frame[..4].copy_from_slice(&NAME_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    frame[12..28].copy_from_slice(id);
    let crc = checksum(&frame[4..28], &[]);
    frame[28..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads a name that begins at the first of `bytes`; `None` where there is none.
pub fn named(bytes: &[u8]) -> Option<(u64, Id)> {
    let frame = bytes.first_chunk::<NAME_BYTES>()?;
    let (magic, rest) = frame.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (id, rest) = rest.split_first_chunk::<16>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    (*magic == NAME_MAGIC && checksum(&frame[4..28], &[]) == u32::from_le_bytes(*crc))
        .then_some((u64::from_le_bytes(*sequence), *id))
}

/// Frames a loss: that this sequence number's game is gone.
pub fn put_lost(sequence: u64, id: Option<&Id>) -> [u8; LOST_BYTES] {
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

/// Reads a loss that begins at the first of `bytes`; `None` where there is none.
pub fn lost(bytes: &[u8]) -> Option<(u64, Option<Id>)> {
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

/// Frames a deletion: that this sequence number's game is not wanted any more.
pub fn put_deleted(sequence: u64) -> [u8; DELETED_BYTES] {
    let mut frame = [0; DELETED_BYTES];
    frame[..4].copy_from_slice(&DELETED_MAGIC);
    frame[4..12].copy_from_slice(&sequence.to_le_bytes());
    let crc = checksum(&frame[4..12], &[]);
    frame[12..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads a deletion that begins at the first of `bytes`; `None` where there is none.
pub fn deleted(bytes: &[u8]) -> Option<u64> {
    let frame = bytes.first_chunk::<DELETED_BYTES>()?;
    let (body, crc) = frame.split_last_chunk::<4>()?;
    let (magic, sequence) = body.split_first_chunk::<4>()?;
    (*magic == DELETED_MAGIC && checksum(sequence, &[]) == u32::from_le_bytes(*crc))
        .then_some(u64::from_le_bytes(sequence.try_into().ok()?))
}

/// Frames a seal: that all of `commit`, which stands right before it, was written.
pub fn seal(commit: &[u8]) -> [u8; SEAL_BYTES] {
    let mut frame = [0; SEAL_BYTES];
    frame[..4].copy_from_slice(&SEAL_MAGIC);
    frame[4..12].copy_from_slice(&(commit.len() as u64).to_le_bytes());
    frame[12..16].copy_from_slice(&checksum(&[], commit).to_le_bytes());
    let crc = checksum(&frame[4..16], &[]);
    frame[16..].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Reads the seal that begins at `at` of `bytes`; gives where the commit begins that is whole before it. `None` where there is
/// no seal, `Some(None)` where what it seals is not whole.
pub fn sealed(bytes: &[u8], at: usize) -> Option<Option<usize>> {
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

/// CRC-32 of two runs of bytes, back to back.
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
        fn records_come_back_in_parts(sequence: u64, record in prop::collection::vec(any::<u8>(), 0..40_000), more in 0usize..9) {
            let frames = split(sequence, &record).unwrap();
            let mut back = Vec::new();
            for (at, frame) in frames.iter().enumerate() {
                let mut bytes = frame.clone();
                bytes.extend(vec![7; more]);
                let (part, length) = part(&bytes).unwrap();
                prop_assert_eq!((part.sequence, part.part as usize, part.parts as usize), (sequence, at, frames.len()));
                prop_assert_eq!(length, frame.len());
                back.extend_from_slice(part.payload);
            }
            prop_assert_eq!(back, record);
        }

        #[test]
        fn one_flipped_bit_is_found(sequence: u64, record in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = split(sequence, &record).unwrap().remove(0);
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
            prop_assert!(part(&frame).is_none());
        }

        #[test]
        fn losses_and_deletions_come_back_and_damage_is_found(sequence: u64, id in any::<Option<Id>>(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = put_lost(sequence, id.as_ref());
            prop_assert_eq!(lost(&frame), Some((sequence, id)));
            frame[at.index(LOST_BYTES)] ^= 1 << bit;
            prop_assert_eq!(lost(&frame), None);
            let mut frame = put_deleted(sequence);
            prop_assert_eq!(deleted(&frame), Some(sequence));
            frame[at.index(DELETED_BYTES)] ^= 1 << bit;
            prop_assert_eq!(deleted(&frame), None);
        }

        #[test]
        fn a_seal_holds_for_its_whole_commit_only(before in prop::collection::vec(any::<u8>(), 0..50), commit in prop::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = before.clone();
            bytes.extend_from_slice(&commit);
            let end = bytes.len();
            bytes.extend_from_slice(&seal(&commit));
            prop_assert_eq!(sealed(&bytes, end), Some(Some(before.len())));
            prop_assert_eq!(sealed(&bytes[before.len() + 1..], end - before.len() - 1), Some(None));
            bytes[before.len() + at.index(commit.len() + SEAL_BYTES)] ^= 1 << bit;
            prop_assert!(!matches!(sealed(&bytes, end), Some(Some(_))));
        }

        #[test]
        fn names_come_back_and_damage_is_found(sequence: u64, id: Id, at in 0usize..32, bit in 0u8..8) {
            let mut frame = name(sequence, &id);
            prop_assert_eq!(named(&frame), Some((sequence, id)));
            frame[at] ^= 1 << bit;
            prop_assert_eq!(named(&frame), None);
        }
    }
}
