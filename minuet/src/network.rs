//! The network of a command that thinks itself: by name, in this process or behind an inference server.

use anyhow::Context as _;
use arena::players::{NetworkOptions, Networks};
use games::Game;
use network::batched::EvaluationSource;
use network::{ModelName, file::encoding_of};

/// The name of a search without a network. Only who asks for it by name gets it.
const UNIFORM: &str = "uniform";

/// Opens the network that `name` stands for, to be asked about `G`.
///
/// # Errors
/// What is wrong with the name, the file or the server.
pub fn open<G: Game>(name: &str, options: NetworkOptions) -> anyhow::Result<EvaluationSource> {
    if name == UNIFORM {
        return Ok(EvaluationSource::Uniform);
    }
    let parsed: ModelName = name.parse()?;
    let network = Networks::new(options)
        .open(&parsed)
        .with_context(|| format!("the network {name} cannot be used"))?;
    encoding_of::<G>(&network.description().layout, name)?;
    Ok(network.source(0))
}

/// A network in a few words.
pub fn describe(source: &EvaluationSource) -> String {
    match source {
        EvaluationSource::Uniform => "none: every move is as likely as the next".into(),
        EvaluationSource::Network { network, .. } => {
            let description = network.description();
            format!(
                "{} (step {}), run by {}",
                description.version, description.step, description.provider
            )
        }
    }
}
