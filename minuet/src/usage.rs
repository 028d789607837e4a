//! Arguments that cannot be used: the process exits with 2 then, and with 1 where something else went wrong.

use arena::SpecError;
use config::ConfigError;
use games::{StartError, registry::UnknownGame};
use network::name::NoModelName;

pub use launcher::BadUsage;

/// Whether an error is about what was typed, or written in a configuration.
pub fn is_bad_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<BadUsage>()
            || cause.is::<ConfigError>()
            || cause.is::<UnknownGame>()
            || cause.is::<StartError>()
            || cause.is::<SpecError>()
            || cause.is::<NoModelName>()
    })
}
