//! One array in NumPy's file format, version 1.0. Data is written as it arrives; the header with the shape is written last.

use std::{
    fs::File,
    io::{self, BufWriter, Seek as _, SeekFrom, Write as _},
    path::Path,
};

/// Length of the header in bytes, after which the data begins. The format requires a multiple of 64.
pub const DATA_OFFSET: u64 = 128;

/// Element type of an array.
pub trait Element: Copy {
    /// NumPy's name of the type.
    const DTYPE: &'static str;

    /// Writes the bytes in little-endian order.
    fn write_le(self, out: &mut impl io::Write) -> io::Result<()>;
}

macro_rules! numbers {
    ($($number:ty => $dtype:literal),*) => {$(
        impl Element for $number {
            const DTYPE: &'static str = $dtype;

            fn write_le(self, out: &mut impl io::Write) -> io::Result<()> {
                out.write_all(&self.to_le_bytes())
            }
        }
    )*};
}

numbers!(u8 => "|u1", u32 => "<u4", u64 => "<u8", f32 => "<f4");

/// Writer of an array.
pub struct Npy<T> {
    file: BufWriter<File>,
    count: u64,
    number: std::marker::PhantomData<T>,
}

impl<T: Element> Npy<T> {
    /// Creates a file and begins an array.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&[0; DATA_OFFSET as usize])?;
        Ok(Self {
            file,
            count: 0,
            number: std::marker::PhantomData,
        })
    }

    /// Appends numbers.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn extend(&mut self, numbers: impl IntoIterator<Item = T>) -> io::Result<()> {
        for number in numbers {
            number.write_le(&mut self.file)?;
            self.count += 1;
        }
        Ok(())
    }

    /// Finishes the file and returns the shape: rows of `width` numbers, or one dimension if `width` is `None`.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn finish(self, width: Option<u64>) -> io::Result<Vec<u64>> {
        let shape = match width {
            Some(width) => vec![self.count / width.max(1), width],
            None => vec![self.count],
        };
        let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
        let text = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
            T::DTYPE,
            sides.join(", ")
        );
        let length = DATA_OFFSET as usize - 10;
        let mut file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(length as u16).to_le_bytes())?;
        file.write_all(format!("{text:<width$}\n", width = length - 1).as_bytes())?;
        file.sync_all()?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_the_npy_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let mut array = Npy::<u32>::create(&path).unwrap();
        array.extend([1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(array.finish(Some(3)).unwrap(), [2, 3]);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 128 + 24);
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let header = std::str::from_utf8(&bytes[10..128]).unwrap();
        assert!(header.starts_with("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3,), }"));
        assert!(header.ends_with(" \n"));
        assert_eq!(&bytes[128..132], [1, 0, 0, 0]);
    }
}
