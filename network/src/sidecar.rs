//! Models that other programs made: an ONNX file with a small description next to it.
//!
//! ```toml
//! # models/leela.toml: served as `leela`
//! file = "leela.onnx"      # next to this file; default: the same name with .onnx
//! game = "chess"           # or with the size of the board, e.g. gomoku:15
//! options = 0              # the game's representation options
//! input = "input"          # default: the model's only input
//! policy = "policy"        # default: policy_logits; [batch, …] with the game's number of actions for each position
//! value = "value"          # default: value
//! value_kind = "tanh"      # tanh, probability, win-draw-loss, or win-draw-loss-logits
//! ```
//!
//! Instead of `game` and `options`, `[layout]` may hold a whole row layout in the form of a checkpoint's manifest. The input
//! is `[batch, planes, height, width]` (f32, expanded on the CPU) or `[batch, row]` (int32).

use std::path::{Path, PathBuf};

use bytes::Bytes;
use games::{RowLayout, registry};
use onnx::model::{POLICY, VALUE};
use serde::Deserialize;

use crate::{
    name::is_label,
    session::{Contract, ValueKind},
};

/// File name extension of descriptions.
const EXTENSION: &str = "toml";
/// Largest description that is read, in bytes.
const MAX_DESCRIPTION_BYTES: u64 = 1 << 20;
/// Largest model that is read, in bytes.
pub(crate) const MAX_MODEL_BYTES: u64 = 4 << 30;

/// Error: a description or its model cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct SidecarError {
    /// The file or folder.
    pub file: PathBuf,
    /// Reason.
    pub reason: String,
}

impl SidecarError {
    fn new(file: &Path, reason: impl ToString) -> Self {
        Self {
            file: file.into(),
            reason: reason.to_string(),
        }
    }
}

/// A description as it is written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: Option<PathBuf>,
    game: Option<String>,
    #[serde(default)]
    options: u32,
    layout: Option<RowLayout>,
    input: Option<String>,
    policy: Option<String>,
    value: Option<String>,
    #[serde(default)]
    value_kind: ValueKind,
}

/// A parsed description.
#[derive(Clone, Debug)]
pub struct Sidecar {
    /// The ONNX file.
    pub file: PathBuf,
    /// Layout of the model's rows.
    pub layout: RowLayout,
    /// Names of its inputs and outputs.
    pub contract: Contract,
}

/// Lists the descriptions in a folder: name of each model, and path of its description.
///
/// # Errors
/// [`SidecarError`] if the folder cannot be read, or a file name is not a valid name for a model.
pub fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>, SidecarError> {
    let unreadable = |error: std::io::Error| SidecarError::new(folder, format!("cannot be read: {error}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if !is_label(name) {
            let reason = format!(
                "`{name}` is not a valid name of a model: a-z first, then a-z, 0-9, `.`, `_` and `-`"
            );
            return Err(SidecarError::new(&path, reason));
        }
        found.push((name.to_owned(), path));
    }
    found.sort();
    Ok(found)
}

/// Reads a description and its model.
///
/// # Errors
/// [`SidecarError`] with the file and the reason.
pub async fn read(description: &Path) -> Result<(Sidecar, Bytes), SidecarError> {
    let text = read_file(description, MAX_DESCRIPTION_BYTES).await?;
    let sidecar = parse(description, &String::from_utf8_lossy(&text))?;
    let bytes = read_file(&sidecar.file, MAX_MODEL_BYTES).await?;
    Ok((sidecar, bytes))
}

async fn read_file(file: &Path, most: u64) -> Result<Bytes, SidecarError> {
    let unreadable = |error: std::io::Error| SidecarError::new(file, format!("cannot be read: {error}"));
    let path = file.to_owned();
    let reading = tokio::task::spawn_blocking(move || service::filesystem::read(&path, most));
    let read = reading.await.unwrap_or_else(|error| Err(error.into()));
    Ok(read.map_err(unreadable)?.into())
}

/// Parses the text of the description at the path `description`.
///
/// # Errors
/// [`SidecarError`] with the reason.
pub fn parse(description: &Path, text: &str) -> Result<Sidecar, SidecarError> {
    let wrong = |reason: String| SidecarError::new(description, reason);
    let written: Written = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let layout = match (written.layout, written.game) {
        (Some(layout), None) => layout,
        (None, Some(game)) => {
            let game = registry::find(&game).map_err(|error| wrong(error.to_string()))?;
            let variant = game.variant(&game.rules(), Some(written.options));
            variant.map_err(|error| wrong(error.to_string()))?.layout()
        }
        _ => return Err(wrong("either `game` or `[layout]` must be there".into())),
    };
    layout.check().map_err(|error| wrong(error.to_string()))?;
    let next_to = |name: &Path| description.parent().unwrap_or(Path::new("")).join(name);
    Ok(Sidecar {
        file: match written.file {
            Some(file) => next_to(&file),
            None => description.with_extension("onnx"),
        },
        layout,
        contract: Contract {
            input: written.input,
            policy: written.policy.unwrap_or_else(|| POLICY.into()),
            value: written.value.unwrap_or_else(|| VALUE.into()),
            value_kind: written.value_kind,
        },
    })
}

#[cfg(test)]
mod tests {
    use games::Game as _;

    use super::*;

    fn parsed(text: &str) -> Result<Sidecar, String> {
        parse(Path::new("models/net.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_of_a_description() {
        let sidecar = parsed("game = 'chess'").unwrap();
        assert_eq!(sidecar.file, Path::new("models/net.onnx"));
        assert_eq!(
            (
                sidecar.layout.game.as_str(),
                sidecar.layout.stack().unwrap().planes
            ),
            ("chess", 22)
        );
        assert_eq!(sidecar.contract, Contract::default());

        let text =
            "game='othello'\nfile='a.onnx'\ninput='x'\npolicy='p'\nvalue='v'\nvalue_kind='win-draw-loss'";
        let sidecar = parsed(text).unwrap();
        assert_eq!(sidecar.file, Path::new("models/a.onnx"));
        let expected = Contract {
            input: Some("x".into()),
            policy: "p".into(),
            value: "v".into(),
            value_kind: ValueKind::WinDrawLoss,
        };
        assert_eq!(sidecar.contract, expected);
    }

    /// Reading a device, a terminal or a folder would not end, or not begin.
    #[tokio::test]
    async fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let description = folder.path().join("net.toml");
        for file in ["/dev/zero", "/dev/tty", "/proc"] {
            std::fs::write(&description, format!("game = 'chess'\nfile = '{file}'")).unwrap();
            let reason = read(&description).await.unwrap_err().to_string();
            assert!(
                reason.starts_with(&format!("{file}: cannot be read: ")),
                "{reason}"
            );
        }
    }

    #[test]
    fn errors_name_the_file_and_the_fault() {
        let says = |text: &str, words: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(words) && error.contains("net.toml"), "{error}");
        };
        says("", "either `game` or `[layout]`");
        says("game = 'ches'", "did you mean chess?");
        says("game = 'chess'\ninptu = 'x'", "unknown field `inptu`");
        says("game = 'chess'\nvalue_kind = 'elo'", "unknown variant `elo`");
    }

    #[test]
    fn fuzz_sidecars() {
        let named = b"game = \"chess\"\nfile = \"model.onnx\"\npolicy = \"policy\"\nvalue = \"value\"\n";
        use games::chess::Chess;

        let layout = serde_json::to_value(Chess::layout(Default::default()));
        let written = format!("[layout]\n{}", toml::to_string(&layout.unwrap()).unwrap());
        test_support::fuzz(
            "sidecar",
            &[b"game = \"chess\"\n", named, written.as_bytes()],
            |bytes| std::str::from_utf8(bytes).is_ok_and(|text| parse(Path::new("model.toml"), text).is_ok()),
        );
    }
}
