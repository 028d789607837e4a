//! Networks that come with Minuet: `networks/<game>/` in the repository, each in the form of a checkpoint's folder.

use std::path::{Path, PathBuf};

use crate::beside;

/// Folders of the networks, relative to the executable: for programs and test programs in a clone of the repository, and for
/// a container image.
const BESIDE_EXECUTABLE: [&str; 3] = ["../../networks", "../../../networks", "../networks"];

/// Error: Minuet comes with no network for the game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no network for {game} comes with Minuet (looked in {looked}): name one, for example a run's folder")]
pub struct NotShipped {
    /// Name of the game.
    pub game: String,
    /// Folders that were searched.
    pub looked: String,
}

/// Returns the folder of the network that comes with Minuet for a game.
///
/// # Errors
/// [`NotShipped`] if there is none.
pub fn folder(game: &str) -> Result<PathBuf, NotShipped> {
    folder_beside(&beside::programs(), game)
}

fn folder_beside(programs: &Path, game: &str) -> Result<PathBuf, NotShipped> {
    beside::find(programs, BESIDE_EXECUTABLE, game).map_err(|looked| NotShipped {
        game: game.into(),
        looked,
    })
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
        assert_eq!(folder_beside(&programs, "chess").unwrap(), network);
        assert_eq!(folder_beside(&deep, "chess").unwrap(), network);

        let error = folder_beside(&programs, "othello").unwrap_err().to_string();
        assert!(error.starts_with("no network for othello"), "{error}");

        let image = root.path().join("opt/minuet/networks/othello");
        let programs = root.path().join("opt/minuet/bin");
        fs::create_dir_all(&image).unwrap();
        fs::create_dir_all(&programs).unwrap();
        assert_eq!(
            folder_beside(&programs, "othello").unwrap(),
            image.canonicalize().unwrap()
        );
    }
}
