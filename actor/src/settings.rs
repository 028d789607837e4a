//! Search settings of one game among many: each tree gets a share of the process's memory.

use search::{Settings, SettingsError};

/// Memory limit of all trees of a process together, in bytes.
const ALL_TREES: usize = 1 << 30;
/// Least memory limit of one tree, in bytes.
const SMALLEST_TREE: usize = 1 << 20;
/// Greatest memory limit of one tree, in bytes.
const LARGEST_TREE: usize = 256 << 20;

/// Returns the settings with the memory limit of one of `games` trees.
///
/// # Errors
/// [`SettingsError`] naming the setting that is out of range.
pub fn search_settings(settings: &Settings, games: usize) -> Result<Settings, SettingsError> {
    settings.check()?;
    Ok(Settings {
        tree_bytes: (ALL_TREES / games.max(1)).clamp(SMALLEST_TREE, LARGEST_TREE),
        ..settings.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tree_gets_its_share_of_the_memory() {
        let share = |games| search_settings(&Settings::default(), games).unwrap().tree_bytes;
        assert_eq!(
            [share(1), share(64), share(100_000)],
            [256 << 20, 16 << 20, 1 << 20]
        );
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let wrong = Settings {
            leaves: 0,
            ..Settings::default()
        };
        assert_eq!(search_settings(&wrong, 1).unwrap_err().setting, "leaves");
    }
}
