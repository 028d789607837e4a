//! `minuet bench playouts`: a player with search and network on one core, compared with the network alone.
//!
//! One thread plays games against itself; search, cache and ONNX Runtime share the core to which it is pinned. In turns with
//! it, the same core evaluates positions one at a time (batch 1) with the network alone, by the same provider: once with Minuet's
//! loader, once with ONNX Runtime's Python package. A *playout* is one traversal of the search that was backed up. Playouts are
//! counted by their source: a fresh evaluation, the cache, an evaluation that an earlier move left in the tree (gray), or the
//! rules (terminal).

mod player;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use games::{Notation, registry};
use network::{ModelFile, ModelName, batched::EvaluationSource, cache::Cache, loader::Loader};
use serde::Serialize;

use self::player::{Player, Totals};
use crate::harness::{
    compared::{Baselines, Compared},
    measure::{self, Cores},
    model, onnxruntime,
    positions::Positions,
    report,
};

/// Arguments of `minuet bench playouts`.
#[derive(clap::Args)]
#[command(
    after_help = "Example: minuet bench playouts --game chess --json --python \"$(python3 scripts/python_env.py onnxruntime)\""
)]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = "chess")]
    game: String,
    /// Trained network: a run, a checkpoint's folder or an .onnx file. Default: a network of random weights.
    #[arg(long, conflicts_with_all = ["blocks", "filters"])]
    model: Option<ModelName>,
    /// Residual blocks of the random network.
    #[arg(long, default_value_t = 4)]
    blocks: usize,
    /// Filters of the random network.
    #[arg(long, default_value_t = 64)]
    filters: usize,
    /// Visits per move.
    #[arg(long, default_value_t = 800)]
    visits: u32,
    /// Number of games in progress; their leaves share batches.
    #[arg(long, default_value_t = 64)]
    games: usize,
    /// Leaves per search and batch; 1 is serial UCT.
    #[arg(long, default_value_t = 1)]
    leaves: u32,
    /// Memory of the evaluation cache, in MiB.
    #[arg(long, default_value_t = 256)]
    cache: usize,
    /// Execution provider; auto uses the fastest one whose results agree with f32, as `minuet up` does.
    #[arg(long, default_value = "auto")]
    provider: config::Provider,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Python interpreter with ONNX Runtime, for the comparison.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

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
    /// Sums over all rounds.
    #[serde(flatten)]
    totals: Totals,
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
    report::print(&report, json)
}

impl registry::Visitor for Arguments {
    type Output = anyhow::Result<Report>;

    fn visit<G: Notation>(self) -> anyhow::Result<Report> {
        let (file, network) = model::find(G::name(), None, self.model.as_ref(), (self.blocks, self.filters))?;
        let options = file.layout.options;
        ensure!(
            options == G::OPTIONS,
            "{network} takes rows with options {options}; only those with options {} are measured",
            G::OPTIONS
        );
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
            game: G::name(),
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
    fn measure<G: Notation>(&self, file: &ModelFile, provider: config::Provider) -> anyhow::Result<Measured> {
        let largest = self.games * self.leaves as usize;
        let network = Loader::new(1, largest, provider)?.open(file)?;
        let name = network::Network::description(&network).provider.clone();
        let source = EvaluationSource::Network {
            network: Arc::new(network),
            cache: Cache::new(self.cache << 20).map(Arc::new),
        };
        let mut player = Player::<G>::new(self, source)?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let positions = Positions::play(&self.game)?;
        let model = (file, folder.path());
        let python = self.python.as_deref();
        let mut baselines = Baselines::start((&positions, 1), model, (&name, &name), python)?;
        let time = Duration::from_secs_f64(self.seconds);
        player.play_for(time)?;
        baselines.warm_up(self.seconds)?;
        let began = player.totals();
        let (mut playing, mut requesting) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let before = player.totals();
            let mut gray = 0;
            let round = measure::measure(std::process::id(), || {
                player.play_for(time)?;
                let done = player.totals().since(before);
                gray = done.gray;
                Ok(done.playouts)
            })?;
            playing.push(round);
            requesting.push(measure::Measured {
                positions: round.positions - gray,
                ..round
            });
            baselines.measure(self.seconds)?;
        }
        let totals = player.totals().since(began);
        let (single, onnxruntime) = baselines.compare(&playing)?;
        let per_cpu_second = measure::Measured::per_cpu_second;
        Ok(Measured {
            provider: name,
            playouts_per_second: report::median_of(&playing, measure::Measured::per_second),
            playouts_per_cpu_second: report::median_of(&playing, per_cpu_second),
            single,
            ratio_without_gray: report::median_ratio(&requesting, &baselines.direct.rounds, per_cpu_second),
            onnxruntime,
            ratio_to_default_provider: 0.0,
            totals,
            batch: totals.fresh as f64 / totals.batches.max(1) as f64,
        })
    }
}
