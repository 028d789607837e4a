//! Limits of a record, and the errors of decoding.

/// Maximum number of positions of a game.
pub const MAX_POSITIONS: usize = 1 << 16;

/// Maximum number of values in a game's rows, and maximum number of its visit entries.
pub const MAX_VALUES: usize = 1 << 24;

/// Error: the bytes are not a record of this or of an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end early.
    #[error("the record ends early")]
    Short,
    /// Bytes are left over at the end.
    #[error("the record has bytes left over")]
    Trailing,
    /// A number is out of its range.
    #[error("a number in the record is out of its range")]
    Number,
    /// The head is not a message.
    #[error("the head of the record is no message")]
    Head,
    /// An edit refers to values outside its reference row.
    #[error("a row edit in the record leaves its row")]
    Edit,
    /// A section cannot be unpacked by zstd.
    #[error("a section of the record does not unpack")]
    Packed,
    /// This build does not know the version.
    #[error("record version {0} is unknown to this build")]
    Version(u8),
}
