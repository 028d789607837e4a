//! Opens the network of a command that searches: by name, in this process or on an inference server.

use std::sync::Arc;

use anyhow::Context as _;
use arena::players::{NetworkOptions, Networks, OpenedNetwork};
use games::Game;
use network::batched::EvaluationSource;
use network::{ModelName, file::encoding_of};

/// Name of a search without a network. No other name leads to it.
pub const UNIFORM: &str = "uniform";

/// Opens the network `name`. `None` for the name of a search without a network.
///
/// # Errors
/// The name, the file or the server cannot be used.
pub fn find(name: &str, options: NetworkOptions) -> anyhow::Result<Option<Arc<OpenedNetwork>>> {
    if name == UNIFORM {
        return Ok(None);
    }
    let parsed: ModelName = name.parse()?;
    let opened = Networks::new(options).open(&parsed);
    opened
        .map(Some)
        .with_context(|| format!("the network {name} cannot be used"))
}

/// Opens the network `name` for the game `G`.
///
/// # Errors
/// The name, the file or the server cannot be used.
pub fn open<G: Game>(name: &str, options: NetworkOptions) -> anyhow::Result<EvaluationSource> {
    let Some(network) = find(name, options)? else {
        return Ok(EvaluationSource::Uniform);
    };
    encoding_of::<G>(&network.description().layout, name)?;
    Ok(network.source(0)?)
}

/// Describes a network in one line.
pub fn describe(source: &EvaluationSource) -> String {
    match source {
        EvaluationSource::Uniform => "none: all moves are equally likely".into(),
        EvaluationSource::Network { network, .. } => {
            let description = network.description();
            format!(
                "{} (step {}), run by {}",
                description.version, description.step, description.provider
            )
        }
    }
}
