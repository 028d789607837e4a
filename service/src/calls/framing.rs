//! The frames of gRPC in a body: each message has a header of a flag and a length (four bytes, big-endian).

/// Length of the header of a message, in bytes.
const HEADER_BYTES: usize = 5;

/// Position in a body, in terms of messages.
#[derive(Debug, Default)]
pub(super) struct Framing {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have arrived.
    header_read: usize,
    /// Bytes of the message that have not arrived; 0 before its header is complete.
    missing: usize,
    /// Bytes of the message that have arrived.
    arrived: usize,
}

/// Result of [`Framing::read`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Largest number of bytes of one message that have arrived.
    pub(super) largest: usize,
    /// True if a message was completed.
    pub(super) has_completed: bool,
}

/// Error: a message is longer than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong(pub(super) usize);

impl Framing {
    /// Reads the next bytes of the body. Messages may have at most `most` bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8], most: usize) -> Result<Read, TooLong> {
        let mut read = Read {
            largest: self.arrived,
            has_completed: false,
        };
        while !bytes.is_empty() {
            if self.header_read < HEADER_BYTES {
                let taken = bytes.len().min(HEADER_BYTES - self.header_read);
                let (now, later) = bytes.split_at(taken);
                self.header[self.header_read..self.header_read + taken].copy_from_slice(now);
                self.header_read += taken;
                bytes = later;
                if self.header_read < HEADER_BYTES {
                    break;
                }
                let [_, length @ ..] = self.header;
                self.missing = u32::from_be_bytes(length) as usize;
                if self.missing > most {
                    return Err(TooLong(self.missing));
                }
            }
            let taken = bytes.len().min(self.missing);
            self.missing -= taken;
            self.arrived += taken;
            bytes = &bytes[taken..];
            read.largest = read.largest.max(self.arrived);
            if self.missing == 0 {
                read.has_completed = true;
                *self = Self::default();
            }
        }
        Ok(read)
    }

    /// True if a message has begun and is not complete.
    pub(super) fn is_within_message(&self) -> bool {
        self.header_read > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(length as u32).to_be_bytes());
        bytes.resize(HEADER_BYTES + length, 7);
        bytes
    }

    #[test]
    fn the_length_in_a_header_is_checked_before_the_message_arrives() {
        let mut framing = Framing::default();
        let bytes = message(1000);
        assert_eq!(framing.read(&bytes[..5], 999), Err(TooLong(1000)));
        let mut framing = Framing::default();
        assert!(framing.read(&bytes[..5], 1000).is_ok() && framing.is_within_message());
        assert_eq!(
            framing.read(&bytes[5..400], 1000).map(|read| read.largest),
            Ok(395)
        );
    }

    proptest! {
        #[test]
        fn messages_are_told_apart_however_the_body_is_cut(
            lengths in prop::collection::vec(0usize..300, 1..8),
            cut in 1usize..64,
        ) {
            let body: Vec<u8> = lengths.iter().flat_map(|&length| message(length)).collect();
            let mut framing = Framing::default();
            let mut largest = 0;
            for piece in body.chunks(cut) {
                largest = largest.max(framing.read(piece, 300).unwrap().largest);
            }
            prop_assert!(!framing.is_within_message());
            prop_assert_eq!(Some(largest), lengths.iter().copied().max());
        }
    }
}
