//! Sections of a record: plain bytes, packed by zstd one by one, so that each kind of number gets its own statistics.

use std::{cell::RefCell, io};

use zstd::bulk::{Compressor, Decompressor};

use super::{
    error::{DecodeError, MAX_VALUES},
    reader::{Reader, put_varint},
};

/// zstd's level: the knee of size against time for sections of a few kilobytes.
const LEVEL: i32 = 3;

/// Most plain bytes of a section: four planes of [`MAX_VALUES`] and their row edits.
const MAX_PLAIN: usize = 20 * MAX_VALUES;

/// Packs sections; kept for each thread, for zstd's tables are worth re-using.
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
    /// Appends a section of what `write` writes.
    pub fn put(&mut self, record: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.plain.clear();
        write(&mut self.plain);
        let packed = self.zstd.compress(&self.plain)?;
        put_varint(self.plain.len() as u64, record);
        put_varint(packed.len() as u64, record);
        record.extend_from_slice(&packed);
        // One long game must not hold its memory for ever.
        self.plain.shrink_to(1 << 20);
        Ok(())
    }
}

/// Unpacks sections.
#[derive(Default)]
pub(super) struct Unpacker {
    zstd: Option<Decompressor<'static>>,
    plain: Vec<u8>,
}

impl Unpacker {
    /// The plain bytes of the next section.
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
        // zstd packs at most about 2^17 bytes into a block of 4, so a longer claim is a lie; refusing it
        // here keeps a damaged length from reserving memory.
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
