//! Checksummed frames: what is written for a game, part by part, so that damage is found and costs that game alone.
//!
//! ```text
//! part = "MnG1" · sequence u64 · part u16 · parts u16 · length u32 · crc32 u32 · payload
//! name = "MnI1" · sequence u64 · id [16] · crc32 u32
//! ```
//! All numbers little-endian; the crc is over everything else after the magic. A frame says by itself
//! what it is, so [`crate::salvage`] can find it in a database file that can no longer be opened.

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
const NAME_BYTES: usize = 32;

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
    let parts = record.len().div_ceil(PART_BYTES).max(1);
    if parts > MAX_PARTS {
        return None;
    }
    let frame = |(part, payload): (usize, &[u8])| {
        let mut frame = Vec::with_capacity(PART_HEAD + payload.len());
        frame.extend_from_slice(&PART_MAGIC);
        frame.extend_from_slice(&sequence.to_le_bytes());
        frame.extend_from_slice(&(part as u16).to_le_bytes());
        frame.extend_from_slice(&(parts as u16).to_le_bytes());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        let crc = checksum(&frame[4..20], payload);
        frame.extend_from_slice(&crc.to_le_bytes());
        frame.extend_from_slice(payload);
        frame
    };
    Some(if record.is_empty() {
        vec![frame((0, &[]))]
    } else {
        record.chunks(PART_BYTES).enumerate().map(frame).collect()
    })
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
        fn names_come_back_and_damage_is_found(sequence: u64, id: Id, at in 0usize..32, bit in 0u8..8) {
            let mut frame = name(sequence, &id);
            prop_assert_eq!(named(&frame), Some((sequence, id)));
            frame[at] ^= 1 << bit;
            prop_assert_eq!(named(&frame), None);
        }
    }
}
