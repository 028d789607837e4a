//! (to be written)

/// Arguments.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs it.
pub fn run(_: Arguments) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}
