//! Names of models in requests.
//!
//! | text | model |
//! |---|---|
//! | (empty) | the server's default |
//! | `latest`, `best` | a label of the run's own store |
//! | `000000001200-3fa94c21` | a version of the run's own store |
//! | `latest/000000001200-3fa94c21` | that version, for clients that name a model and a version separately |
//! | `chess` | the source called `chess`: its `latest`, or the model made elsewhere of that name |
//! | `chess/best`, `chess/000000001200-3fa94c21` | a label or version of that source |

use std::fmt;

use checkpoints::{LATEST, Version};
use network::name::is_label;

/// Part of a name within its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pointer {
    /// A label, whose version changes, or the model of a file.
    Label(String),
    /// A version, which never changes.
    Version(Version),
}

/// Full name of a model on this server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServedName {
    /// Name of the source. Empty: the run's own store.
    pub source: String,
    /// Label or version in the source.
    pub pointer: Pointer,
}

impl ServedName {
    /// Parses a name that is not empty. `is_source` tells which sources exist. Returns `None` if the text is not a name.
    pub fn parse(text: &str, is_source: impl Fn(&str) -> bool) -> Option<Self> {
        let (source, rest) = match text.split_once('/') {
            Some((first, rest)) if is_source(first) => (first, rest),
            None if is_source(text) => (text, LATEST),
            _ => ("", text),
        };
        // A label before a version is ignored.
        let last = match rest.split_once('/') {
            Some((label, version)) if is_label(label) => {
                version.parse::<Version>().ok()?;
                version
            }
            Some(_) => return None,
            None => rest,
        };
        let pointer = match last.parse() {
            Ok(version) => Pointer::Version(version),
            Err(_) if is_label(last) => Pointer::Label(last.to_owned()),
            Err(_) => return None,
        };
        Some(Self {
            source: source.to_owned(),
            pointer,
        })
    }

    /// True if the name is that of a version, which never changes.
    pub fn is_exact(&self) -> bool {
        matches!(self.pointer, Pointer::Version(_))
    }
}

impl fmt::Display for ServedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.is_empty() {
            write!(formatter, "{}/", self.source)?;
        }
        match &self.pointer {
            Pointer::Label(label) => formatter.write_str(label),
            Pointer::Version(version) => formatter.write_str(version.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VERSION: &str = "000000001200-3fa94c21";

    fn parse(text: &str) -> Option<String> {
        ServedName::parse(text, |name| name == "chess").map(|name| name.to_string())
    }

    #[test]
    fn every_form_of_a_name_is_parsed() {
        for (text, canonical) in [
            ("latest", "latest"),
            (VERSION, VERSION),
            ("chess", "chess/latest"),
            ("chess/best", "chess/best"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(canonical));
        }
        assert_eq!(parse(&format!("latest/{VERSION}")).as_deref(), Some(VERSION));
        let in_source = format!("chess/{VERSION}");
        assert_eq!(parse(&in_source).as_deref(), Some(in_source.as_str()));
        assert_eq!(
            parse(&format!("chess/latest/{VERSION}")).as_deref(),
            Some(in_source.as_str())
        );
    }

    #[test]
    fn texts_that_are_not_names_are_refused() {
        for text in ["Latest", "../latest", "othello/best", "a/b/c", "/", "chess/", "1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_text_parses_to_the_same_name(text in "[a-z/0-9-]{0,40}") {
            if let Some(name) = ServedName::parse(&text, |name| name == "chess") {
                let again = ServedName::parse(&name.to_string(), |name| name == "chess");
                prop_assert_eq!(again, Some(name));
            }
        }
    }
}
