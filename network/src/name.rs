//! Names by which a person points at a network: a file, a checkpoint's folder, a run, a store, a server.

use std::{fmt, path::PathBuf, str::FromStr};

use games::registry;

use crate::shipped::Level;

/// Name of a network. Only the form of a text decides its meaning, not the content of the file system.
///
/// | written | means |
/// |---|---|
/// | `…/model.onnx` | a file with Minuet's metadata |
/// | `runs/x`, `runs/x@latest`, `runs/x@000000001200-3fa94c21` | a run's folder (or a model store's), and which of its checkpoints |
/// | `runs/x/checkpoints/versions/000000001200-3fa94c21` | the folder of one checkpoint |
/// | `s3://bucket/prefix@best`, `file:///models` | a model store |
/// | `http://host:50051`, `http://host:50051@latest` | an inference server, and which of its models |
/// | `chess`, `go:9`, `chess@medium`, `chess@beginner` | the network that comes with Minuet for a game, and its level; a folder is `./chess` |
///
/// ```
/// use network::ModelName;
///
/// let name: ModelName = "runs/chess@best".parse()?;
/// assert_eq!(name, ModelName::Folder { path: "runs/chess".into(), version: Some("best".into()) });
/// assert_eq!(name.to_string(), "runs/chess@best");
/// # Ok::<(), network::name::NoModelName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelName {
    /// An ONNX file.
    File(PathBuf),
    /// A folder: a run's, a model store's, or that of one checkpoint.
    Folder {
        /// The folder.
        path: PathBuf,
        /// A label or a version; `None`: `latest`, or the checkpoint whose folder it is.
        version: Option<String>,
    },
    /// A model store by URL.
    Store {
        /// Address of the store.
        url: String,
        /// A label or a version; `None`: `latest`.
        version: Option<String>,
    },
    /// An inference server.
    Server {
        /// `http://host:port` or `https://host:port`.
        address: String,
        /// A label or a version; `None`: the server's default.
        model: Option<String>,
    },
    /// The network that comes with Minuet for this game, with or without the size of its board, and its level ([`crate::shipped`]).
    Shipped(String, Level),
}

/// Error: a text is not the name of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown network `{0}`: write a run's folder (runs/chess, runs/chess@latest), a checkpoint's folder, a file \
     (model.onnx), an inference server (http://host:port), or a game (chess, chess@beginner, chess@medium) for \
     the network that comes with Minuet"
)]
pub struct NoModelName(pub String);

impl FromStr for ModelName {
    type Err = NoModelName;

    fn from_str(text: &str) -> Result<Self, NoModelName> {
        let text = text.trim();
        // A version has no slash, so an `@` before a slash (a password in an address) does not begin a version.
        let (place, version) = match text.rsplit_once('@') {
            Some((place, version)) if !version.contains('/') => (place, Some(version.to_owned())),
            _ => (text, None),
        };
        if place.is_empty() || version.as_deref() == Some("") {
            return Err(NoModelName(text.into()));
        }
        let name = place.split(':').next().unwrap_or_default();
        if registry::NAMES.contains(&name) {
            let level = version.map_or(Some(Level::Strong), |name| Level::named(&name));
            let level = level.filter(|_| registry::find(place).is_ok());
            return level
                .map(|level| Self::Shipped(place.into(), level))
                .ok_or_else(|| NoModelName(text.into()));
        }
        match place.split_once("://") {
            Some(("http" | "https", _)) => Ok(Self::Server {
                address: place.into(),
                model: version,
            }),
            Some(_) => Ok(Self::Store {
                url: place.into(),
                version,
            }),
            None if place.ends_with(".onnx") && version.is_none() => Ok(Self::File(place.into())),
            None => Ok(Self::Folder {
                path: place.into(),
                version,
            }),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, version) = match self {
            Self::File(path) => return write!(formatter, "{}", path.display()),
            Self::Shipped(game, Level::Strong) => return formatter.write_str(game),
            Self::Shipped(game, level) => return write!(formatter, "{game}@{}", level.name()),
            Self::Folder { path, version } => (path.to_string_lossy(), version),
            Self::Store { url, version } => (url.into(), version),
            Self::Server { address, model } => (address.into(), model),
        };
        match version {
            Some(version) => write!(formatter, "{place}@{version}"),
            None => write!(formatter, "{place}"),
        }
    }
}

/// True if `text` can be a label of a model repository: at most 64 of `a-z0-9._-`, a letter first.
pub fn is_label(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> ModelName {
        text.parse().unwrap()
    }

    #[test]
    fn each_form_is_parsed() {
        assert_eq!(read("a/model.onnx"), ModelName::File("a/model.onnx".into()));
        assert_eq!(
            read("runs/chess"),
            ModelName::Folder {
                path: "runs/chess".into(),
                version: None
            }
        );
        assert_eq!(
            read("runs/chess@best"),
            ModelName::Folder {
                path: "runs/chess".into(),
                version: Some("best".into())
            }
        );
        assert_eq!(
            read("http://127.0.0.1:50051@latest"),
            ModelName::Server {
                address: "http://127.0.0.1:50051".into(),
                model: Some("latest".into())
            }
        );
        assert_eq!(
            read("s3://bucket/models"),
            ModelName::Store {
                url: "s3://bucket/models".into(),
                version: None
            }
        );
        assert_eq!(
            read("a@b/c"),
            ModelName::Folder {
                path: "a@b/c".into(),
                version: None
            }
        );
        for (text, game, level) in [
            ("chess", "chess", Level::Strong),
            ("chess@strong", "chess", Level::Strong),
            ("chess@medium", "chess", Level::Medium),
            ("chess@beginner", "chess", Level::Beginner),
            ("go:13@beginner", "go:13", Level::Beginner),
        ] {
            assert_eq!(read(text), ModelName::Shipped(game.into(), level), "{text}");
        }
        assert_eq!(
            read("./chess"),
            ModelName::Folder {
                path: "./chess".into(),
                version: None
            }
        );
        for empty in [
            "",
            "  ",
            "@best",
            "runs/x@",
            "chess@best",
            "chess@",
            "chess:9",
            "go:99",
        ] {
            assert!(empty.parse::<ModelName>().is_err(), "{empty:?}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_name_parses_to_itself(text in "[a-z0-9:/.@_-]{0,24}") {
            if let Ok(name) = text.parse::<ModelName>() {
                prop_assert_eq!(name.to_string().parse::<ModelName>(), Ok(name));
            }
        }
    }

    #[test]
    fn fuzz_model_names() {
        test_support::fuzz(
            "model name",
            &[b"latest", b"chess:latest", b"1234567890abcdef"],
            |bytes| std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<ModelName>().is_ok()),
        );
    }
}
