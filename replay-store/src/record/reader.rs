//! Reader of bytes that may be damaged. Every step is checked, nothing panics, and a length is compared with a limit before memory is
//! reserved.

use super::error::DecodeError;

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
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a LEB128 number.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Number)
    }

    /// Reads a count of at most `limit`.
    pub fn count(&mut self, limit: usize) -> Result<usize, DecodeError> {
        match usize::try_from(self.varint()?) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(DecodeError::Number),
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
            Err(DecodeError::Trailing)
        }
    }
}

/// Appends a LEB128 number.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            for &value in &values {
                put_varint(value, &mut bytes);
            }
            let mut reader = Reader::new(&bytes);
            for &value in &values {
                prop_assert_eq!(reader.varint().unwrap(), value);
            }
            prop_assert!(reader.end().is_ok());
        }
    }

    #[test]
    fn a_number_without_end_is_an_error() {
        assert!(Reader::new(&[0xff; 20]).varint().is_err());
        assert!(Reader::new(&[0x80]).varint().is_err());
    }
}
