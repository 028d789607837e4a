//! Sections of a record. Each section is packed by zstd separately, so that each kind of number has its own statistics.
//!
//! The bytes may be damaged. Every step is checked, nothing panics, and a length is compared with a limit before memory is reserved.

use std::{cell::RefCell, io};

use prost::encoding::decode_varint;
pub(super) use prost::encoding::encode_varint as put_varint;
use zstd::bulk::{Compressor, Decompressor};

/// Maximum number of positions of a game.
pub const MAX_POSITIONS: usize = 1 << 16;

/// Maximum number of values in a game's rows, and maximum number of its visit entries.
pub const MAX_VALUES: usize = 1 << 24;

/// Error: the bytes are not a record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record is damaged: the reason.
    #[error("{0}")]
    Damaged(&'static str),
    /// This build does not know the version.
    #[error("record version {0} is unknown to this build")]
    Version(u8),
}

impl DecodeError {
    /// The bytes end early.
    pub(super) const SHORT: Self = Self::Damaged("the record ends early");
    /// Bytes are left over at the end.
    pub(super) const TRAILING: Self = Self::Damaged("the record has bytes left over");
    /// A number is out of its range.
    pub(super) const NUMBER: Self = Self::Damaged("a number in the record is out of its range");
    /// A section cannot be unpacked by zstd.
    const PACKED: Self = Self::Damaged("a section of the record does not unpack");
}

/// Compression level of zstd. Higher levels take much more time for little gain on sections of a few kilobytes.
const LEVEL: i32 = 3;

/// Maximum length of a section before packing, in bytes: four planes of [`MAX_VALUES`] and their row edits.
const MAX_PLAIN: usize = 20 * MAX_VALUES;

/// Packer of sections. Each thread keeps one, because zstd's tables can be reused.
pub(super) struct Packer {
    zstd: Compressor<'static>,
    plain: Vec<u8>,
}

thread_local! {
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
}

/// Runs `work` with this thread's packer.
pub(super) fn with_packer<T>(work: impl FnOnce(&mut Packer) -> io::Result<T>) -> io::Result<T> {
    PACKER.with_borrow_mut(|slot| {
        let packer = match slot {
            Some(packer) => packer,
            None => slot.insert(Packer {
                zstd: Compressor::new(LEVEL)?,
                plain: Vec::new(),
            }),
        };
        work(packer)
    })
}

impl Packer {
    /// Appends a section with the bytes that `write` appends.
    pub fn put(&mut self, record: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.plain.clear();
        write(&mut self.plain);
        let packed = self.zstd.compress(&self.plain)?;
        put_varint(self.plain.len() as u64, record);
        put_varint(packed.len() as u64, record);
        record.extend_from_slice(&packed);
        // After a long game, the memory is released again.
        self.plain.shrink_to(1 << 20);
        Ok(())
    }
}

/// Unpacker of sections.
#[derive(Default)]
pub(super) struct Unpacker {
    zstd: Option<Decompressor<'static>>,
    plain: Vec<u8>,
}

impl Unpacker {
    /// Unpacks the next section and reads it with `read`, which must take all of it.
    pub fn section<T>(
        &mut self,
        reader: &mut Reader<'_>,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut section = Reader::new(self.take(reader)?);
        let found = read(&mut section)?;
        section.end()?;
        Ok(found)
    }

    /// Unpacks the next section.
    pub fn take(&mut self, reader: &mut Reader<'_>) -> Result<&[u8], DecodeError> {
        let length = reader.count(MAX_PLAIN)?;
        let packed = reader.count(MAX_PLAIN)?;
        let packed = reader.take(packed)?;
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self
                .zstd
                .insert(Decompressor::new().map_err(|_| DecodeError::PACKED)?),
        };
        self.plain.clear();
        // zstd packs at most about 2^17 bytes into a block of 4, so a larger length is wrong. It is refused here, so that a damaged
        // length does not reserve memory.
        if length / (1 << 15) > packed.len() {
            return Err(DecodeError::PACKED);
        }
        self.plain.reserve(length);
        let unpacked = zstd
            .decompress_to_buffer(packed, &mut self.plain)
            .map_err(|_| DecodeError::PACKED)?;
        if unpacked == length {
            Ok(&self.plain)
        } else {
            Err(DecodeError::PACKED)
        }
    }
}

/// A reader with a position in a slice of bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Returns a reader that starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads the next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a LEB128 number.
    fn varint(&mut self) -> Result<u64, DecodeError> {
        decode_varint(&mut self.rest).map_err(|_| DecodeError::NUMBER)
    }

    /// Reads a count of at most `limit`.
    pub fn count(&mut self, limit: usize) -> Result<usize, DecodeError> {
        match usize::try_from(self.varint()?) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(DecodeError::NUMBER),
        }
    }

    /// Returns all bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Returns an error if bytes are left.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::TRAILING)
        }
    }
}
