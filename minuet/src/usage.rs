//! Recognises errors of usage: the process exits with code 2 for those, and with 1 for other errors.

use arena::SpecError;
use config::ConfigError;
use games::{StartError, registry::UnknownGame};
use network::name::NoModelName;

use crate::plan::NotMeasured;

pub use launcher::BadUsage;

/// True if an error is about the arguments or a configuration.
pub fn is_bad_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<BadUsage>()
            || cause.is::<ConfigError>()
            || cause.is::<UnknownGame>()
            || cause.is::<StartError>()
            || cause.is::<SpecError>()
            || cause.is::<NoModelName>()
            || cause.is::<NotMeasured>()
    })
}
