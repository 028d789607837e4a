//! Which network is measured, as blocks x filters.

use std::{fmt, str::FromStr};

/// A residual tower; over clans a fish-eye network of so many convolutions and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Residual blocks.
    pub blocks: usize,
    /// Filters of each.
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
            .ok_or_else(|| format!("`{text}` is no network; write blocks x filters, e.g. 6x64"))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.blocks, self.filters)
    }
}
