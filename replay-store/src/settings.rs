//! A store's settings, and the bounds that are fixed.

use std::path::PathBuf;

use config::RunConfig;

use crate::{
    record::surprise::Surprise,
    window::held_out::HeldOut,
    window::sampler::{PowerLaw, Sampling},
    window::uses_bound::Bounds,
};

/// Number of games, retired ones included, whose ids the store remembers, so that it recognises a game sent again.
const REMEMBERED_GAMES: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// A volume is sealed at this part of the window, so that at most so much more than the window lies on the disk.
pub const VOLUMES_PER_WINDOW: u64 = 8;
/// A volume is sealed at this many bytes of records too, which bounds the memory of opening it.
pub const MAX_VOLUME_BYTES: u64 = 64 * MIB;
/// Most bytes of one packed game.
pub const MAX_RECORD_BYTES: usize = 8 << 20;
/// Bytes of records after which no more games join a commit.
pub const MAX_COMMIT_BYTES: usize = 4 << 20;
/// Most games in one commit, and waiting for one.
pub const MAX_COMMIT_GAMES: usize = 1024;
/// Most bytes of records waiting to be committed, in KiB.
pub const MAX_QUEUED_KIB: u32 = 64 * 1024;
/// Games of one stream that may be unacknowledged; its next one is read when there are fewer.
pub const MAX_UNACKNOWLEDGED: usize = 256;
/// Largest message of a game that is taken, in bytes.
pub const MAX_GAME_BYTES: usize = 16 << 20;
/// Most positions in a batch.
pub const MAX_BATCH_POSITIONS: u32 = 65_536;
/// Most ids in one request of `KnownGames`.
pub const MAX_KNOWN_IDS: usize = 65_536;
/// Most games in one answer to `ListGames`.
pub const MAX_LISTED: u32 = 1000;

/// Settings of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The store's folder.
    pub folder: PathBuf,
    /// The game whose positions it holds.
    pub game: String,
    /// The representation options of its rows.
    pub options: u32,
    /// Folder of the index; `None` to work without one.
    pub index: Option<PathBuf>,
    /// Trainable positions in the window.
    pub window_positions: u64,
    /// Options of drawing positions.
    pub sampling: Sampling,
    /// Which games are kept from training.
    pub held_out: HeldOut,
    /// Bounds on how often a position is used.
    pub bounds: Bounds,
    /// Memory for decoded games, in bytes.
    pub cache_bytes: usize,
    /// Games are refused while the folder takes more than this, in bytes.
    pub max_disk_bytes: u64,
    /// Games are refused while less than this is free on the disk, in bytes.
    pub min_free_bytes: u64,
    /// Games whose ids are remembered at least, retired ones included.
    pub remembered_games: u64,
    /// Folder or URL to which sealed volumes are written before they are removed. Empty: volumes are not archived.
    pub archive: String,
}

impl Settings {
    /// Takes the store's part of a run's configuration.
    pub fn from_config(config: &RunConfig) -> Self {
        Self {
            folder: config.replay.folder.clone(),
            game: config.game.name.clone(),
            options: config.game.options,
            index: Some(config.replay.folder.join("index")),
            window_positions: config.replay.window_positions,
            sampling: Sampling {
                window: (config.replay.window_growth > 0.0).then_some(PowerLaw {
                    minimum: config.replay.window_minimum,
                    growth: config.replay.window_growth,
                    exponent: config.replay.window_exponent,
                }),
                surprise: Surprise {
                    policy: config.replay.policy_surprise,
                    value: config.replay.value_surprise,
                },
            },
            held_out: HeldOut::new(config.replay.held_out),
            bounds: Bounds {
                min_uses: config.replay.min_uses,
                max_uses: config.replay.max_uses,
                slack: config.replay.uses_slack,
            },
            cache_bytes: usize::try_from(config.replay.cache_mib.saturating_mul(MIB)).unwrap_or(usize::MAX),
            max_disk_bytes: config.replay.max_disk_mib.saturating_mul(MIB),
            min_free_bytes: config.replay.min_free_mib.saturating_mul(MIB),
            remembered_games: REMEMBERED_GAMES,
            archive: config.replay.archive.clone(),
        }
    }

    /// Positions at which a volume is sealed.
    pub fn volume_positions(&self) -> u64 {
        self.window_positions.div_ceil(VOLUMES_PER_WINDOW)
    }
}
