//! `minuet bench playouts`: a whole player with a real network on one core, against the network alone.
//!
//! One thread, pinned to one core with everything it starts, plays games against itself: search, cache and ONNX Runtime
//! share that core. In turns with it, the same core evaluates positions one at a time (batch 1) with ONNX Runtime and
//! nothing else, by the same provider and by the plain CPU provider. A *playout* is one traversal of the search that was backed
//! up; how each was answered is told apart: by a fresh evaluation, from the cache, by an evaluation that an
//! earlier move left in the tree (gray), or by the rules (terminal).
//!
//! | module | contents |
//! |---|---|
//! | [`player`] | many games on one thread |
//! | [`plain`] | the network alone, one position at a time |

mod plain;
mod player;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::ensure;
use games::{Game, registry};
use network::{
    ModelFile, ModelName, batched::EvaluationSource, cache::Cache, client::local::Opener, provider::Provider,
};
use onnx::Metadata;
use serde::Serialize;

use self::{
    plain::Plain,
    player::{Player, Totals},
};
use crate::harness::{
    measure::{Cores, Stopwatch},
    provider, report, rounds,
};

/// Arguments of `minuet bench playouts`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench playouts --game chess --json")]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = "chess")]
    game: String,
    /// A trained network: a run, a checkpoint's folder or an .onnx file. Without it, one of random weights.
    #[arg(long, conflicts_with_all = ["blocks", "filters"])]
    model: Option<ModelName>,
    /// Residual blocks of the random network.
    #[arg(long, default_value_t = 4)]
    blocks: usize,
    /// Filters of the random network.
    #[arg(long, default_value_t = 64)]
    filters: usize,
    /// Visits for each move.
    #[arg(long, default_value_t = 800)]
    visits: u32,
    /// Games at once: their leaves travel together.
    #[arg(long, default_value_t = 64)]
    games: usize,
    /// Leaves that one search hands out at once; 1 is serial UCT.
    #[arg(long, default_value_t = 1)]
    leaves: u32,
    /// Memory for the cache, in MiB.
    #[arg(long, default_value_t = 256)]
    cache: usize,
    /// What runs the network: auto takes the fastest that agrees with f32, as `minuet up` does.
    #[arg(long, default_value = "auto", value_parser = provider::read)]
    provider: config::Provider,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Rounds of all measurements in turn; medians count.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Serialize)]
pub struct Report {
    /// Always `playouts`.
    bench: &'static str,
    game: &'static str,
    /// The network: a version, or blocks and filters of random weights.
    network: String,
    visits_per_move: u32,
    games_at_once: usize,
    leaves: u32,
    cache_mib: usize,
    rounds: usize,
    measured: Vec<Measured>,
}

/// One provider's figures: medians over the rounds. "Per CPU second" is robust on a busy machine.
#[derive(Serialize)]
pub struct Measured {
    provider: String,
    playouts_per_second: f64,
    playouts_per_cpu_second: f64,
    /// Plain evaluations at batch 1, by the same provider.
    plain_per_second: f64,
    plain_per_cpu_second: f64,
    /// Playouts per CPU second, divided by plain evaluations per CPU second.
    ratio: f64,
    /// The same without gray visits: only playouts that asked for an evaluation, or ended the game.
    ratio_without_gray: f64,
    /// Playouts per CPU second, divided by plain evaluations per CPU second of ONNX Runtime's default CPU provider.
    ratio_to_default_provider: f64,
    /// Sums over all rounds. Of the evaluations that were asked for, `root_evaluations` were no playouts.
    playouts: u64,
    asked: u64,
    root_evaluations: u64,
    fresh: u64,
    cache_hits: u64,
    duplicates: u64,
    gray: u64,
    terminal: u64,
    moves: u64,
    /// Fresh evaluations of a batch, on average.
    batch: f64,
}

/// Runs it.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(
        arguments.rounds > 0 && arguments.games > 0 && arguments.seconds > 0.0,
        "--rounds, --games and --seconds must be above 0"
    );
    Cores::find()?.use_first()?;
    let game = arguments.game.clone();
    let json = arguments.json;
    let report = registry::visit(&game, arguments)??;
    report::print(&report, json, text)
}

impl registry::Visitor for Arguments {
    type Output = anyhow::Result<Report>;

    fn visit<G: Game>(self) -> anyhow::Result<Report> {
        let (file, network) = self.network::<G>()?;
        let mut measured = vec![self.measure::<G>(&file, self.provider)?];
        if measured[0].provider != Provider::Cpu.name() {
            measured.push(self.measure::<G>(&file, config::Provider::Cpu)?);
        }
        let default = measured.last().map_or(1.0, |cpu| cpu.plain_per_cpu_second);
        for one in &mut measured {
            one.ratio_to_default_provider = one.playouts_per_cpu_second / default;
        }
        Ok(Report {
            bench: "playouts",
            game: G::NAME,
            network,
            visits_per_move: self.visits,
            games_at_once: self.games,
            leaves: self.leaves,
            cache_mib: self.cache,
            rounds: self.rounds,
            measured,
        })
    }
}

impl Arguments {
    /// The network that is measured, and what it is called.
    fn network<G: Game>(&self) -> anyhow::Result<(ModelFile, String)> {
        if let Some(name) = &self.model {
            let file = ModelFile::find(name)?;
            file.encoding::<G>()?;
            ensure!(
                file.layout.options == 0,
                "{name} takes rows with options {}; only those with options 0 are measured",
                file.layout.options
            );
            let called = file.version.clone();
            return Ok((file, called));
        }
        let layout = G::layout(G::encoding(0)?);
        let metadata = Metadata {
            layout: layout.clone(),
            step: 0,
        };
        let file = ModelFile {
            bytes: onnx::random::model(&metadata, self.blocks, self.filters, 1)?,
            version: "random".into(),
            step: 0,
            layout,
            search: None,
        };
        Ok((file, format!("random {}x{}", self.blocks, self.filters)))
    }

    fn measure<G: Game>(&self, file: &ModelFile, asked_for: config::Provider) -> anyhow::Result<Measured> {
        let largest = self.games * self.leaves as usize;
        let network = Opener::new(Path::new(""), asked_for, 1, largest)?.open(file)?;
        let name = network::Network::description(&network).provider.clone();
        let source = EvaluationSource::Network {
            network: Arc::new(network),
            cache: Cache::new(self.cache << 20).map(Arc::new),
        };
        let mut player = Player::<G>::new(self, source)?;
        let mut plain = Plain::load(
            &self.game,
            file,
            provider::read(&name).map_err(anyhow::Error::msg)?,
        )?;
        let time = Duration::from_secs_f64(self.seconds);
        let rounds = rounds(self.rounds, || {
            let before = player.totals();
            let moves = player.moves;
            let playing = Stopwatch::start()?;
            player.play_for(time)?;
            let (seconds, cpu) = playing.stop()?;
            let evaluating = Stopwatch::start()?;
            let evaluated = plain.run_for(time)? as f64;
            let (plain_seconds, plain_cpu) = evaluating.stop()?;
            Ok(Round {
                done: player.totals().since(before),
                moves: player.moves - moves,
                seconds,
                cpu,
                plain: evaluated / plain_seconds,
                plain_cpu: evaluated / plain_cpu,
            })
        })?;
        let visits = |round: &Round| round.done.search.visits as f64;
        let playouts = report::median_of(&rounds, |round| visits(round) / round.seconds);
        let playouts_cpu = report::median_of(&rounds, |round| visits(round) / round.cpu);
        let asking_cpu = report::median_of(&rounds, |round| {
            (visits(round) - round.done.search.gray_visits as f64) / round.cpu
        });
        let plain = report::median_of(&rounds, |round| round.plain);
        let plain_cpu = report::median_of(&rounds, |round| round.plain_cpu);
        let totals = rounds
            .iter()
            .fold(Totals::default(), |sum, round| sum.plus(round.done));
        let Totals { search, answers } = totals;
        Ok(Measured {
            provider: name,
            playouts_per_second: playouts,
            playouts_per_cpu_second: playouts_cpu,
            plain_per_second: plain,
            plain_per_cpu_second: plain_cpu,
            ratio: playouts_cpu / plain_cpu,
            ratio_without_gray: asking_cpu / plain_cpu,
            ratio_to_default_provider: 0.0,
            playouts: search.visits,
            asked: search.evaluations,
            root_evaluations: search.root_evaluations,
            fresh: answers.fresh,
            cache_hits: answers.cached,
            duplicates: answers.duplicates,
            gray: search.gray_visits,
            terminal: search.terminal_visits,
            moves: rounds.iter().map(|round| round.moves).sum(),
            batch: answers.fresh as f64 / answers.batches.max(1) as f64,
        })
    }
}

/// Counts and times of one round.
struct Round {
    done: Totals,
    moves: u64,
    /// Wall-clock and processor time of the player, in seconds.
    seconds: f64,
    cpu: f64,
    /// Plain evaluations per second and per processor second.
    plain: f64,
    plain_cpu: f64,
}

fn text(report: &Report) -> String {
    let mut lines = format!(
        "{}, network {}, one core for everything, {} visits a move, {} games at once, {} leaves each, median of {}\n\n",
        report.game,
        report.network,
        report.visits_per_move,
        report.games_at_once,
        report.leaves,
        report.rounds
    );
    lines += "provider        playouts/s  per CPU s   batch 1/s  per CPU s   ratio  without gray  to default provider\n";
    for one in &report.measured {
        lines += &format!(
            "{:14} {:>11.0} {:>10.0} {:>11.0} {:>10.0} {:>7.2} {:>13.2} {:>20.2}\n",
            one.provider,
            one.playouts_per_second,
            one.playouts_per_cpu_second,
            one.plain_per_second,
            one.plain_per_cpu_second,
            one.ratio,
            one.ratio_without_gray,
            one.ratio_to_default_provider
        );
        let share = |count: u64| 100.0 * count as f64 / one.playouts.max(1) as f64;
        lines += &format!(
            "               of the playouts: {:.1} % fresh, {:.1} % cached, {:.1} % asked already, {:.1} % gray, {:.1} % terminal; batches of {:.1}\n",
            share(one.fresh),
            share(one.cache_hits),
            share(one.duplicates),
            share(one.gray),
            share(one.terminal),
            one.batch
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every playout and every decision node's evaluation was answered in one of the ways that are told apart.
    #[test]
    fn every_playout_is_accounted_for() {
        let arguments = Arguments {
            game: "connect-four".into(),
            model: None,
            blocks: 1,
            filters: 8,
            visits: 30,
            games: 3,
            leaves: 2,
            cache: 1,
            provider: config::Provider::Cpu,
            seconds: 0.05,
            rounds: 1,
            json: false,
        };
        let report = registry::visit("connect-four", arguments).unwrap().unwrap();
        assert_eq!(report.measured.len(), 1);
        let one = &report.measured[0];
        assert_eq!(one.provider, "cpu");
        assert!(one.playouts > 0 && one.ratio > 0.0 && one.batch <= 6.0);
        // Leaves that were out when a round began or ended belong to neither wholly.
        let slack = 2 * 6;
        let answered = one.fresh + one.cache_hits + one.duplicates;
        assert!(answered.abs_diff(one.asked) <= slack, "{answered} {}", one.asked);
        let visits = one.asked + one.gray + one.terminal - one.root_evaluations;
        assert!(
            visits.abs_diff(one.playouts) <= slack,
            "{visits} {}",
            one.playouts
        );
    }
}
