//! Tree search (UCT with PUCT selection) as a pure state machine over [`games::Game`].
//!
//! The search requests evaluations, and its caller supplies them. It never awaits, reads no clock, draws no entropy, and
//! sees neither a tensor nor a socket. One [`Search`] belongs to one game: [`Search::gather`] descends to leaves and
//! requests their evaluations, [`Search::apply`] takes the evaluations in any order, [`Search::choose`] draws an action
//! from the visits, and [`Search::advance`] plays it and keeps the subtree below it.
//!
//! ```
//! use games::{Game, MoverValue, connect_four::ConnectFour};
//! use search::{Evaluation, GameKey, Search, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let start = ConnectFour::start(&Default::default(), None)?;
//! let key = GameKey { run_seed: 1, game: 1 };
//! let mut search = Search::new(start, Settings { visits: 50, ..Settings::default() }, key);
//! while !search.is_decided() {
//!     // Up to `Settings::leaves` leaves wait for their evaluation at the same time.
//!     let mut requests = Vec::new();
//!     search.gather(|leaf| requests.push((leaf.id, leaf.legal.len())));
//!     for (id, actions) in requests {
//!         // A network would answer here. This evaluator finds all actions equally good.
//!         let priors = vec![1.0 / actions as f32; actions];
//!         search.apply(id, Evaluation { priors: &priors, value: MoverValue::new(0.0) })?;
//!     }
//! }
//! assert_eq!(search.decision().visits.iter().sum::<u32>(), 50);
//! let action = search.choose(0.0).ok_or("the game is over")?;
//! search.advance(action)?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | every setting: the section `[search]` of `run.toml` |
//! | [`search`](mod@search) | the state machine: decision node, budget of visits, re-rooting; counters |
//! | [`gather`](mod@gather) | visits descend; new leaves request evaluations |
//! | `puct` | the PUCT formula and first-play urgency; selection of the largest score |
//! | [`gumbel`] | the Gumbel root: candidates and sequential halving, instead of PUCT at the decision node |
//! | [`completed_q`] | values of all actions, and the policy that they improve |
//! | [`apply`](mod@apply) | evaluations arrive, are checked and go up the paths; a decision in one call |
//! | [`noise`] | Dirichlet noise for the decision node |
//! | [`decision`] | the result, and the choice of an action by temperature |
//! | [`solve`] | one-player games: the shortest solution known, and its proof |
//! | [`look`] | any node of the tree, by its path; the most visited line |
//! | `proof` | two-player games: nodes whose outcome is proven |
//! | [`draws`] | the seeded generator |
//! | `tree` | nodes and edge statistics in memory; virtual losses; reclaiming dropped nodes |

mod proof;
mod puct;
mod tree;

pub mod apply;
pub mod completed_q;
pub mod decision;
pub mod draws;
pub mod gather;
pub mod gumbel;
pub mod look;
pub mod noise;
pub mod search;
pub mod settings;
pub mod solve;

pub use apply::{ApplyError, Evaluation};
pub use completed_q::CompletedQ;
pub use decision::Decision;
pub use draws::{Draws, GameKey, Purpose};
pub use gather::{LeafId, LeafRequest};
pub use search::{Counters, Depths, Search};
pub use settings::{FirstPlay, Reuse, Root, Settings, SettingsError, TemperatureStep};

#[cfg(test)]
mod tests;
