//! The frames of a log: their kinds and payloads. Damage to a frame is detected and costs only the game that the frame belongs to.
//!
//! ```text
//! G game    = sequence u64 · packed record
//! I name    = sequence u64 · id [16]
//! D lost    = sequence u64 · id [16], or nothing if the id is not known
//! X deleted = sequence u64
//! L ledger  = numbers u64 …                                  (`super::ledger`)
//! C seal    = length u64 of the commit before it · crc32 u32 of these bytes
//! ```
//! Numbers are little-endian. The form around the payload is that of [`durable::frame`].

use durable::frame::{self, Frame};

use super::ledger::Ledger;

/// A game's id.
pub type Id = [u8; 16];

/// Length in bytes of a frame with a ledger.
pub const LEDGER_BYTES: usize = frame::HEAD + Ledger::BYTES;

/// Contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A game: its sequence number and its packed record.
    Game(u64, &'a [u8]),
    /// The game with this sequence number has this id. The name is a frame of its own, so that the id of a damaged game is known.
    Name(u64, Id),
    /// The game with this sequence number is lost.
    Lost(u64, Option<Id>),
    /// The game with this sequence number was deleted.
    Deleted(u64),
    /// The ledger of a commit.
    Ledger(Ledger),
    /// The end of a commit, which proves that all of it was written.
    Seal {
        /// Length of the commit in bytes, without the seal.
        length: u64,
        /// CRC-32 of these bytes.
        crc: u32,
    },
}

impl<'a> Content<'a> {
    /// Appends a frame with these contents.
    pub fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Game(sequence, record) => frame::append(b'G', &[&sequence.to_le_bytes(), record], out),
            Self::Name(sequence, id) => frame::append(b'I', &[&sequence.to_le_bytes(), id], out),
            Self::Lost(sequence, id) => {
                let id = id.as_ref().map_or(&[][..], |id| id);
                frame::append(b'D', &[&sequence.to_le_bytes(), id], out);
            }
            Self::Deleted(sequence) => frame::append(b'X', &[&sequence.to_le_bytes()], out),
            Self::Ledger(ledger) => frame::append(b'L', &[&ledger.pack(0)], out),
            Self::Seal { length, crc } => {
                frame::append(b'C', &[&length.to_le_bytes(), &crc.to_le_bytes()], out);
            }
        }
    }

    /// Reads the contents of a frame. Returns `None` if this build does not know the frame.
    pub fn of(frame: &Frame<'a>) -> Option<Self> {
        let payload = frame.of_kind(frame.kind)?;
        if frame.kind == b'L' {
            return Ledger::unpack(payload).map(|(ledger, _)| Self::Ledger(ledger));
        }
        let (first, rest) = payload.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*first);
        match frame.kind {
            b'G' => Some(Self::Game(number, rest)),
            b'I' => Some(Self::Name(number, rest.try_into().ok()?)),
            b'D' if rest.is_empty() => Some(Self::Lost(number, None)),
            b'D' => Some(Self::Lost(number, Some(rest.try_into().ok()?))),
            b'X' if rest.is_empty() => Some(Self::Deleted(number)),
            b'C' => Some(Self::Seal {
                length: number,
                crc: u32::from_le_bytes(rest.try_into().ok()?),
            }),
            _ => None,
        }
    }
}

/// Appends the seal of the commit that `out` consists of.
pub fn append_seal(out: &mut Vec<u8>) {
    let seal = Content::Seal {
        length: out.len() as u64,
        crc: frame::checksum(&[], out),
    };
    seal.append(out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn contents_come_back(sequence: u64, id: Id, lost in any::<Option<Id>>(), record in prop::collection::vec(any::<u8>(), 0..300), crc: u32) {
            for content in [
                Content::Game(sequence, &record),
                Content::Name(sequence, id),
                Content::Lost(sequence, lost),
                Content::Deleted(sequence),
                Content::Ledger(Ledger { next_sequence: sequence, ..Ledger::new() }),
                Content::Seal { length: sequence, crc },
            ] {
                let mut bytes = Vec::new();
                content.append(&mut bytes);
                prop_assert_eq!(Content::of(&frame::read(&bytes).unwrap()), Some(content));
            }
        }
    }
}
