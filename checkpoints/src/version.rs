//! [`Version`]: names of checkpoints. Names of versions, labels and files cannot refer to paths outside of the store.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const STEP_DIGITS: usize = 12;
const DIGEST_DIGITS: usize = 8;

/// Error: a version, label or file name has characters that are not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a {kind}: {reason}")]
pub struct NameError {
    /// Kind of name expected, for example `label`.
    pub kind: &'static str,
    /// Name as given.
    pub name: String,
    /// Rule that the name breaks.
    pub reason: &'static str,
}

/// Name of a checkpoint: the training step as 12 digits, a dash and the first 8 hexadecimal digits of the SHA-256 of
/// `model.onnx`. Names sort by step.
///
/// ```
/// use checkpoints::Version;
///
/// let version: Version = "000000001500-9f3c0a1b".parse()?;
/// assert_eq!(version.step(), 1500);
/// assert!("../secrets".parse::<Version>().is_err());
/// # Ok::<(), checkpoints::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

impl Version {
    /// Makes the name of the checkpoint of `step` whose `model.onnx` has this SHA-256, given in lower-case hexadecimal.
    ///
    /// # Errors
    /// [`NameError`] if the step has more than 12 digits or the digest fewer than 8.
    pub fn new(step: u64, model_sha256: &str) -> Result<Self, NameError> {
        let digest: String = model_sha256.chars().take(DIGEST_DIGITS).collect();
        format!("{step:0STEP_DIGITS$}-{digest}").parse()
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the training step in the name.
    pub fn step(&self) -> u64 {
        // Parsing has checked the digits.
        self.0
            .bytes()
            .take(STEP_DIGITS)
            .fold(0, |step, digit| step * 10 + u64::from(digit - b'0'))
    }
}

impl FromStr for Version {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_version = name.split_once('-').is_some_and(|(step, digest)| {
            step.len() == STEP_DIGITS
                && step.bytes().all(|byte| byte.is_ascii_digit())
                && digest.len() == DIGEST_DIGITS
                && digest.bytes().all(is_hex)
        });
        if is_version {
            Ok(Self(name.to_owned()))
        } else {
            Err(NameError {
                kind: "version",
                name: name.to_owned(),
                reason: "a version is 12 digits of the step, a dash and 8 hexadecimal digits",
            })
        }
    }
}

impl TryFrom<String> for Version {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        name.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Checks the name of a label or a file: 1 to 64 characters of `a–z 0–9 . _ -`, the first one a letter.
///
/// # Errors
/// [`NameError`] if the name breaks a rule.
pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), NameError> {
    let fault = |reason| {
        Err(NameError {
            kind,
            name: name.to_owned(),
            reason,
        })
    };
    if name.is_empty() || name.len() > 64 {
        return fault("a name has 1 to 64 characters");
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return fault("a name begins with a lower-case letter");
    }
    if !name
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
    {
        return fault("a name consists of a-z, 0-9, `.`, `_` and `-`");
    }
    Ok(())
}

/// Returns the SHA-256 of `bytes` in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sha256_agrees_with_the_published_vector() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn names_that_refer_outside_of_the_store_are_refused() {
        for name in [
            "",
            "..",
            "../latest",
            "a/b",
            "Latest",
            "a#1",
            "-a",
            "000000000001-00000000",
        ] {
            assert!(check_name("label", name).is_err(), "{name}");
        }
        assert!(check_name("label", "latest").is_ok());
        for name in [
            "latest",
            "1-00000000",
            "000000000001-0000000g",
            "00000000000１-00000000",
            "000000000001-00000000/..",
        ] {
            assert!(name.parse::<Version>().is_err(), "{name}");
        }
        assert!(Version::new(10u64.pow(12), &"0".repeat(64)).is_err());
    }

    proptest! {
        #[test]
        fn versions_parse_back_and_sort_by_step(left in 0u64..1_000_000_000_000, right in 0u64..1_000_000_000_000, digest in "[0-9a-f]{64}") {
            let name = Version::new(left, &digest).unwrap();
            prop_assert_eq!(name.step(), left);
            prop_assert_eq!(name.as_str().parse::<Version>().unwrap(), name.clone());
            let other = Version::new(right, &digest).unwrap();
            prop_assert_eq!(name.cmp(&other), left.cmp(&right));
        }

        #[test]
        fn checking_any_text_does_not_panic(name in ".{0,40}") {
            let _ = name.parse::<Version>();
            let _ = check_name("label", &name);
        }
    }
}
