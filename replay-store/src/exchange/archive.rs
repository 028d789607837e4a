//! Archive files: complete games, compressed, with checksums and a version.
//!
//! ```text
//! file  = zstd frame, with its own checksum, of: header · game … · end      (frames: [`durable::frame`])
//! A header = JSON
//! P game   = minuet.v1.Game as protobuf
//! E end    = number of games u64, little-endian
//! ```
//! Reading a file without the end reports that it was cut off.

use std::io::{self, BufReader, Read, Write};

use durable::frame::{self, Frame};
use prost::Message as _;
use proto::v1::Game;
use serde::{Deserialize, Serialize};

use crate::settings::MAX_GAME_BYTES;

/// Maximum length of the header in bytes.
const MAX_HEADER: usize = 1 << 20;
/// Compression level of zstd, which compresses games at about 100 MB/s.
const LEVEL: i32 = 9;

/// Header of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Name of the game.
    pub game: String,
    /// Representation options of the rows.
    pub options: u32,
    /// Name and version of the program that wrote the archive.
    pub written_by: String,
}

/// Error: an archive cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Error of the file system, or of zstd for damaged bytes.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not an archive of this version, or a part of it is damaged: the reason, with the number of the game.
    #[error("{0}")]
    Refused(String),
}

fn refused(reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Refused(reason.into())
}

fn foreign() -> ArchiveError {
    refused("the file is not an archive of games")
}

fn newer(found: &Frame<'_>) -> ArchiveError {
    refused(format!(
        "the archive holds frame {}, which this build does not know; a newer build wrote it",
        found.name()
    ))
}

/// Writer of an archive.
pub struct Writer<W: Write> {
    out: zstd::Encoder<'static, W>,
    games: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header of an archive.
    ///
    /// # Errors
    /// The error of the output.
    pub fn new(out: W, header: &Header) -> Result<Self, ArchiveError> {
        let mut out = zstd::Encoder::new(out, LEVEL)?;
        out.include_checksum(true)?;
        let header = serde_json::to_vec(header).map_err(io::Error::from)?;
        let mut writer = Self {
            out,
            games: 0,
            buffer: Vec::new(),
        };
        writer.put(b'A', &header)?;
        Ok(writer)
    }

    /// Adds a game.
    ///
    /// # Errors
    /// The error of the output, or the game is longer than a store accepts.
    pub fn add(&mut self, game: &Game) -> Result<(), ArchiveError> {
        let message = game.encode_to_vec();
        if message.len() > MAX_GAME_BYTES {
            return Err(refused(format!("a game of {} bytes is too long", message.len())));
        }
        self.put(b'P', &message)?;
        self.games += 1;
        Ok(())
    }

    /// Finishes the archive. Returns the output and the number of games.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> Result<(W, u64), ArchiveError> {
        self.put(b'E', &self.games.to_le_bytes())?;
        Ok((self.out.finish()?, self.games))
    }

    fn put(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        frame::append(kind, &[payload], &mut self.buffer);
        self.out.write_all(&self.buffer)
    }
}

/// Reader of an archive: an iterator of games.
pub struct Reader<R: Read> {
    plain: zstd::Decoder<'static, BufReader<R>>,
    header: Header,
    games: u64,
    buffer: Vec<u8>,
    has_ended: bool,
}

impl<R: Read> Reader<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn new(archive: R) -> Result<Self, ArchiveError> {
        let mut plain = zstd::Decoder::new(archive)?;
        let mut buffer = Vec::new();
        let first =
            frame::read_from(&mut plain, MAX_HEADER, &mut buffer).map_err(|error| match error.kind() {
                // zstd gives no kind to bytes that are not a frame.
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => foreign(),
                _ => error.into(),
            })?;
        let header = match first.of_kind(b'A') {
            Some(header) => serde_json::from_slice(header),
            None if first.kind == b'A' => return Err(newer(&first)),
            None => return Err(foreign()),
        };
        let header = header.map_err(|error| refused(format!("the archive's header is damaged: {error}")))?;
        Ok(Self {
            plain,
            header,
            games: 0,
            buffer,
            has_ended: false,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn read(&mut self) -> Result<Option<Game>, ArchiveError> {
        let games = self.games;
        // Games are counted from 1. Those before a damaged one are intact.
        let damaged = || refused(format!("game {} of the archive is damaged", games + 1));
        let found = frame::read_from(&mut self.plain, MAX_GAME_BYTES, &mut self.buffer);
        let found = found.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => refused(format!("the archive is cut off after game {games}")),
            io::ErrorKind::InvalidData => damaged(),
            _ => error.into(),
        })?;
        if let Some(message) = found.of_kind(b'P') {
            let game = Game::decode(message).map_err(|_| damaged())?;
            self.games += 1;
            return Ok(Some(game));
        }
        let Some(count) = found.of_kind(b'E') else {
            return Err(newer(&found));
        };
        // zstd verifies its checksum at the end of the frame.
        let more = self.plain.read(&mut [0; 1])?;
        if *count != games.to_le_bytes() || more > 0 {
            return Err(damaged());
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Game, ArchiveError>;

    /// Returns the next game. The iterator ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read().transpose();
        self.has_ended = !matches!(read, Some(Ok(_)));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn header() -> Header {
        Header {
            game: "paco-sako".into(),
            options: 1,
            written_by: "a test".into(),
        }
    }

    fn archive(games: &[Game]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for game in games {
            writer.add(game).unwrap();
        }
        let (bytes, count) = writer.finish().unwrap();
        assert_eq!(count, games.len() as u64);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Game>, ArchiveError> {
        Reader::new(bytes)?.collect()
    }

    #[test]
    fn games_are_read_as_they_were_written() {
        for count in [0, 1, 30] {
            let games: Vec<Game> = (0..count).map(|number| synthetic::game(number, 20)).collect();
            let bytes = archive(&games);
            assert_eq!(Reader::new(bytes.as_slice()).unwrap().header(), &header());
            assert_eq!(read(&bytes).unwrap(), games);
        }
    }

    #[test]
    fn damage_is_reported_and_earlier_games_are_intact() {
        let games: Vec<Game> = (0..30).map(|number| synthetic::game(number, 20)).collect();
        let bytes = archive(&games);
        for cut in (0..bytes.len()).step_by(97) {
            assert!(read(&bytes[..cut]).is_err(), "cut off at {cut}");
        }
        for at in (0..bytes.len()).step_by(61) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let Ok(reader) = Reader::new(bytes.as_slice()) else {
                continue;
            };
            let mut is_damaged = reader.header() != &header();
            for (found, game) in reader.zip(&games) {
                match found {
                    Ok(found) => assert_eq!(&found, game, "byte {at}"),
                    Err(_) => is_damaged = true,
                }
            }
            // zstd's checksum is at the very end.
            assert!(is_damaged || read(&bytes).is_err(), "byte {at}");
        }
        assert!(read(b"something else entirely").is_err());
        let mut frames = Vec::new();
        frame::append(b'A', &[b"{}"], &mut frames);
        frames[3] = b'2';
        let crc = frame::checksum(&frames[..8], &frames[frame::HEAD..]);
        frames[8..frame::HEAD].copy_from_slice(&crc.to_le_bytes());
        let other = zstd::encode_all(frames.as_slice(), 1).unwrap();
        let error = read(&other).unwrap_err().to_string();
        assert!(error.contains("MnA2"), "{error}");
    }
}
