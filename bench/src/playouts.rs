//! `minuet bench playouts`: a whole player with a real network on one core, against the network alone.
//!
//! One thread, pinned to one core with everything it starts, plays games against itself: search, cache and ONNX Runtime
//! share that core. In turns with it, the same core evaluates positions one at a time (batch 1) with ONNX Runtime and
//! nothing else, by the same provider and by the plain CPU provider. A *playout* is one traversal of the search that was backed
//! up; how each was answered is told apart: by a fresh evaluation, from the cache, by an evaluation that an
//! earlier move left in the tree (gray), or by the rules (terminal).

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use games::{Game, catalogue};
use network::batched::{BatchedEvaluator, EvaluationCounts, EvaluationSource};
use network::{
    ModelFile, ModelName, NetworkError,
    batch::Batch,
    buckets::Buckets,
    cache::Cache,
    client::local::Opener,
    loader::{File, Loader},
    model::Model,
    provider::Provider,
};
use onnx::Metadata;
use search::{ApplyError, Counters, GameKey, Search, Settings};
use serde::Serialize;

use super::{
    inference::{machine::Cores, positions::Positions},
    report,
};
use crate::provider;

/// The games are measured at different moves: the last one begins after so many that were played quickly…
const QUICK_MOVES: usize = 80;
/// … with so many visits.
const QUICK_VISITS: u32 = 16;

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
    let report = catalogue::visit(&game, arguments)??;
    report::print(&report, json, text)
}

impl catalogue::Visitor for Arguments {
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
        let mut rates = [(); 5].map(|()| Vec::new());
        let (mut totals, mut moves) = (Totals::default(), 0);
        for round in 0..=self.rounds {
            let (playing, before) = (Stopwatch::start()?, player.totals());
            player.play_for(time)?;
            let (seconds, cpu) = playing.stop()?;
            let done = player.totals().since(before);
            let evaluating = Stopwatch::start()?;
            let evaluated = plain.run_for(time)? as f64;
            let (plain_seconds, plain_cpu) = evaluating.stop()?;
            // The first round warms everything.
            if round == 0 {
                moves = player.moves;
                continue;
            }
            let asking = (done.search.visits - done.search.gray_visits) as f64;
            let new = [
                done.search.visits as f64 / seconds,
                done.search.visits as f64 / cpu,
                evaluated / plain_seconds,
                evaluated / plain_cpu,
                asking / cpu,
            ];
            rates
                .iter_mut()
                .zip(new)
                .for_each(|(rates, rate)| rates.push(rate));
            totals = totals.plus(done);
        }
        let [playouts, playouts_cpu, plain, plain_cpu, asking_cpu] =
            rates.map(|rates| report::median(&rates));
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
            moves: player.moves - moves,
            batch: answers.fresh as f64 / answers.batches.max(1) as f64,
        })
    }
}

/// Wall clock and processor time of this process.
struct Stopwatch {
    began: Instant,
    cpu_seconds: f64,
}

impl Stopwatch {
    fn start() -> anyhow::Result<Self> {
        Ok(Self {
            cpu_seconds: cpu_seconds()?,
            began: Instant::now(),
        })
    }

    fn stop(self) -> anyhow::Result<(f64, f64)> {
        let seconds = self.began.elapsed().as_secs_f64();
        Ok((seconds, (cpu_seconds()? - self.cpu_seconds).max(1e-3)))
    }
}

fn cpu_seconds() -> anyhow::Result<f64> {
    service::process::usage(std::process::id())
        .map(|usage| usage.cpu_seconds)
        .context("the system does not tell this process's processor time")
}

/// What was done up to some moment.
#[derive(Clone, Copy, Default)]
struct Totals {
    search: Counters,
    answers: EvaluationCounts,
}

impl Totals {
    fn combine(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            search: Counters {
                visits: with(self.search.visits, other.search.visits),
                evaluations: with(self.search.evaluations, other.search.evaluations),
                root_evaluations: with(self.search.root_evaluations, other.search.root_evaluations),
                gray_visits: with(self.search.gray_visits, other.search.gray_visits),
                terminal_visits: with(self.search.terminal_visits, other.search.terminal_visits),
                ..Counters::default()
            },
            answers: EvaluationCounts {
                fresh: with(self.answers.fresh, other.answers.fresh),
                cached: with(self.answers.cached, other.answers.cached),
                duplicates: with(self.answers.duplicates, other.answers.duplicates),
                batches: with(self.answers.batches, other.answers.batches),
            },
        }
    }

    fn plus(self, other: Self) -> Self {
        self.combine(other, |one, other| one + other)
    }

    fn since(self, before: Self) -> Self {
        self.combine(before, |now, before| now - before)
    }
}

/// A game, and how many of its moves are still to be played quickly.
struct Slot<G: Game> {
    search: Search<G>,
    quick: u32,
}

/// Many games on one thread.
struct Player<G: Game> {
    settings: Settings,
    slots: Vec<Slot<G>>,
    evaluator: BatchedEvaluator<G>,
    /// Counters of games that are over.
    past: Totals,
    games: u64,
    moves: u64,
}

/// A game of the measurement that goes wrong.
#[derive(Debug, thiserror::Error)]
enum PlayError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Answer(#[from] ApplyError),
}

impl<G: Game> Player<G> {
    fn new(arguments: &Arguments, source: EvaluationSource) -> anyhow::Result<Self> {
        let settings = Settings {
            traversals: arguments.visits,
            leaves: arguments.leaves,
            // A position seen in another symmetry is another question to the cache.
            random_symmetry: false,
            ..Settings::default()
        };
        settings.check()?;
        let mut player = Self {
            settings,
            slots: Vec::new(),
            evaluator: BatchedEvaluator::new(source, G::encoding(0)?),
            past: Totals::default(),
            games: 0,
            moves: 0,
        };
        for number in 0..arguments.games {
            let quick = (number * QUICK_MOVES / arguments.games) as u32;
            let search = player.search(G::start(&G::Rules::default(), None)?, quick);
            player.slots.push(Slot { search, quick });
        }
        while player.slots.iter().any(|slot| slot.quick > 0) {
            player.step(|slot| slot.quick > 0)?;
        }
        Ok(player)
    }

    /// A search, for a game `quick` of whose next moves are played quickly.
    fn search(&mut self, state: G, quick: u32) -> Search<G> {
        self.games += 1;
        let key = GameKey {
            run_seed: 1,
            game: self.games,
        };
        let mut settings = self.settings.clone();
        if quick > 0 {
            settings.traversals = QUICK_VISITS;
        }
        Search::new(state, settings, key)
    }

    fn play_for(&mut self, time: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < time {
            self.step(|_| true)?;
        }
        Ok(())
    }

    /// The games that `which` names go on until they wait for the network, which then answers them.
    fn step(&mut self, which: impl Fn(&Slot<G>) -> bool) -> anyhow::Result<()> {
        for number in 0..self.slots.len() {
            if which(&self.slots[number]) {
                self.advance(number)?;
            }
        }
        let slots = &mut self.slots;
        self.evaluator.flush(|number, leaf, evaluation| {
            slots[number]
                .search
                .apply(leaf, evaluation)
                .map_err(PlayError::from)
        })?;
        Ok(())
    }

    fn advance(&mut self, number: usize) -> anyhow::Result<()> {
        loop {
            let Self { slots, evaluator, .. } = self;
            let Slot { search, quick } = &mut slots[number];
            if search.is_decided() {
                match search.choose(1.0) {
                    Some(action) => {
                        search.advance(action)?;
                        self.moves += 1;
                        if *quick == 1 {
                            let state = search.state().clone();
                            self.replace(number, state, 0);
                        } else {
                            *quick = quick.saturating_sub(1);
                        }
                    }
                    None => {
                        let (state, quick) = (G::start(&G::Rules::default(), None)?, *quick);
                        self.replace(number, state, quick);
                    }
                }
                continue;
            }
            search.gather(|leaf| evaluator.add(number, &leaf));
            evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
            if search.is_waiting() {
                return Ok(());
            }
        }
    }

    /// Another search takes the place of one that is over.
    fn replace(&mut self, number: usize, state: G, quick: u32) {
        let counters = self.slots[number].search.counters();
        let over = Totals {
            search: counters,
            ..Totals::default()
        };
        self.past = over.plus(self.past);
        let search = self.search(state, quick);
        self.slots[number] = Slot { search, quick };
    }

    fn totals(&self) -> Totals {
        let answers = Totals {
            answers: self.evaluator.counts(),
            ..Totals::default()
        };
        let now = self.slots.iter().map(|slot| Totals {
            search: slot.search.counters(),
            ..Totals::default()
        });
        now.fold(self.past.plus(answers), Totals::plus)
    }
}

/// The network alone, one position at a time.
struct Plain {
    model: Model,
    rows: Vec<Vec<i32>>,
    next: usize,
}

impl Plain {
    fn load(game: &str, file: &ModelFile, provider: config::Provider) -> anyhow::Result<Self> {
        let environment = network::runtime::load(Path::new(""))?;
        let loader = Loader::new(
            environment,
            1,
            Buckets::new(&[1], 1),
            Provider::asked_for(provider),
        )?;
        let model = loader.load(File {
            bytes: &file.bytes,
            version: &file.version,
            step: file.step,
            layout: &file.layout,
        })?;
        let positions = Positions::play(game)?;
        let rows = (0..1024).map(|number| {
            let row = positions.request(number, 1).indices;
            row.into_iter().map(|number| number as i32).collect()
        });
        Ok(Self {
            model,
            rows: rows.collect(),
            next: 0,
        })
    }

    /// Positions evaluated in this time.
    fn run_for(&mut self, time: Duration) -> anyhow::Result<u64> {
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            let row = self.rows[self.next % self.rows.len()].clone();
            self.model.run(Batch::new(row, 1))?;
            self.next += 1;
            done += 1;
        }
        Ok(done)
    }
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
        let report = catalogue::visit("connect-four", arguments).unwrap().unwrap();
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
