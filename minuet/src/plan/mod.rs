//! `minuet plan`: what a run of a given size needs, computed from measured figures.
//!
//! | module | contents |
//! |---|---|
//! | [`measured`] | results of `minuet bench … --json`: a file of them, and the figures that come with Minuet |
//! | [`needs`] | the calculation, without input or output |
//! | [`result`] | the table of a plan |

mod measured;
mod needs;
mod result;

use std::path::PathBuf;

use games::registry;

use measured::Measured;
use needs::Demand;

/// Arguments of `minuet plan`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet plan --game paco-sako --positions-per-day 10000000
      what ten million positions a day need, by the figures that come with Minuet
  minuet bench selfplay --game othello --json > figures.jsonl
  minuet bench inference --game othello --networks 4x64 --overload 0 --json >> figures.jsonl
  minuet bench training --game othello --json >> figures.jsonl
  minuet bench replay --game othello --json >> figures.jsonl
  minuet plan --game othello --positions-per-day 10000000 --measured figures.jsonl --json
      the same for another game, by the figures of this machine

Figures that were not measured are not guessed: the plan lists them, each with the command that measures it. `null` takes
their place in the object that --json prints. Needs are those of full load; add what is to be spare.")]
pub struct Arguments {
    /// Name of the game, with the size of its board if there are several (gomoku:15).
    #[arg(long, value_parser = registry::checked)]
    game: String,
    /// Size of the network, as BLOCKSxFILTERS. [default: that of a new run of the game]
    #[arg(long)]
    network: Option<String>,
    /// Number of positions that self-play produces in 24 hours, at least 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    positions_per_day: u64,
    /// File of results of `minuet bench … --json`, one object after the other; the last one of a kind counts.
    /// [default: the figures that come with Minuet]
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Computes the plan and prints it.
///
/// # Errors
/// The file cannot be used, or the network was not measured.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = launcher::new_run(Some(&arguments.game), &[])?;
    let measured = match &arguments.measured {
        None => Measured::shipped()?,
        Some(file) => Measured::read(file)?,
    };
    let usual = || format!("{}x{}", config.model.blocks, config.model.filters);
    let demand = Demand {
        game: arguments.game.clone(),
        network: arguments.network.clone().unwrap_or_else(usual),
        positions_per_day: arguments.positions_per_day,
        samples_per_position: config.learner.samples_per_position,
        visits: config.search.visits,
        batch: config.learner.batch_size,
        checkpoint_steps: config.learner.checkpoint_steps,
    };
    let plan = demand.plan(&measured)?;
    if arguments.json {
        println!("{plan}");
    } else {
        print!("{}", result::text(&plan));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
