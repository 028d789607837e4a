//! TensorBoard's event files with scalars.
//!
//! A file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data;
//! little-endian), each of which holds one `Event` of TensorFlow's `event.proto`. Only the fields that are written are
//! declared here.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use prost::Message as _;

/// Version in the first event of a file, which readers check.
const FILE_VERSION: &str = "brain.Event:2";
/// Constant added to each checksum: the CRC of data which contains its own CRC would be constant (TFRecord format).
const MASK: u32 = 0xa282_ead8;

#[derive(Clone, PartialEq, prost::Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

/// An event file of this process; TensorBoard reads all files of a folder as one run.
#[derive(Debug)]
pub struct EventFile {
    file: File,
}

impl EventFile {
    /// Creates a file in `folder`, and the folder if necessary.
    ///
    /// # Errors
    /// Error of the file system.
    pub fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let now = now();
        // TensorBoard reads files whose names contain `tfevents`, in the order of their names.
        let name = format!(
            "events.out.tfevents.{:010}.minuet.{}",
            now as u64,
            std::process::id()
        );
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join(name))?;
        let mut events = Self { file };
        events.write(&Event {
            wall_time: now,
            step: 0,
            what: Some(What::FileVersion(FILE_VERSION.into())),
        })?;
        Ok(events)
    }

    /// Appends named scalars of one step.
    ///
    /// # Errors
    /// Error of the file system.
    pub fn scalars(&mut self, step: u64, scalars: &[(&str, f64)]) -> io::Result<()> {
        let values = scalars.iter().map(|&(tag, number)| Value {
            tag: tag.to_owned(),
            simple_value: Some(number as f32),
        });
        self.write(&Event {
            wall_time: now(),
            step: step as i64,
            what: Some(What::Summary(Summary {
                values: values.collect(),
            })),
        })
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let data = event.encode_to_vec();
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(&data);
        record.extend_from_slice(&masked(&data).to_le_bytes());
        // One write, so that a killed process leaves at most the last record incomplete, which readers skip.
        self.file.write_all(&record)
    }
}

fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(MASK)
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |age| age.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of 32 zero bytes is from RFC 3720 (B.4); its masked form was computed by hand.
    #[test]
    fn checksums_are_masked_crc32c() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked(&[0; 32]), 0x0fd7_fffa);
    }

    #[test]
    fn records_hold_the_scalars() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path()).unwrap();
        events
            .scalars(7, &[("loss/policy", 1.5), ("loss/value", 0.25)])
            .unwrap();
        let path = fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut bytes = fs::read(path).unwrap();
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let data = &bytes[12..12 + length];
            let sum = u32::from_le_bytes(bytes[12 + length..16 + length].try_into().unwrap());
            assert_eq!(sum, masked(data));
            found.push(Event::decode(data).unwrap());
            bytes.drain(..16 + length);
        }
        assert_eq!(found[0].what, Some(What::FileVersion(FILE_VERSION.into())));
        assert_eq!(found[1].step, 7);
        let Some(What::Summary(summary)) = &found[1].what else {
            panic!("{found:?}")
        };
        let read: Vec<(&str, Option<f32>)> = summary
            .values
            .iter()
            .map(|value| (value.tag.as_str(), value.simple_value))
            .collect();
        assert_eq!(read, [("loss/policy", Some(1.5)), ("loss/value", Some(0.25))]);
    }
}
