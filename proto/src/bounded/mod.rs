//! A prost codec that refuses messages which take far more memory than their bytes, before it decodes them.
//!
//! A limit on the bytes of a message alone would let a client make the server allocate many times as much: 16 MiB of empty ids
//! are 270 MiB in memory.

mod unpacked;

use prost::Message;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder},
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

pub use unpacked::Shaped;

/// Number of bytes of memory that every message may take.
const FREE_BYTES: usize = 1 << 20;
/// Number of bytes of memory that a message may take for each of its bytes. Packed numbers of 64 bits need as many.
const FOR_EACH_BYTE: usize = 8;

/// Codec of prost which refuses received messages that take more memory than 1 MiB and eight times their length.
#[derive(Clone, Debug)]
pub struct BoundedCodec<T, U>(ProstCodec<T, U>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(ProstCodec::default())
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Shaped + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(self.0.decoder())
    }
}

/// Decoder of [`BoundedCodec`].
#[derive(Debug)]
pub struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Shaped + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        use bytes::Buf as _;

        // tonic hands over a whole message in one contiguous buffer.
        check::<U>(source.chunk())?;
        self.0.decode(source)
    }
}

/// Checks the memory that a message will take.
///
/// # Errors
/// INVALID_ARGUMENT.
pub(crate) fn check<U: Shaped>(bytes: &[u8]) -> Result<(), Status> {
    let most = FREE_BYTES + FOR_EACH_BYTE * bytes.len();
    if unpacked::takes_at_most::<U>(bytes, most) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "unpacked, the message of {} bytes would take more than {most} bytes of memory",
        bytes.len()
    )))
}

#[cfg(test)]
mod tests;
