//! What every role shares: the run's configuration, logging, metrics, health, draining, connecting.
//!
//! | module | what it is for |
//! |---|---|
//! | [`config`] | `run.toml`: sections, defaults, checking, errors that name the key |

pub mod config;
