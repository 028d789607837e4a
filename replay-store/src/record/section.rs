//! Sections of a record. Each section is packed by zstd separately, so that each kind of number has its own statistics.

use std::{cell::RefCell, io};

use zstd::bulk::{Compressor, Decompressor};

use super::{
    error::{DecodeError, MAX_VALUES},
    reader::{Reader, put_varint},
};

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
    /// Unpacks the next section.
    pub fn take(&mut self, reader: &mut Reader<'_>) -> Result<&[u8], DecodeError> {
        let length = reader.count(MAX_PLAIN)?;
        let packed = reader.count(MAX_PLAIN)?;
        let packed = reader.take(packed)?;
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self
                .zstd
                .insert(Decompressor::new().map_err(|_| DecodeError::Packed)?),
        };
        self.plain.clear();
        // zstd packs at most about 2^17 bytes into a block of 4, so a larger length is wrong. It is refused here, so that a damaged
        // length does not reserve memory.
        if length / (1 << 15) > packed.len() {
            return Err(DecodeError::Packed);
        }
        self.plain.reserve(length);
        let unpacked = zstd
            .decompress_to_buffer(packed, &mut self.plain)
            .map_err(|_| DecodeError::Packed)?;
        if unpacked == length {
            Ok(&self.plain)
        } else {
            Err(DecodeError::Packed)
        }
    }
}
