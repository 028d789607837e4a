//! Finds and verifies the file of a [`ModelName`].

use std::{fs, io, path::Path, thread};

use bytes::Bytes;
use checkpoints::{LATEST, MODEL, Manifest, Repository, manifest::SCHEMA, version::sha256_hex};
use games::{Game, RowLayout, Sizes};
use onnx::model::{PAIRS_KEY, entry_of, metadata_of};

use crate::{
    name::ModelName,
    shipped::{self, MANIFEST, NotShipped},
    sidecar::MAX_MODEL_BYTES,
};

/// Names of files in runs and stores.
const RUN_CONFIG: &str = "run.toml";
const VERSIONS: &str = "versions";
/// Largest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// A verified ONNX file of a network.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// Content of the ONNX file.
    pub bytes: Bytes,
    /// Version of the checkpoint, or the name of a bare file without its extension.
    pub version: String,
    /// Training step.
    pub step: u64,
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Search settings of its run, if it was found in a run's folder or with a `run.toml` next to it.
    pub search: Option<search::Settings>,
}

/// Error: a network cannot be found or used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The store has no such label or version, or is damaged.
    #[error("cannot use {place}")]
    Store {
        /// The run or store.
        place: String,
        /// Reason.
        source: checkpoints::Error,
    },
    /// A file, a run's configuration or a network's metadata cannot be read.
    #[error("{what}")]
    Unreadable {
        /// Failed step, with the file.
        what: String,
        /// Reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file or folder does not hold a network that can be used. The text says why.
    #[error("{0}")]
    Unsuitable(String),
    /// Minuet comes with no network for this game.
    #[error(transparent)]
    NotShipped(#[from] NotShipped),
}

/// Returns the conversion of an error into [`ModelError::Unreadable`].
fn unreadable<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    verb: &str,
    place: impl std::fmt::Display,
) -> impl FnOnce(E) -> ModelError {
    let what = format!("cannot {verb} {place}");
    |error| ModelError::Unreadable {
        what,
        source: error.into(),
    }
}

/// Returns the error for a folder without a network.
fn no_checkpoint(folder: impl AsRef<Path>) -> ModelError {
    ModelError::Unsuitable(format!(
        "{} is neither a run's folder (no {RUN_CONFIG}), nor a model store ({VERSIONS}/), nor a checkpoint ({MANIFEST})",
        folder.as_ref().display()
    ))
}

impl ModelFile {
    /// Finds the file of `name`, and verifies its digest and its metadata.
    ///
    /// # Errors
    /// [`ModelError`] with the file or folder.
    pub fn find(name: &ModelName) -> Result<Self, ModelError> {
        match name {
            ModelName::File(path) => Self::bare(path),
            ModelName::Folder { path, version } => Self::in_folder(path, version.as_deref()),
            ModelName::Store { url, version } => Self::in_store(url, version.as_deref(), name.to_string()),
            ModelName::Server { address, .. } => Err(ModelError::Unsuitable(format!(
                "{address} is an inference server, not a file"
            ))),
            ModelName::Shipped(game, level) => Self::checkpoint(&shipped::folder(game, *level)?, None),
        }
    }

    /// Returns the representation of `G` in which this network's rows are written.
    ///
    /// # Errors
    /// [`ModelError::Unsuitable`] if the network is for another game, or for rows that this build does not write.
    pub fn encoding<G: Game>(&self) -> Result<G::Encoding, ModelError> {
        encoding_of::<G>(&self.layout, &self.version)
    }

    /// Returns the number of pairs of grids that the network was trained on, as its file says. `None` if it does not say.
    ///
    /// # Errors
    /// [`ModelError`] if what the file says is not a number.
    pub fn pairs_seen(&self) -> Result<Option<u64>, ModelError> {
        let Some(text) = entry_of(&self.bytes, PAIRS_KEY).map_err(unreadable("use", &self.version))? else {
            return Ok(None);
        };
        let wrong = |_| {
            ModelError::Unsuitable(format!(
                "{}: `{PAIRS_KEY}` is `{text}`, not a number",
                self.version
            ))
        };
        text.parse().map(Some).map_err(wrong)
    }

    fn bare(path: &Path) -> Result<Self, ModelError> {
        let bytes = read(path, MAX_MODEL_BYTES)?;
        let metadata = metadata_of(&bytes).map_err(unreadable("use", path.display()))?;
        let stem = path.file_stem().unwrap_or_default();
        Ok(Self {
            bytes,
            version: stem.to_string_lossy().into_owned(),
            step: metadata.step,
            layout: metadata.layout,
            search: None,
        })
    }

    fn in_folder(path: &Path, version: Option<&str>) -> Result<Self, ModelError> {
        if is_there(&path.join(MANIFEST))? {
            return Self::checkpoint(path, version);
        }
        let config = path.join(RUN_CONFIG);
        if is_there(&config)? {
            let run = load_run(&config)?;
            let store = &run.checkpoints.store;
            // Opening a store makes its folder; asking for a network should not.
            if !store.contains("://") && !Path::new(store).is_dir() {
                return Err(no_checkpoint(store));
            }
            let found = Self::in_store(store, version, path.display().to_string())?;
            return Ok(Self {
                search: Some(run.search),
                ..found
            });
        }
        if is_there(&path.join(VERSIONS))? {
            return Self::in_store(&path.to_string_lossy(), version, path.display().to_string());
        }
        if path.exists() {
            return Err(no_checkpoint(path));
        }
        let missing = io::Error::from(io::ErrorKind::NotFound);
        Err(unreadable("read", path.display())(missing))
    }

    /// Reads the folder of one checkpoint. A shipped one has the `run.toml` of its run next to it.
    fn checkpoint(folder: &Path, asked: Option<&str>) -> Result<Self, ModelError> {
        let path = folder.join(MANIFEST);
        let damaged = |path: &Path, reason: String| {
            ModelError::Unsuitable(format!("{} is damaged: {reason}", path.display()))
        };
        let manifest: Manifest = serde_json::from_slice(&read(&path, MAX_MANIFEST_BYTES)?)
            .map_err(|error| damaged(&path, error.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(damaged(
                &path,
                format!("it has schema {}, this build reads {SCHEMA}", manifest.schema),
            ));
        }
        if let Some(asked) = asked.filter(|&asked| asked != manifest.version.as_str()) {
            return Err(ModelError::Unsuitable(format!(
                "{} is the folder of checkpoint {}; leave out @{asked}",
                folder.display(),
                manifest.version
            )));
        }
        let file = folder.join(MODEL);
        let bytes = read(&file, MAX_MODEL_BYTES)?;
        let published = manifest
            .files
            .get(MODEL)
            .ok_or_else(|| damaged(&path, format!("it does not list {MODEL}")))?;
        let found = sha256_hex(&bytes);
        if found != published.sha256 {
            let expected = &published.sha256;
            return Err(damaged(
                &file,
                format!("its sha-256 is {found}, {expected} was published"),
            ));
        }
        let config = folder.join(RUN_CONFIG);
        let search = match is_there(&config)? {
            true => Some(load_run(&config)?.search),
            false => None,
        };
        Ok(Self {
            search,
            ..Self::of_manifest(&manifest, bytes, &path.display().to_string())?
        })
    }

    fn in_store(store: &str, version: Option<&str>, place: String) -> Result<Self, ModelError> {
        let name = version.unwrap_or(LATEST);
        let found: Result<(Manifest, Bytes), checkpoints::Error> = blocking(async {
            let repository = Repository::open(store)?;
            let manifest = repository.resolve(name).await?;
            let bytes = repository.fetch(&manifest, MODEL).await?;
            Ok((manifest, bytes))
        })
        .map_err(unreadable("read", "the model store"))?;
        let (manifest, bytes) = found.map_err(|source| ModelError::Store {
            place: place.clone(),
            source,
        })?;
        Self::of_manifest(&manifest, bytes, &place)
    }

    fn of_manifest(manifest: &Manifest, bytes: Bytes, place: &str) -> Result<Self, ModelError> {
        let fault = |reason: String| other_rows(place, &manifest.draft.game, &reason);
        let layout: RowLayout = serde_json::from_value(manifest.draft.layout.clone())
            .map_err(|error| fault(error.to_string()))?;
        layout.check().map_err(|error| fault(error.to_string()))?;
        Ok(Self {
            bytes,
            version: manifest.version.to_string(),
            step: manifest.draft.step,
            layout,
            search: None,
        })
    }
}

/// Returns the representation of `G` with the row layout `layout`. The check is necessary: rows of one game can be valid
/// rows of another game's layout, and the predictions for such rows are noise.
///
/// # Errors
/// [`ModelError::Unsuitable`] if the network is for another game, or for rows that this build does not write.
pub fn encoding_of<G: Game>(layout: &RowLayout, place: &str) -> Result<G::Encoding, ModelError> {
    if layout.game != G::name() {
        let reason = format!("{place} plays {}, not {}", layout.game, G::name());
        return Err(ModelError::Unsuitable(reason));
    }
    let fault = |reason: String| other_rows(place, &layout.game, &reason);
    let rules =
        serde_json::from_value(rules_of(G::SIZES, layout)).map_err(|error| fault(error.to_string()))?;
    let encoding = G::encoding(&rules, layout.options).map_err(|error| fault(error.reason))?;
    check_layout(layout, &G::layout(encoding), place)?;
    Ok(encoding)
}

/// Returns the rules that a layout implies, as a JSON object: the default rules, and the size of the board for a game with `sizes`.
pub(crate) fn rules_of(sizes: Option<Sizes>, layout: &RowLayout) -> serde_json::Value {
    match (sizes, layout.stack()) {
        (Some(_), Ok(stack)) => serde_json::json!({ "size": stack.width }),
        _ => serde_json::json!({}),
    }
}

/// Checks that the rows of the network at `place` are those of the layout `wanted`.
///
/// # Errors
/// [`ModelError::Unsuitable`] that names what the network plays and what was wanted: games with the sizes of their boards, or options.
pub fn check_layout(found: &RowLayout, wanted: &RowLayout, place: &str) -> Result<(), ModelError> {
    if found == wanted {
        return Ok(());
    }
    let sides = |layout: &RowLayout| layout.stack().ok().map(|stack| (stack.height, stack.width));
    let is_same_board = (&found.game, sides(found)) == (&wanted.game, sides(wanted));
    if is_same_board && found.options == wanted.options {
        return Err(other_rows(place, &found.game, "its row layout is another"));
    }
    if is_same_board {
        return Err(ModelError::Unsuitable(format!(
            "{place} takes rows of {} with options {}, not {}",
            found.game, found.options, wanted.options
        )));
    }
    let board = |layout, after| match sides(layout) {
        Some((height, width)) => format!("{} on {height}×{width}{after}", layout.game),
        None => layout.game.clone(),
    };
    let (found, wanted) = (board(found, " squares"), board(wanted, ""));
    Err(ModelError::Unsuitable(format!(
        "{place} plays {found}, not {wanted}"
    )))
}

/// Returns the error for a network whose rows this build does not write.
fn other_rows(place: &str, game: &str, reason: &str) -> ModelError {
    ModelError::Unsuitable(format!(
        "{place} takes rows of {game} that this build does not write: {reason}"
    ))
}

/// Runs a future to completion on a new thread, so that it works inside an async runtime too.
pub(crate) fn blocking<F: Future + Send>(future: F) -> io::Result<F::Output>
where
    F::Output: Send,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::scope(|scope| scope.spawn(move || runtime.block_on(future)).join())
        .map_err(|_| io::Error::other("a thread panicked"))
}

/// True if a file or folder exists. Without the right to look there, that is the error.
fn is_there(path: &Path) -> Result<bool, ModelError> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(unreadable("read", path.display())(error)),
    }
}

fn load_run(path: &Path) -> Result<config::RunConfig, ModelError> {
    config::load(path).map_err(unreadable("use", path.display()))
}

fn read(path: &Path, most: u64) -> Result<Bytes, ModelError> {
    service::filesystem::read(path, most)
        .map(Bytes::from)
        .map_err(unreadable("read", path.display()))
}

#[cfg(test)]
mod tests {
    use games::{
        Notation, RowForm,
        connect_four::{ConnectFour, Encoding},
        gomoku::Gomoku,
        othello::Othello,
    };

    use super::*;

    /// Returns a layout of `G` whose planes have these sides.
    fn layout<G: Notation>(height: u32, width: u32) -> RowLayout {
        let encoding = G::encoding(&G::Rules::default(), G::OPTIONS).unwrap();
        let mut layout = G::layout(encoding);
        if let RowForm::Planes(stack) = &mut layout.form {
            (stack.height, stack.width) = (height, width);
        }
        layout
    }

    #[test]
    fn a_network_for_another_board_is_refused_with_the_names_of_both() {
        let refused = |layout: &RowLayout| encoding_of::<ConnectFour>(layout, "net").unwrap_err().to_string();
        let other_game = layout::<Othello>(8, 8);
        assert_eq!(refused(&other_game), "net plays othello, not connect-four");
        let other_board = layout::<ConnectFour>(8, 8);
        let said = "net plays connect-four on 8×8 squares, not connect-four on 6×7";
        assert_eq!(refused(&other_board), said);
        let large = check_layout(&layout::<Gomoku>(15, 15), &layout::<Gomoku>(8, 8), "net");
        let said = "net plays gomoku on 15×15 squares, not gomoku on 8×8";
        assert_eq!(large.unwrap_err().to_string(), said);
        let other_rows = RowLayout {
            mirrored_actions: true,
            ..layout::<ConnectFour>(6, 7)
        };
        assert!(refused(&other_rows).ends_with("does not write: its row layout is another"));
        let other_options = RowLayout {
            options: 5,
            ..other_board.clone()
        };
        let said = check_layout(&other_options, &other_board, "net")
            .unwrap_err()
            .to_string();
        assert_eq!(said, "net takes rows of connect-four with options 5, not 1");
    }

    #[test]
    fn networks_of_each_representation_are_taken() {
        for encoding in [Encoding::Padded, Encoding::Cells] {
            let layout = ConnectFour::layout(encoding);
            assert_eq!(encoding_of::<ConnectFour>(&layout, "net").unwrap(), encoding);
        }
    }
}
