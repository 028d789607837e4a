//! [`Network`]: the size of the measured network, written `blocks`x`filters`.

use std::{fmt, str::FromStr};

/// Size of a residual tower; over clans, `blocks` is the number of a fish-eye network's convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Residual blocks.
    pub blocks: usize,
    /// Filters of each block.
    pub filters: usize,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.split_once('x').and_then(|(blocks, filters)| {
            let (blocks, filters) = (blocks.parse().ok()?, filters.parse().ok()?);
            Some(Self { blocks, filters })
        });
        network
            .filter(|network| network.blocks <= 100 && (1..=4096).contains(&network.filters))
            .ok_or_else(|| format!("`{text}` is not a network; write blocks x filters, e.g. 6x64"))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.blocks, self.filters)
    }
}
