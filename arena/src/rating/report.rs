//! Reports finished matches: a log line, and scalars for TensorBoard.

use std::{
    io,
    path::{Path, PathBuf},
};

use service::figures::EventFile;

use super::line::Line;

/// Folder of TensorBoard's files in the rating folder.
const EVENTS: &str = "tensorboard";

/// Reports finished matches to the log and to TensorBoard.
#[derive(Debug)]
pub struct Reporter {
    folder: PathBuf,
    /// Created with the first finished match for which the disk has room.
    events: Option<EventFile>,
}

impl Reporter {
    /// Returns a reporter that writes TensorBoard's files below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.join(EVENTS),
            events: None,
        }
    }

    /// Reports a finished match. If the disk is full, only the scalars are missing; the rating goes on.
    pub fn finished(&mut self, line: &Line) {
        tracing::info!(
            candidate = %line.candidate,
            opponent = %line.opponent,
            outcome = ?line.outcome,
            wins = line.wins,
            draws = line.draws,
            losses = line.losses,
            log_likelihood_ratio = line.log_likelihood_ratio,
            elo = line.elo,
            best_elo = line.best_elo,
            "rated a checkpoint"
        );
        let mut scalars = vec![("rating/games", line.games as f64)];
        if let (Some(elo), Some([low, high])) = (line.elo, line.elo_interval) {
            scalars.extend([
                ("elo/latest", elo),
                ("elo/latest_low", low),
                ("elo/latest_high", high),
            ]);
        }
        if let (Some(elo), Some([low, high])) = (line.best_elo, line.best_elo_interval) {
            scalars.extend([("elo/best", elo), ("elo/best_low", low), ("elo/best_high", high)]);
        }
        if let Err(error) = self.write(line.step, &scalars) {
            tracing::warn!(%error, "cannot write the scalars for TensorBoard");
        }
    }

    fn write(&mut self, step: u64, scalars: &[(&str, f64)]) -> io::Result<()> {
        let events = match &mut self.events {
            Some(events) => events,
            None => self.events.insert(EventFile::create(&self.folder)?),
        };
        events.scalars(step, scalars)
    }
}
