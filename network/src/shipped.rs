//! Networks that come with Minuet: `networks/<game>/` in the repository, each in the form of a checkpoint's folder. That of the game
//! contains the folders of the weaker levels.

use std::{
    io,
    path::{Path, PathBuf},
};

use checkpoints::Manifest;
use games::{RowLayout, erased::AnyGame, registry};

/// Name of the description in a checkpoint's folder.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Folders of the networks, relative to the executable: for programs and test programs in a clone of the repository, and for
/// a container image.
const BESIDE_EXECUTABLE: [&str; 3] = ["../../networks", "../../../networks", "../networks"];

/// Level of play of a network that comes with Minuet. The weaker levels are earlier checkpoints of its training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// After about a fiftieth of the training steps.
    Beginner,
    /// After about a seventh of the training steps.
    Medium,
    /// The last checkpoint.
    Strong,
}

impl Level {
    /// All levels, the strongest first.
    pub const ALL: [Self; 3] = [Self::Strong, Self::Medium, Self::Beginner];

    /// Returns the name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beginner => "beginner",
            Self::Medium => "medium",
            Self::Strong => "strong",
        }
    }

    /// Returns the level with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Error: Minuet comes with no network for the game, or with none of the level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no network for {game} comes with Minuet (looked in {looked}): name one, for example a run's folder")]
pub struct NotShipped {
    /// Name of the game, with the level if that is not the strongest.
    pub game: String,
    /// Folders that were searched.
    pub looked: String,
}

/// Returns the folder of the network that comes with Minuet for a game, or for a game on a board of one size (`go:9`).
///
/// # Errors
/// [`NotShipped`] if there is none.
pub fn folder(game: &str, level: Level) -> Result<PathBuf, NotShipped> {
    let Some((name, _)) = game.split_once(':') else {
        return folder_beside(&programs(), game, level);
    };
    let of_board = registry::find(game)
        .ok()
        .and_then(|board| for_board(board, level));
    of_board.ok_or_else(|| NotShipped {
        game: game.to_owned(),
        looked: folder_beside(&programs(), name, level)
            .map_or_else(|error| error.looked, |usual| usual.display().to_string()),
    })
}

/// Returns the folder of the network that comes with Minuet for a game with a board of this size. `None` if there is none.
pub fn for_board(game: &AnyGame, level: Level) -> Option<PathBuf> {
    let plays = |folder: &PathBuf| {
        let manifest = std::fs::read(folder.join(MANIFEST)).ok()?;
        let manifest: Manifest = serde_json::from_slice(&manifest).ok()?;
        let layout: RowLayout = serde_json::from_value(manifest.draft.layout).ok()?;
        Some(layout.title())
    };
    let folder = folder(game.name, level).ok()?;
    let fits = game.sizes.is_none() || plays(&folder)? == game.title();
    fits.then_some(folder)
}

fn folder_beside(programs: &Path, game: &str, level: Level) -> Result<PathBuf, NotShipped> {
    let (path, name) = match level {
        Level::Strong => (game.to_owned(), game.to_owned()),
        _ => (
            format!("{game}/{}", level.name()),
            format!("{game}@{}", level.name()),
        ),
    };
    find_beside(programs, BESIDE_EXECUTABLE, &path).map_err(|searched| NotShipped {
        game: name,
        looked: match searched.unreadable {
            Some(reason) => format!("{}; {reason}", searched.folders),
            None => searched.folders,
        },
    })
}

/// Returns the folder of Minuet's programs; the working folder if the system does not name it.
pub(crate) fn programs() -> PathBuf {
    service::process::programs().unwrap_or_else(|_| ".".into())
}

/// Folders that were searched without a find.
pub(crate) struct Searched {
    /// All of them, as text.
    pub folders: String,
    /// The first path that this account cannot look at, with the reason.
    pub unreadable: Option<String>,
}

/// Returns the path of the first `name` that exists in one of `folders`, which are relative to `programs`, with links
/// resolved.
///
/// # Errors
/// [`Searched`] if there is none.
pub(crate) fn find_beside<const N: usize>(
    programs: &Path,
    folders: [&str; N],
    name: &str,
) -> Result<PathBuf, Searched> {
    let folders = folders.map(|relative| programs.join(relative));
    let mut unreadable = None;
    for folder in &folders {
        let path = folder.join(name);
        match path.canonicalize() {
            Ok(found) => return Ok(found),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(error) => unreadable = unreadable.or(Some(format!("{}: {error}", path.display()))),
        }
    }
    let folders = folders.map(|folder| folder.display().to_string()).join(", ");
    Err(Searched { folders, unreadable })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_clone_and_an_image_have_their_networks_in_these_folders() {
        let root = tempfile::tempdir().unwrap();
        let programs = root.path().join("target/release");
        let deep = root.path().join("target/release/deps");
        let network = root.path().join("networks/chess");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(&network).unwrap();
        let network = network.canonicalize().unwrap();
        let strong = |programs: &Path, game| folder_beside(programs, game, Level::Strong);
        assert_eq!(strong(&programs, "chess").unwrap(), network);
        assert_eq!(strong(&deep, "chess").unwrap(), network);

        let error = strong(&programs, "othello").unwrap_err().to_string();
        assert!(error.starts_with("no network for othello comes"), "{error}");

        // A link to itself takes the place of a file that this account may not read.
        let unreadable = root.path().join("networks/othello");
        std::os::unix::fs::symlink(&unreadable, &unreadable).unwrap();
        let error = strong(&programs, "othello").unwrap_err().to_string();
        assert!(error.contains("networks/othello: Too many levels"), "{error}");
        fs::remove_file(unreadable).unwrap();

        let error = folder_beside(&programs, "chess", Level::Medium).unwrap_err();
        assert_eq!(error.game, "chess@medium");
        fs::create_dir(network.join("medium")).unwrap();
        let medium = folder_beside(&programs, "chess", Level::Medium).unwrap();
        assert_eq!(medium, network.join("medium"));

        let image = root.path().join("opt/minuet/networks/othello");
        let programs = root.path().join("opt/minuet/bin");
        fs::create_dir_all(&image).unwrap();
        fs::create_dir_all(&programs).unwrap();
        assert_eq!(
            strong(&programs, "othello").unwrap(),
            image.canonicalize().unwrap()
        );
    }
}
