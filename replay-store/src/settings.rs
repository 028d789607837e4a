//! The settings of a store, and its fixed limits.

use std::path::PathBuf;

use config::RunConfig;

use crate::window::{held_out::HeldOut, uses_bound::Bounds};

const MIB: u64 = 1 << 20;
/// Memory of the cache of decoded games, in bytes: it holds some 100,000 positions of chess.
const CACHE_BYTES: usize = 256 << 20;

/// Number of volumes per window: a volume is sealed when it holds this part of the window. The disk then holds little more than the
/// window.
pub const VOLUMES_PER_WINDOW: u64 = 8;
/// Number of bytes of records at which a volume is sealed as well. It limits the memory that opening the volume needs.
pub const MAX_VOLUME_BYTES: u64 = 64 * MIB;
/// Maximum length of a packed game in bytes.
pub const MAX_RECORD_BYTES: usize = 8 << 20;
/// Number of bytes of records after which no more games are added to a commit.
pub const MAX_COMMIT_BYTES: usize = 4 << 20;
/// Maximum number of games in one commit, and of games that wait for one.
pub const MAX_COMMIT_GAMES: usize = 1024;
/// Maximum length of the records that wait to be committed, in KiB.
pub const MAX_QUEUED_KIB: u32 = 64 * 1024;
/// Maximum number of unacknowledged games of one stream. The next game is read when there are fewer.
pub const MAX_UNACKNOWLEDGED: usize = 256;
/// Maximum length of the message of a game, in bytes.
pub const MAX_GAME_BYTES: usize = 16 << 20;
/// Maximum number of positions in a batch.
pub const MAX_BATCH_POSITIONS: u32 = 65_536;
/// Maximum number of ids in one request of `KnownGames`.
pub const MAX_KNOWN_IDS: usize = 65_536;
/// Maximum number of games in one reply to `ListGames`.
pub const MAX_LISTED: u32 = 1000;

/// Settings of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The store's folder.
    pub folder: PathBuf,
    /// Name of the game that the store holds, with the size of the board if there are several (`gomoku:15`).
    pub game: String,
    /// Representation options of the rows.
    pub options: u32,
    /// Size of the window in trainable positions.
    pub window_positions: u64,
    /// Share of the games that are held out of training.
    pub held_out: HeldOut,
    /// Bounds on how often a position is used.
    pub bounds: Bounds,
    /// Memory for decoded games, in bytes.
    pub cache_bytes: usize,
    /// Size of the folder above which games are refused, in bytes.
    pub max_disk_bytes: u64,
    /// Free space of the disk below which games are refused, in bytes.
    pub min_free_bytes: u64,
    /// Folder or URL to which sealed volumes are written before they are removed. Empty: volumes are not archived.
    pub archive: String,
}

impl Settings {
    /// Returns the settings of the store in a run's configuration.
    pub fn from_config(config: &RunConfig) -> Self {
        Self {
            folder: config.replay.folder.clone(),
            game: config.game.title(),
            options: config.game.options,
            window_positions: config.replay.window_positions,
            held_out: HeldOut::new(config.replay.held_out),
            bounds: Bounds {
                min_uses: config.replay.min_uses,
                max_uses: config.replay.max_uses,
                slack: config.replay.uses_slack,
            },
            cache_bytes: CACHE_BYTES,
            max_disk_bytes: config.replay.max_disk_mib.saturating_mul(MIB),
            min_free_bytes: config.replay.min_free_mib.saturating_mul(MIB),
            archive: config.replay.archive.clone(),
        }
    }

    /// Returns the number of positions at which a volume is sealed.
    pub fn volume_positions(&self) -> u64 {
        self.window_positions.div_ceil(VOLUMES_PER_WINDOW)
    }
}
