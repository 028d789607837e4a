//! Limits of a record, and the errors of decoding.

/// Most positions a game may have.
pub const MAX_POSITIONS: usize = 1 << 16;

/// Most values a game's rows, or its visit entries, may have in all.
pub const MAX_VALUES: usize = 1 << 24;

/// Bytes that are not a record of this or an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end early.
    #[error("the record ends early")]
    Short,
    /// Bytes are left over.
    #[error("the record has bytes left over")]
    Trailing,
    /// A number that cannot stand where it stands.
    #[error("a number in the record is out of its range")]
    Number,
    /// A head that is no message.
    #[error("the head of the record is no message")]
    Head,
    /// An edit that leaves its reference row.
    #[error("a row edit in the record leaves its row")]
    Edit,
    /// A section that zstd does not unpack.
    #[error("a section of the record does not unpack")]
    Packed,
    /// A version this build does not know.
    #[error("record version {0} is unknown to this build")]
    Version(u8),
}
