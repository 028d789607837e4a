//! `minuet bench playouts`: a player with search and network on one core, compared with the network alone.
//!
//! One thread plays games against itself; search, cache and ONNX Runtime share the core to which it is pinned. In turns with
//! it, the same core evaluates positions one at a time (batch 1) with the network alone, by the same provider: once with Minuet's
//! loader, once with ONNX Runtime's Python package. A *playout* is one traversal of the search that was backed up. Playouts are
//! counted by their source: a fresh evaluation, the cache, an evaluation that an earlier move left in the tree (gray), or the
//! rules (terminal).

mod arguments;
mod player;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use games::{Game, registry};
use network::{ModelFile, batched::EvaluationSource, cache::Cache, client::local::NetworkLoader};
use serde::Serialize;

pub use self::arguments::Arguments;
use self::player::{Player, Totals};
use crate::harness::{
    compared::Compared,
    direct,
    measure::{self, Cores},
    model,
    onnxruntime::{self, OnnxRuntime},
    positions::Positions,
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
    /// Comparison with single evaluations by the same provider and Minuet's loader.
    single: Compared,
    /// Processor-time ratio to `single` without gray visits: only playouts that requested an evaluation or ended the game.
    ratio_without_gray: f64,
    /// Comparison with single evaluations by the same provider and ONNX Runtime's Python package.
    onnxruntime: onnxruntime::Figures,
    /// Playouts per CPU second, divided by single evaluations per CPU second of ONNX Runtime's default CPU provider.
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
        if measured[0].provider != config::Provider::Cpu.name() {
            measured.push(self.measure::<G>(&file, config::Provider::Cpu)?);
        }
        let default = measured.last().map_or(1.0, |cpu| cpu.single.per_cpu_second);
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
        let found = model::find(G::NAME, 0, self.model.as_ref(), (self.blocks, self.filters))?;
        let options = found.0.layout.options;
        ensure!(
            options == 0,
            "{} takes rows with options {options}; only those with options 0 are measured",
            found.1
        );
        Ok(found)
    }

    fn measure<G: Game>(&self, file: &ModelFile, asked_for: config::Provider) -> anyhow::Result<Measured> {
        let largest = self.games * self.leaves as usize;
        let network = NetworkLoader::new(Path::new(""), asked_for, 1, largest)?.open(file)?;
        let name = network::Network::description(&network).provider.clone();
        let source = EvaluationSource::Network {
            network: Arc::new(network),
            cache: Cache::new(self.cache << 20).map(Arc::new),
        };
        let mut player = Player::<G>::new(self, source)?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let path = folder.path().join("direct.onnx");
        std::fs::write(&path, &file.bytes)?;
        let mut direct = direct::start(&self.game, &name, 1, &path)?;
        let positions = Positions::play(&self.game)?;
        let batching = (1, direct.first_line.parse()?);
        let mut onnxruntime = OnnxRuntime::start(self.python.as_deref(), &path, &positions, batching, &name)?;
        let time = Duration::from_secs_f64(self.seconds);
        let rounds = rounds(self.rounds, || {
            let before = player.totals();
            let moves = player.moves;
            let mut done = Totals::default();
            let playing = measure::measure(std::process::id(), || {
                player.play_for(time)?;
                done = player.totals().since(before);
                Ok(done.search.visits)
            })?;
            Ok(Round {
                done,
                moves: player.moves - moves,
                playing,
                single: direct.measure(self.seconds)?,
                python: onnxruntime.measure(self.seconds)?,
            })
        })?;
        let playing: Vec<_> = rounds.iter().map(|round| round.playing).collect();
        let single: Vec<_> = rounds.iter().map(|round| round.single).collect();
        let python: Vec<_> = rounds.iter().filter_map(|round| round.python).collect();
        let asking: Vec<_> = rounds
            .iter()
            .map(|round| measure::Measured {
                positions: round.done.search.visits - round.done.search.gray_visits,
                ..round.playing
            })
            .collect();
        let totals = rounds
            .iter()
            .fold(Totals::default(), |sum, round| sum.plus(round.done));
        let Totals { search, answers } = totals;
        Ok(Measured {
            provider: name,
            playouts_per_second: report::median_of(&playing, measure::Measured::per_second),
            playouts_per_cpu_second: report::median_of(&playing, measure::Measured::per_cpu_second),
            single: Compared::new(&playing, &single).context("there are no rounds")?,
            ratio_without_gray: report::median_ratio(&asking, &single, measure::Measured::per_cpu_second),
            onnxruntime: onnxruntime.figures(&playing, &python),
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
    playing: measure::Measured,
    single: measure::Measured,
    python: Option<measure::Measured>,
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
    lines += "provider        playouts/s  per CPU s   batch 1/s  per CPU s   ratio  without gray  to python  to default provider\n";
    for one in &report.measured {
        let python = one.onnxruntime.compared.as_ref();
        let python = python.map_or("-".into(), |found| format!("{:.2}", found.cpu_ratio));
        lines += &format!(
            "{:14} {:>11.0} {:>10.0} {:>11.0} {:>10.0} {:>7.2} {:>13.2} {python:>10} {:>20.2}\n",
            one.provider,
            one.playouts_per_second,
            one.playouts_per_cpu_second,
            one.single.per_second,
            one.single.per_cpu_second,
            one.single.cpu_ratio,
            one.ratio_without_gray,
            one.ratio_to_default_provider
        );
        if let Some(reason) = &one.onnxruntime.missing {
            lines += &format!("  not compared with ONNX Runtime's Python package: {reason}\n");
        }
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
