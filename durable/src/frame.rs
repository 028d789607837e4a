//! Checksummed frames in a file that may be cut off or damaged anywhere: the units of the log of games, of an actor's spool and of
//! archives.
//!
//! ```text
//! frame = "Mn" · kind u8 · version u8 · length of the payload u32 · crc32 u32 · payload
//! ```
//! Numbers are little-endian. The CRC-32 covers all other bytes of the frame, so that damage to the kind or the version is not taken
//! for a frame of another build. A frame of a later version must keep this form: a reader then sees that it is intact and unknown.

use std::{
    io::{self, Read},
    ops::Range,
};

/// Length of the bytes before the payload.
pub const HEAD: usize = 12;
/// Maximum length of a payload in bytes. A larger length means that the frame is damaged.
pub const MAX_PAYLOAD: usize = 1 << 28;

const MARK: &[u8; 2] = b"Mn";
const VERSION: u8 = b'1';

/// An intact frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Letter of the kind.
    pub kind: u8,
    /// Digit of the version.
    pub version: u8,
    /// Payload.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the payload if the frame has this kind, in the version that this build writes.
    pub fn of_kind(&self, kind: u8) -> Option<&'a [u8]> {
        (self.kind == kind && self.version == VERSION).then_some(self.payload)
    }

    /// Returns the first four bytes as text for messages, for example `MnG1`.
    pub fn name(&self) -> String {
        [MARK[0], MARK[1], self.kind, self.version]
            .escape_ascii()
            .to_string()
    }
}

/// Appends a frame. The payload consists of `parts`.
pub fn append(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    let begin = out.len();
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&[MARK[0], MARK[1], kind, VERSION]);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for part in parts {
        out.extend_from_slice(part);
    }
    let crc = checksum(&out[begin..begin + 8], &out[begin + HEAD..]);
    out[begin + 8..begin + HEAD].copy_from_slice(&crc.to_le_bytes());
}

/// Reads the frame at the beginning of `bytes`.
///
/// # Errors
/// The reason why no intact frame begins there.
pub fn read(bytes: &[u8]) -> Result<Frame<'_>, &'static str> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or("cut off")?;
    let (kind, length, crc) = parse(head)?;
    let payload = rest.get(..length).ok_or("cut off")?;
    if checksum(&head[..8], payload) != crc {
        return Err("wrong checksum");
    }
    let [kind, version] = kind;
    Ok(Frame {
        kind,
        version,
        payload,
    })
}

/// Reads the next frame of a stream into `buffer`.
///
/// # Errors
/// The error of the stream; [`io::ErrorKind::UnexpectedEof`] if it ends within the frame, [`io::ErrorKind::InvalidData`] if the frame is
/// damaged or its payload is longer than `longest`.
pub fn read_from<'a>(
    input: &mut impl Read,
    longest: usize,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Frame<'a>> {
    let damaged = |reason| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut head = [0; HEAD];
    input.read_exact(&mut head)?;
    let ([kind, version], length, crc) = parse(&head).map_err(damaged)?;
    if length > longest {
        return Err(damaged("impossible length"));
    }
    // The memory grows with what is read, so that a damaged length reserves none.
    buffer.clear();
    input.take(length as u64).read_to_end(buffer)?;
    if buffer.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if checksum(&head[..8], buffer) != crc {
        return Err(damaged("wrong checksum"));
    }
    Ok(Frame {
        kind,
        version,
        payload: buffer,
    })
}

/// Returns kind and version, the length of the payload and the checksum.
fn parse(head: &[u8; HEAD]) -> Result<([u8; 2], usize, u32), &'static str> {
    let [m, n, kind, version, a, b, c, d, crc @ ..] = *head;
    if [m, n] != *MARK || !kind.is_ascii_uppercase() || !version.is_ascii_alphanumeric() {
        return Err("no frame begins here");
    }
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > MAX_PAYLOAD {
        return Err("impossible length");
    }
    Ok(([kind, version], length, u32::from_le_bytes(crc)))
}

/// Returns an iterator over the ranges of a file: each intact frame, and each range of bytes without one, with the reason. The ranges
/// are adjacent and cover all bytes.
pub fn ranges(bytes: &[u8]) -> Ranges<'_> {
    Ranges { bytes, at: 0 }
}

/// Iterator of [`ranges`].
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Ranges<'a> {
    type Item = (Range<usize>, Result<Frame<'a>, &'static str>);

    fn next(&mut self) -> Option<Self::Item> {
        let begin = self.at;
        let rest = self.bytes.get(begin..).filter(|rest| !rest.is_empty())?;
        let found = read(rest);
        self.at = match &found {
            Ok(frame) => begin + HEAD + frame.payload.len(),
            Err(_) => memchr::memmem::find_iter(&rest[1..], MARK)
                .map(|at| begin + 1 + at)
                .find(|&at| read(&self.bytes[at..]).is_ok())
                .unwrap_or(self.bytes.len()),
        };
        Some((begin..self.at, found))
    }
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
    use proptest::prelude::*;

    use super::*;

    fn file(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for payload in payloads {
            let (first, second) = payload.split_at(payload.len() / 2);
            append(b'T', &[first, second], &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn whole(bytes: &[u8]) -> Vec<&[u8]> {
        let found = ranges(bytes).filter_map(|(_, found)| found.ok());
        found.filter_map(|frame| frame.of_kind(b'T')).collect()
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        // A payload may contain the beginning of a frame.
        let byte = prop_oneof![any::<u8>(), prop::sample::select(b"MnT1".to_vec())];
        prop::collection::vec(prop::collection::vec(byte, 0..30), 1..5)
    }

    #[test]
    fn fuzz_files_of_frames() {
        let (bytes, _) = file(&[b"a game".to_vec(), b"another game".to_vec()]);
        test_support::fuzz("frames", &[&bytes], |bytes| {
            let lengths: usize = ranges(bytes).map(|(range, _)| range.len()).sum();
            assert_eq!(lengths, bytes.len(), "a byte is in no range");
            let mut buffer = Vec::new();
            let streamed = read_from(&mut &bytes[..], MAX_PAYLOAD, &mut buffer).ok();
            assert_eq!(streamed, read(bytes).ok());
            !whole(bytes).is_empty()
        });
    }

    proptest! {
        #[test]
        fn cut_anywhere_the_whole_frames_remain(payloads in payloads()) {
            let (bytes, ends) = file(&payloads);
            for cut in 0..=bytes.len() {
                let count = ends.iter().filter(|&&end| end <= cut).count();
                prop_assert_eq!(whole(&bytes[..cut]), payloads[..count].iter().map(Vec::as_slice).collect::<Vec<_>>());
                let is_damaged = ranges(&bytes[..cut]).any(|(_, found)| found.is_err());
                prop_assert_eq!(is_damaged, cut > 0 && !ends.contains(&cut));
            }
        }

        #[test]
        fn one_damaged_byte_costs_one_frame(payloads in payloads(), place in any::<prop::sample::Index>(), flip in 1u8..) {
            let (mut bytes, ends) = file(&payloads);
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            let hit = ends.iter().filter(|&&end| end <= at).count();
            let mut expected: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            expected.remove(hit);
            prop_assert_eq!(whole(&bytes), expected);
            let damaged: usize = ranges(&bytes).filter(|(_, found)| found.is_err()).map(|(range, _)| range.len()).sum();
            prop_assert_eq!(damaged, payloads[hit].len() + HEAD);
        }
    }

    #[test]
    fn an_intact_frame_of_another_version_is_not_damage() {
        let mut bytes = Vec::new();
        append(b'T', &[b"more"], &mut bytes);
        bytes[3] = b'2';
        assert_eq!(read(&bytes), Err("wrong checksum"), "only the digit is damaged");
        let crc = checksum(&bytes[..8], &bytes[HEAD..]);
        bytes[8..HEAD].copy_from_slice(&crc.to_le_bytes());
        let found = read(&bytes).unwrap();
        assert_eq!((found.name().as_str(), found.of_kind(b'T')), ("MnT2", None));
    }
}
