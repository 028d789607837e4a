//! The threads of a match, and when to stop: [`play`].

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use games::Game;
use parking_lot::Mutex;

use super::{
    MatchError, folder::MatchFolder, plan::Plan, record::GameRecord, standing::Tested, table::Table,
};
use crate::{
    players::Player,
    statistics::{Sprt, Verdict},
};

/// How a match is played; none of it changes what is played.
#[derive(Clone, Copy, Debug)]
pub struct Conduct<'a> {
    /// Threads.
    pub threads: usize,
    /// Games at once on each thread.
    pub games: usize,
    /// Ends the match early; between the first two players only.
    pub sprt: Option<&'a Sprt>,
    /// Set by whoever wants it to stop: games in progress are given up, and played again when the match goes on.
    pub stop: &'a AtomicBool,
}

/// Told after every game.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The folder, this game included.
    pub folder: &'a MatchFolder,
    /// The game.
    pub record: &'a GameRecord,
}

/// Why a match ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All games are over.
    Complete,
    /// The test has decided.
    Decided,
    /// It was stopped.
    Stopped,
}

/// What the threads share.
struct Shared<'a, G: Game> {
    plan: &'a Plan,
    conduct: Conduct<'a>,
    next: AtomicU64,
    /// Set where a thread failed, or the test has decided.
    ended: AtomicBool,
    decided: AtomicBool,
    kept: Mutex<Kept<'a>>,
    players: &'a [Player<G>],
    rules: &'a G::Rules,
}

struct Kept<'a> {
    folder: &'a mut MatchFolder,
    told: &'a mut (dyn FnMut(Progress<'_>) + Send),
    tested: Option<Tested<'a>>,
}

/// Plays what is missing of a match. Games begin in the plan's order, whatever number of threads there is, and each depends on
/// nothing but the plan (and on how exactly a network is computed).
///
/// # Errors
/// [`MatchError`]; the games that are over are kept.
pub fn play<G: Game>(
    plan: &Plan,
    rules: &G::Rules,
    players: &[Player<G>],
    folder: &mut MatchFolder,
    conduct: Conduct<'_>,
    told: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Ended, MatchError> {
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
        rules,
    };
    let results: Vec<Result<(), MatchError>> = thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = (0..conduct.threads.max(1))
            .map(|number| scope.spawn(move || shared.work(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(MatchError::Thread("a thread has panicked".into())))
            })
            .collect()
    });
    let kept = shared.kept.into_inner();
    kept.folder.sync()?;
    results.into_iter().collect::<Result<(), _>>()?;
    let complete = (0..plan.games()).all(|game| kept.folder.records().contains_key(&game));
    Ok(if shared.decided.into_inner() {
        Ended::Decided
    } else if complete {
        Ended::Complete
    } else {
        Ended::Stopped
    })
}

impl<G: Game> Shared<'_, G> {
    fn work(&self, thread: usize) -> Result<(), MatchError> {
        let done = self.play(thread);
        if done.is_err() {
            self.ended.store(true, Ordering::Relaxed);
        }
        done
    }

    fn play(&self, thread: usize) -> Result<(), MatchError> {
        let mut table = Table::new(self.plan, self.rules, self.players, thread, self.conduct.games);
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
                // New games join the batch.
                continue;
            }
            table.evaluate()?;
        }
    }

    fn is_over(&self) -> bool {
        self.conduct.stop.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }

    /// The next game that is missing.
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

    fn keep(&self, record: GameRecord) -> Result<(), MatchError> {
        let mut kept = self.kept.lock();
        let Kept { folder, told, tested } = &mut *kept;
        folder.add(record.clone())?;
        told(Progress {
            folder,
            record: &record,
        });
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
