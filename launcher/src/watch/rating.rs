//! [`Rating`]: figures of the rating role.

use serde::{Deserialize, Serialize};
use service::role::Role;

use super::{names, observe::Observation};
use crate::page::Page;

/// Strength of the checkpoints, in Elo above the first one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rating {
    /// The best checkpoint.
    pub best: Option<Elo>,
    /// The newest checkpoint that was rated or is being rated.
    pub latest: Option<Elo>,
    /// Games played since the role was started.
    pub games: Option<u64>,
    /// Number of times that the best checkpoint was replaced since the role was started.
    pub promotions: Option<u64>,
}

/// Rating of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elo {
    /// Training steps of the checkpoint.
    pub step: u64,
    /// Elo above the first checkpoint.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// Reads the figures from the rating's metrics page; `None` if the run has no rating role.
pub fn rating(observation: &Observation) -> Option<Rating> {
    let mut processes = observation.processes.values();
    processes.find(|process| process.role == Role::Rating)?;
    let page = observation.pages(Role::Rating).next();
    let whole = |name| page.and_then(|page| page.sum(name)).map(|value| value as u64);
    Some(Rating {
        best: page.and_then(|page| elo(page, "best")),
        latest: page.and_then(|page| elo(page, "latest")),
        games: whole(names::RATING_GAMES),
        promotions: whole(names::RATING_PROMOTIONS),
    })
}

fn elo(page: &Page, whose: &str) -> Option<Elo> {
    let of = |name| {
        page.sum_with(name, "checkpoint", whose)
            // A checkpoint without games has no rating.
            .filter(|value| value.is_finite())
    };
    Some(Elo {
        step: of(names::RATING_STEP)? as u64,
        elo: of(names::RATING_ELO)?,
        low: of(names::RATING_ELO_LOW)?,
        high: of(names::RATING_ELO_HIGH)?,
    })
}
