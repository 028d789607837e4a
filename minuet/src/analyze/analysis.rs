//! The engine, the network and the metrics that all clients share: [`Analysis`].

use std::sync::Arc;

use arena::{Player, analysis::Engine};
use parking_lot::RwLock;
use proto::v1::AnalysisModel;

service::metrics_table! {
    /// Handles of the metrics.
    pub struct Metrics {
        /// Open streams of queries.
        streams: "minuet_analysis_streams", gauge;
        /// Bytes of answers that wait to be searched or read by their clients.
        waiting: "minuet_analysis_waiting_bytes", gauge;
        /// Positions that were answered.
        answered: "minuet_analysis_positions_total", counter;
        /// Positions that the network evaluated for answers.
        evaluations: "minuet_analysis_evaluations_total", counter;
        /// Requests and positions that were answered with an error.
        refused: "minuet_analysis_refused_total", counter;
        /// Seconds from a query to the answer about a position.
        seconds: "minuet_analysis_seconds", seconds;
    }
}

/// The engine and the network of all clients.
#[derive(Debug)]
pub struct Analysis {
    /// Player whose network evaluates new queries.
    pub player: RwLock<Arc<Player>>,
    pub(super) engine: Engine,
    pub(super) metrics: Metrics,
}

impl Analysis {
    /// Starts an engine with `threads` threads.
    pub fn start(player: Arc<Player>, threads: usize) -> Arc<Self> {
        Arc::new(Self {
            player: RwLock::new(player),
            engine: Engine::start(threads),
            metrics: Metrics::registered(),
        })
    }

    /// Describes the network that evaluates new queries.
    pub fn model(&self) -> AnalysisModel {
        let player = Arc::clone(&self.player.read());
        let model = AnalysisModel {
            name: player.written().to_owned(),
            game: player.game().title(),
            ..AnalysisModel::default()
        };
        match player.network().map(|network| network.description()) {
            None => model,
            Some(network) => AnalysisModel {
                version: network.version.clone(),
                step: network.step,
                provider: network.provider.clone(),
                ..model
            },
        }
    }
}
