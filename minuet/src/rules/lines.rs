//! Reads lines of bounded length, so that no input can fill the memory.

use std::{
    io::{self, BufRead, Read},
    sync::OnceLock,
};

/// Longest line that is read, in bytes. A game of a million actions fits.
pub const MAX_LENGTH: usize = 8 << 20;
/// The byte-order mark, in UTF-8.
pub const MARK: &[u8] = "\u{feff}".as_bytes();

/// One line of input, without its line feed.
pub enum Line<'a> {
    /// Complete line, without a byte-order mark in front: some programs begin their output with one.
    Whole(&'a [u8]),
    /// Line longer than [`MAX_LENGTH`], which has been skipped.
    TooLong,
}

/// Reads the next line into `buffer`. `None` at the end of the input.
pub fn next_line<'a>(input: &mut impl BufRead, buffer: &'a mut Vec<u8>) -> io::Result<Option<Line<'a>>> {
    buffer.clear();
    let read = input
        .by_ref()
        .take(MAX_LENGTH as u64 + 1)
        .read_until(b'\n', buffer)?;
    if read == 0 {
        return Ok(None);
    }
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
    } else if buffer.len() > MAX_LENGTH {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    let line: &[u8] = buffer;
    Ok(Some(Line::Whole(line.strip_prefix(MARK).unwrap_or(line))))
}

/// Returns the error that ended the input, if there was one.
///
/// # Errors
/// That error.
pub fn all_was_read(failure: &OnceLock<io::Error>) -> anyhow::Result<()> {
    match failure.get() {
        Some(error) => anyhow::bail!("cannot read the standard input: {error}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let mut input = vec![b'x'; MAX_LENGTH + 10];
        input.extend("\nshort\n\n\u{feff}last".as_bytes());
        let mut input = input.as_slice();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        while let Some(line) = next_line(&mut input, &mut buffer).unwrap() {
            found.push(match line {
                Line::Whole(text) => String::from_utf8(text.to_vec()).unwrap(),
                Line::TooLong => "too long".into(),
            });
        }
        assert_eq!(found, ["too long", "short", "", "last"]);
    }
}
