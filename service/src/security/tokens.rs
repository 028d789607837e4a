//! Tokens: the digests that a server checks against, and the token that a client sends.

use std::{collections::HashMap, fmt, str::FromStr};

use sha2::{Digest as _, Sha256};
use tonic::metadata::{Ascii, MetadataValue};

use super::{Named, SecurityError};

/// Smallest length of a token in characters; a shorter one could be guessed.
const SHORTEST: usize = 16;

/// Right granted by a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// Evaluate positions, and list models.
    Evaluate,
    /// Have positions searched by an analysis service.
    Analyze,
    /// Send finished games.
    Append,
    /// Read batches, games and statistics from the store.
    Sample,
    /// All rights, and loading and unloading of models.
    Administer,
}

impl Right {
    const ALL: [Self; 5] = [
        Self::Evaluate,
        Self::Analyze,
        Self::Append,
        Self::Sample,
        Self::Administer,
    ];

    /// Returns the name of the right in a file of tokens.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate",
            Self::Analyze => "analyze",
            Self::Append => "append",
            Self::Sample => "sample",
            Self::Administer => "administer",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|right| right.name() == text);
        found.ok_or_else(|| format!("unknown right `{text}`: evaluate, analyze, append, sample, administer"))
    }
}

/// Name and rights of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Name of the token in the file.
    pub name: String,
    rights: Vec<Right>,
}

impl Holder {
    /// True if the token grants `right`; [`Right::Administer`] includes all rights.
    pub fn may(&self, right: Right) -> bool {
        self.rights.contains(&right) || self.rights.contains(&Right::Administer)
    }
}

/// SHA-256 digest of a token, under which a server keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

/// The tokens that a server accepts, stored as digests.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tokens(HashMap<TokenDigest, Holder>);

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.values().map(|holder| &holder.name);
        formatter.debug_list().entries(names).finish()
    }
}

impl Tokens {
    /// Parses the lines of a file, `name rights token`; `#` begins a comment.
    ///
    /// # Errors
    /// Number of the first malformed line and the reason. The message never contains a token.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (digest, holder) = entry(line).map_err(|reason| format!("line {}: {reason}", number + 1))?;
            if tokens.insert(digest, holder).is_some() {
                return Err(format!("line {}: duplicate token", number + 1));
            }
        }
        if tokens.is_empty() {
            return Err("the file has no token, so every call would be refused".into());
        }
        Ok(Self(tokens))
    }

    pub(crate) fn read(file: &Named) -> Result<Self, SecurityError> {
        let bytes = file.read()?;
        let text = std::str::from_utf8(&bytes).map_err(|_| file.fault("not UTF-8"))?;
        Self::parse(text).map_err(|reason| file.fault(reason))
    }

    /// Returns the entry of the token with this digest. Digests are compared, so timing reveals nothing about the tokens.
    pub fn holder(&self, digest: TokenDigest) -> Option<&Holder> {
        self.0.get(&digest)
    }

    /// Returns the number of tokens.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

impl TokenDigest {
    /// Computes the digest of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

fn entry(line: &str) -> Result<(TokenDigest, Holder), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, rights, token] = words[..] else {
        return Err(format!("{} words; write: name rights token", words.len()));
    };
    let rights = rights.split(',').map(Right::from_str).collect::<Result<_, _>>()?;
    let digest = match token.strip_prefix("sha256:") {
        Some(digits) => digest(digits).ok_or("sha256: wants 64 hexadecimal digits after it")?,
        None if token.len() < SHORTEST => {
            return Err(format!(
                "the token has fewer than {SHORTEST} characters; try: openssl rand -hex 32"
            ));
        }
        None => TokenDigest::of(token),
    };
    let name = name.to_owned();
    Ok((digest, Holder { name, rights }))
}

fn digest(digits: &str) -> Option<TokenDigest> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..64).step_by(2).map(byte).collect();
    Some(TokenDigest(bytes?.try_into().ok()?))
}

/// Returns the `authorization` header with the token in `file`.
pub(crate) fn bearer(file: &Named) -> Result<MetadataValue<Ascii>, SecurityError> {
    let bytes = file.read()?;
    let token = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(file.fault("must hold one token and nothing else"));
    }
    let mut value = MetadataValue::try_from(format!("Bearer {token}"))
        .map_err(|_| file.fault("a token is made of visible ASCII characters"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_token_files() {
        let text = format!(
            "# who\nactors evaluate,append {LONG}\nroot administer sha256:{}\n",
            "ab".repeat(32)
        );
        test_support::fuzz("token file", &[text.as_bytes()], |bytes| {
            std::str::from_utf8(bytes).is_ok_and(|text| Tokens::parse(text).is_ok())
        });
    }

    const LONG: &str = "0123456789abcdef";

    #[test]
    fn a_file_grants_rights_by_token() {
        let hashed = Sha256::digest(b"the learner's own token");
        let hex: String = hashed.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!(
            "# who\nactors evaluate,append {LONG} # all of them\n\nlearner sample sha256:{hex}\nroot administer {LONG}!\n"
        );
        let tokens = Tokens::parse(&text).unwrap();
        let holder = |token: &str| tokens.holder(TokenDigest::of(token));
        let actors = holder(LONG).unwrap();
        assert_eq!(actors.name, "actors");
        assert!(actors.may(Right::Evaluate) && actors.may(Right::Append));
        assert!(!actors.may(Right::Sample) && !actors.may(Right::Administer));
        let learner = holder("the learner's own token").unwrap();
        assert!(learner.may(Right::Sample) && !learner.may(Right::Evaluate));
        let root = holder(&format!("{LONG}!")).unwrap();
        assert!(Right::ALL.into_iter().all(|right| root.may(right)));
        assert_eq!(holder("0123456789abcde"), None);
        assert_eq!(holder(""), None);
        let shown = format!("{tokens:?}");
        assert!(!shown.contains(LONG) && shown.contains("actors"), "{shown}");
    }

    #[test]
    fn an_error_names_the_malformed_line_without_its_token() {
        let cases = [
            ("actors evaluate", "line 1: 2 words"),
            (
                "\nactors evalate 0123456789abcdef",
                "line 2: unknown right `evalate`",
            ),
            ("actors evaluate 0123456789", "fewer than 16"),
            ("actors evaluate sha256:zz", "64 hexadecimal"),
            (
                "a evaluate 0123456789abcdef\nb append 0123456789abcdef",
                "line 2: duplicate token",
            ),
            ("# nothing", "no token"),
        ];
        for (text, expected) in cases {
            let reason = Tokens::parse(text).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
            assert!(!reason.contains("0123456789"), "{reason}");
        }
    }
}
