//! The threads of a match, and its end: [`play`].

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use anyhow::anyhow;
use games::{erased::Variant, outside::Failures};
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    budget::Budget, folder::MatchFolder, plan::Plan, record::GameRecord, standing::Tested, table::Table,
};
use crate::{
    players::Player,
    statistics::{Sprt, Verdict},
};

/// Settings that do not affect the games: threads and the end of the match.
#[derive(Clone, Copy, Debug)]
pub struct Conduct<'a> {
    /// Number of threads.
    pub threads: usize,
    /// Number of games at once on each thread.
    pub games: usize,
    /// Test between the first two players that ends the match as soon as it decides.
    pub sprt: Option<&'a Sprt>,
    /// Processor time that the process may take; `None`: all that there is.
    pub budget: Option<&'a Budget>,
    /// Ends the match when it is cancelled. Games in progress are dropped and played again when the match continues.
    pub stop: &'a CancellationToken,
}

/// Reason for the end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All games are played.
    Complete,
    /// The test has decided.
    Decided,
    /// The flag to stop was set.
    Stopped,
}

/// Data that the threads share.
struct Shared<'a> {
    plan: &'a Plan,
    conduct: Conduct<'a>,
    next: AtomicU64,
    /// Set when a thread has failed or the test has decided.
    ended: AtomicBool,
    decided: AtomicBool,
    kept: Mutex<Kept<'a>>,
    players: &'a [Player],
    variant: &'a dyn Variant,
    failures: Failures,
}

struct Kept<'a> {
    folder: &'a mut MatchFolder,
    told: &'a mut (dyn FnMut(&MatchFolder) + Send),
    tested: Option<Tested<'a>>,
}

/// Plays the missing games of a match. Games begin in the order of the plan for any number of threads. Each game depends only on
/// the plan, and on the rounding of the network's outputs. `told` receives the folder after each game.
///
/// # Errors
/// The match cannot continue. The finished games are kept.
pub fn play(
    plan: &Plan,
    players: &[Player],
    folder: &mut MatchFolder,
    conduct: Conduct<'_>,
    told: &mut (dyn FnMut(&MatchFolder) + Send),
) -> anyhow::Result<Ended> {
    let variant = plan.variant()?;
    let mut tested = conduct.sprt.map(Tested::new);
    if is_decided(&mut tested, plan, folder) {
        return Ok(Ended::Decided);
    }
    let shared = Shared {
        plan,
        conduct,
        next: AtomicU64::new(0),
        ended: AtomicBool::new(false),
        decided: AtomicBool::new(false),
        kept: Mutex::new(Kept { folder, told, tested }),
        players,
        variant: &*variant,
        failures: Failures::default(),
    };
    let results: Vec<anyhow::Result<()>> = thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = (0..conduct.threads.max(1))
            .map(|number| scope.spawn(move || shared.work(number)))
            .collect();
        let panicked = |_| Err(anyhow!("the match cannot continue: a thread has panicked"));
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked));
        ended.collect()
    });
    let kept = shared.kept.into_inner();
    kept.folder.sync()?;
    results.into_iter().collect::<anyhow::Result<()>>()?;
    let complete = (0..plan.games()).all(|game| kept.folder.records().contains_key(&game));
    Ok(if shared.decided.into_inner() {
        Ended::Decided
    } else if complete {
        Ended::Complete
    } else {
        Ended::Stopped
    })
}

impl Shared<'_> {
    fn work(&self, thread: usize) -> anyhow::Result<()> {
        let done = self.play(thread);
        if done.is_err() {
            self.ended.store(true, Ordering::Relaxed);
        }
        done
    }

    fn play(&self, thread: usize) -> anyhow::Result<()> {
        let mut table = Table::new(
            self.plan,
            self.variant,
            self.players,
            thread,
            self.conduct.games,
            &self.failures,
        )?;
        loop {
            while table.has_room() && !self.is_over() {
                let Some(game) = self.next_game() else { break };
                table.begin(self.plan.slot(game))?;
            }
            if table.is_empty() || self.is_over() {
                return Ok(());
            }
            let over = table.advance()?;
            if !over.is_empty() {
                over.into_iter().try_for_each(|record| self.keep(record))?;
                // Begin new games first, so that they join the next batch.
                continue;
            }
            table.evaluate()?;
            if let Some(budget) = self.conduct.budget {
                budget.rest(self.conduct.stop);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.conduct.stop.is_cancelled() || self.ended.load(Ordering::Relaxed)
    }

    /// Number of the next game that is not played yet.
    fn next_game(&self) -> Option<u64> {
        loop {
            let game = self.next.fetch_add(1, Ordering::Relaxed);
            if game >= self.plan.games() {
                return None;
            }
            if !self.kept.lock().folder.records().contains_key(&game) {
                return Some(game);
            }
        }
    }

    fn keep(&self, record: GameRecord) -> anyhow::Result<()> {
        let mut kept = self.kept.lock();
        let Kept { folder, told, tested } = &mut *kept;
        folder.add(record)?;
        told(folder);
        if is_decided(tested, self.plan, folder) {
            self.decided.store(true, Ordering::Relaxed);
            self.ended.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn is_decided(tested: &mut Option<Tested<'_>>, plan: &Plan, folder: &MatchFolder) -> bool {
    tested
        .as_mut()
        .is_some_and(|tested| tested.update(plan, folder.records()) != Verdict::Undecided)
}
