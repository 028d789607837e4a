//! `minuet bench playouts`: a player with search and network on one core, compared with the network alone.
//!
//! One thread plays games against itself; search, cache and ONNX Runtime share the core to which it is pinned. In turns with
//! it, the same core evaluates positions one at a time (batch 1) with ONNX Runtime alone, by the same provider and by the
//! default CPU provider. A *playout* is one traversal of the search that was backed up. Playouts are counted by their
//! source: a fresh evaluation, the cache, an evaluation that an earlier move left in the tree (gray), or the rules (terminal).
//!
//! | module | contents |
//! |---|---|
//! | [`player`] | many games on one thread |
//! | [`plain`] | the network alone, one position at a time |

mod arguments;
mod plain;
mod player;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::ensure;
use games::{Game, registry};
use network::{
    ModelFile, batched::EvaluationSource, cache::Cache, client::local::NetworkLoader, provider::Provider,
};
use onnx::Metadata;
use serde::Serialize;

pub use self::arguments::Arguments;
use self::{
    plain::Plain,
    player::{Player, Totals},
};
use crate::harness::{
    measure::{Cores, Stopwatch},
    report, rounds,
};

/// Result of the benchmark.
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

/// Figures of one provider, medians over the rounds. Other work on the machine disturbs figures per CPU second less.
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
    /// `ratio` without gray visits: only playouts that requested an evaluation or ended the game.
    ratio_without_gray: f64,
    /// Playouts per CPU second, divided by plain evaluations per CPU second of ONNX Runtime's default CPU provider.
    ratio_to_default_provider: f64,
    /// Sums over all rounds. `root_evaluations` counts the requested evaluations that were not playouts.
    playouts: u64,
    asked: u64,
    root_evaluations: u64,
    fresh: u64,
    cache_hits: u64,
    duplicates: u64,
    gray: u64,
    terminal: u64,
    moves: u64,
    /// Mean number of fresh evaluations per batch.
    batch: f64,
}

/// Runs the benchmark.
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
            measured.push(self.measure::<G>(&file, config::ProviderChoice::Cpu)?);
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
    /// Returns the measured network and its name.
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

    fn measure<G: Game>(
        &self,
        file: &ModelFile,
        asked_for: config::ProviderChoice,
    ) -> anyhow::Result<Measured> {
        let largest = self.games * self.leaves as usize;
        let network = NetworkLoader::new(Path::new(""), asked_for, 1, largest)?.open(file)?;
        let name = network::Network::description(&network).provider.clone();
        let source = EvaluationSource::Network {
            network: Arc::new(network),
            cache: Cache::new(self.cache << 20).map(Arc::new),
        };
        let mut player = Player::<G>::new(self, source)?;
        let mut plain = Plain::load(&self.game, file, name.parse()?)?;
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

    /// The sources of playouts and of decision nodes' evaluations sum to their totals.
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
            provider: config::ProviderChoice::Cpu,
            seconds: 0.05,
            rounds: 1,
            json: false,
        };
        let report = registry::visit("connect-four", arguments).unwrap().unwrap();
        assert_eq!(report.measured.len(), 1);
        let one = &report.measured[0];
        assert_eq!(one.provider, "cpu");
        assert!(one.playouts > 0 && one.ratio > 0.0 && one.batch <= 6.0);
        // Leaves in flight at the beginning or end of a round are counted in part.
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
