//! Archive files: complete games, compressed, with checksums and a version.
//!
//! ```text
//! file   = zstd frame, with its own checksum, of:
//! plain  = "MinuetGames\x01" · header length u32 · header (JSON) · game … · end
//! game   = length u32, above 0 · crc32 u32 · minuet.v1.Game as protobuf
//! end    = 0 u32 · number of games u64
//! ```
//! Numbers are little-endian. Reading a file without the end marker reports that it was cut off.

use std::io::{self, BufReader, Read, Write};

use prost::Message as _;
use proto::v1::Game;
use serde::{Deserialize, Serialize};

use crate::{log::frame::checksum, settings::MAX_GAME_BYTES};

const MAGIC: &[u8; 12] = b"MinuetGames\x01";
/// Maximum length of the header in bytes.
const MAX_HEADER: u32 = 1 << 20;
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
    /// The file is not an archive.
    #[error("the file is not an archive of games")]
    Foreign,
    /// The archive has another version.
    #[error("the archive has version {0}, but this build reads version 1")]
    Version(u8),
    /// The header is damaged.
    #[error("the archive's header is damaged: {0}")]
    Header(String),
    /// A game is damaged; those before it are intact. Games are counted from 1.
    #[error("game {0} of the archive is damaged")]
    Game(u64),
    /// The archive is cut off after this many intact games.
    #[error("the archive is cut off after game {0}")]
    Short(u64),
    /// A game is longer than a store accepts.
    #[error("a game of {0} bytes is too long")]
    TooLong(usize),
}

/// Writer of an archive.
pub struct Writer<W: Write> {
    out: zstd::Encoder<'static, W>,
    games: u64,
    message: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header of an archive.
    ///
    /// # Errors
    /// The error of the output.
    pub fn new(out: W, header: &Header) -> Result<Self, ArchiveError> {
        let mut out = zstd::Encoder::new(out, LEVEL)?;
        out.include_checksum(true)?;
        let header = serde_json::to_vec(header).map_err(|error| ArchiveError::Header(error.to_string()))?;
        out.write_all(MAGIC)?;
        out.write_all(&(header.len() as u32).to_le_bytes())?;
        out.write_all(&header)?;
        Ok(Self {
            out,
            games: 0,
            message: Vec::new(),
        })
    }

    /// Adds a game.
    ///
    /// # Errors
    /// The error of the output, and [`ArchiveError::TooLong`].
    pub fn add(&mut self, game: &Game) -> Result<(), ArchiveError> {
        self.message.clear();
        // Encoding to a vector does not fail.
        game.encode(&mut self.message)
            .map_err(|_| ArchiveError::TooLong(game.encoded_len()))?;
        if self.message.len() > MAX_GAME_BYTES {
            return Err(ArchiveError::TooLong(self.message.len()));
        }
        self.out.write_all(&(self.message.len() as u32).to_le_bytes())?;
        self.out.write_all(&checksum(&[], &self.message).to_le_bytes())?;
        self.out.write_all(&self.message)?;
        self.games += 1;
        Ok(())
    }

    /// Finishes the archive. Returns the output and the number of games.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> Result<(W, u64), ArchiveError> {
        self.out.write_all(&0u32.to_le_bytes())?;
        self.out.write_all(&self.games.to_le_bytes())?;
        Ok((self.out.finish()?, self.games))
    }
}

/// Reader of an archive: an iterator of games.
pub struct Reader<R: Read> {
    plain: zstd::Decoder<'static, BufReader<R>>,
    header: Header,
    games: u64,
    has_ended: bool,
}

impl<R: Read> Reader<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn new(archive: R) -> Result<Self, ArchiveError> {
        let mut plain = zstd::Decoder::new(archive)?;
        let mut magic = [0; 12];
        plain.read_exact(&mut magic).map_err(|_| ArchiveError::Foreign)?;
        if magic[..11] != MAGIC[..11] {
            return Err(ArchiveError::Foreign);
        }
        if magic[11] != MAGIC[11] {
            return Err(ArchiveError::Version(magic[11]));
        }
        let length = number(&mut plain)?;
        if length > MAX_HEADER {
            return Err(ArchiveError::Header(format!("{length} bytes long")));
        }
        let mut header = vec![0; length as usize];
        plain.read_exact(&mut header)?;
        let header =
            serde_json::from_slice(&header).map_err(|error| ArchiveError::Header(error.to_string()))?;
        Ok(Self {
            plain,
            header,
            games: 0,
            has_ended: false,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn read(&mut self) -> Result<Option<Game>, ArchiveError> {
        let short = |error: io::Error, games| match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveError::Short(games),
            _ => error.into(),
        };
        let length = number(&mut self.plain).map_err(|error| short(error, self.games))?;
        if length == 0 {
            let mut games = [0; 8];
            self.plain
                .read_exact(&mut games)
                .map_err(|error| short(error, self.games))?;
            // zstd verifies its checksum at the end of the frame.
            let more = self.plain.read(&mut [0; 1])?;
            if u64::from_le_bytes(games) != self.games || more > 0 {
                return Err(ArchiveError::Game(self.games + 1));
            }
            return Ok(None);
        }
        if length as usize > MAX_GAME_BYTES {
            return Err(ArchiveError::Game(self.games + 1));
        }
        let crc = number(&mut self.plain).map_err(|error| short(error, self.games))?;
        let mut message = vec![0; length as usize];
        self.plain
            .read_exact(&mut message)
            .map_err(|error| short(error, self.games))?;
        if checksum(&[], &message) != crc {
            return Err(ArchiveError::Game(self.games + 1));
        }
        let game = Game::decode(message.as_slice()).map_err(|_| ArchiveError::Game(self.games + 1))?;
        self.games += 1;
        Ok(Some(game))
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

fn number(plain: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    plain.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
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
        assert!(matches!(
            read(b"something else entirely"),
            Err(ArchiveError::Foreign | ArchiveError::Io(_))
        ));
        let other = zstd::encode_all(&b"MinuetGames\x02...."[..], 1).unwrap();
        assert!(matches!(read(&other), Err(ArchiveError::Version(2))));
    }
}
