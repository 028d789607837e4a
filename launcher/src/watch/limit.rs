//! The stage that limits the run, as a sentence with the number that shows it.

use config::{ReplayConfig, RunConfig};
use indicatif::BinaryBytes;

use super::{Summary, disks::LEAST_FREE, summary::Replay};

/// Busy ratio from which a stage limits the others.
const FULL: f64 = 0.85;

/// Time in which the first visits are made, in seconds.
const BEGINNING: f64 = 20.0;

/// Returns a sentence that names the stage that limits the run now.
pub fn sentence(summary: &Summary, config: &RunConfig) -> String {
    let percent = |ratio: f64| format!("{:.0} %", 100.0 * ratio);
    let actor = &summary.actor;
    let inference = &summary.inference;
    let meanwhile = match (actor.paused, actor.spooled_games.unwrap_or_default()) {
        (true, games) => format!("self-play is paused, {games} finished games wait for the store"),
        (false, games) => format!("{games} finished games wait for the store"),
    };
    if let Some(shortage) = shortage(&summary.replay, &config.replay) {
        return format!("{shortage}; {meanwhile}");
    }
    if let Some(full) = summary.disks.iter().find(|disk| disk.is_full(LEAST_FREE)) {
        return format!("the disk limits: {full}");
    }
    if actor.paused {
        return format!("the replay store limits: {meanwhile}");
    }
    if inference.version.is_none() {
        if let Some(reason) = &inference.newest_refused {
            return format!("the inference server refuses the network: {reason}");
        }
        return "waiting for the first network".into();
    }
    if actor.off {
        return without_self_play(summary, config);
    }
    let Some(visits) = actor.visits_per_second else {
        return "waiting for self-play to begin".into();
    };
    if visits == 0.0 {
        return match summary.after_seconds < BEGINNING {
            true => "self-play begins",
            false => "self-play makes no progress: see the logs of actor and inference server",
        }
        .into();
    }
    // Processes elsewhere have other cores.
    let here = summary.processes.iter().filter(|process| process.pid.is_some());
    let here: Vec<(f64, &str)> = here
        .filter_map(|process| Some((process.cores?, process.name.as_str())))
        .collect();
    let cores: f64 = here.iter().map(|(cores, _)| cores).sum();
    let available = service::process::cores() as f64;
    if cores >= 0.95 * available {
        let mut shares = here;
        shares.sort_by(|left, right| right.0.total_cmp(&left.0));
        let shares: Vec<String> = shares
            .iter()
            .take(3)
            .map(|(cores, name)| format!("{name} {}", percent(cores / available)))
            .collect();
        return format!(
            "processor time limits: all {available} cores are busy ({})",
            shares.join(", ")
        );
    }
    match (inference.busy_ratio, actor.busy_ratio) {
        (Some(device), _) if device >= FULL => {
            let filled = inference.batch_fill_ratio.unwrap_or_default();
            format!(
                "inference limits: busy {}, batches {} full",
                percent(device),
                percent(filled)
            )
        }
        (_, Some(workers)) if workers >= FULL => {
            format!(
                "actors limit: busy {} (more cores or --actors help)",
                percent(workers)
            )
        }
        (Some(device), Some(workers)) => {
            format!(
                "waiting times limit (inference busy {}, actors {}): actors and inference wait for each other",
                percent(device),
                percent(workers)
            )
        }
        _ => "unknown yet".into(),
    }
}

/// Says how far training on the stored games is in a run without actors.
fn without_self_play(summary: &Summary, config: &RunConfig) -> String {
    let stored = summary.replay.window_positions.unwrap_or_default();
    let least = config.learner.min_positions;
    let samples = summary.learner.samples_per_position.unwrap_or_default();
    if stored < least {
        return format!(
            "no self-play: training begins with {least} positions (learner.min_positions), {stored} are stored; `minuet games import` \
             adds games"
        );
    }
    match summary.learner.waiting {
        false => {
            format!("no self-play: training on the stored games, {samples:.2} samples a position so far")
        }
        true => format!(
            "no self-play: the stored games are used up, {samples:.2} samples a position (learner.samples_per_position); import more \
             games, or start without --actors 0"
        ),
    }
}

/// Says why the store takes no games because of its disk, and what to do; `None` if there is room.
fn shortage(replay: &Replay, config: &ReplayConfig) -> Option<String> {
    let bytes = |mib: u64| mib.saturating_mul(1 << 20);
    let (needed, most) = (bytes(config.min_free_mib), bytes(config.max_disk_mib));
    match (replay.free_bytes, replay.disk_bytes) {
        (Some(free), _) if free < needed => Some(format!(
            "the disk limits: {} of {} that must stay free (replay.min_free_mib) are free on the disk of {}; free some space there",
            BinaryBytes(free),
            BinaryBytes(needed),
            config.folder.display()
        )),
        (_, Some(used)) if used > most => Some(format!(
            "the disk limits: the stored games take {} of {} (replay.max_disk_mib); raise it, or lower replay.window_positions",
            BinaryBytes(used),
            BinaryBytes(most)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Disk,
        summary::{Actor, Inference, Process},
    };
    use super::*;

    fn summary(device: f64, workers: f64, cores: f64) -> Summary {
        Summary {
            actor: Actor {
                visits_per_second: Some(1_000.0),
                busy_ratio: Some(workers),
                ..Actor::default()
            },
            inference: Inference {
                busy_ratio: Some(device),
                batch_fill_ratio: Some(0.5),
                version: Some("v".into()),
                ..Inference::default()
            },
            processes: vec![Process {
                name: "learner".into(),
                pid: Some(1),
                cores: Some(cores),
                ..Process::default()
            }],
            ..Summary::default()
        }
    }

    fn sentence_of(summary: &Summary) -> String {
        sentence(summary, &RunConfig::default())
    }

    #[test]
    fn the_full_stage_is_named_with_its_number() {
        assert_eq!(
            sentence_of(&summary(0.93, 0.4, 0.1)),
            "inference limits: busy 93 %, batches 50 % full"
        );
        assert!(sentence_of(&summary(0.4, 0.97, 0.1)).starts_with("actors limit: busy 97 %"));
        assert!(
            sentence_of(&summary(0.4, 0.5, 0.1))
                .starts_with("waiting times limit (inference busy 40 %, actors 50 %)")
        );
        let mut full = summary(0.4, 0.5, 4096.0);
        assert!(sentence_of(&full).contains("cores are busy (learner"));
        // Elsewhere there may be as many cores.
        full.processes[0].pid = None;
        assert!(sentence_of(&full).starts_with("waiting times limit"));
    }

    #[test]
    fn without_actors_the_progress_on_the_stored_games_is_named() {
        let mut summary = summary(0.0, 0.0, 0.1);
        (summary.actor.off, summary.actor.visits_per_second) = (true, None);
        assert!(
            sentence_of(&summary)
                .contains("begins with 1500 positions (learner.min_positions), 0 are stored")
        );
        summary.replay.window_positions = Some(1_500);
        assert!(sentence_of(&summary).contains("training on the stored games, 0.00 samples a position"));
        summary.learner.samples_per_position = Some(2.0);
        summary.learner.waiting = true;
        assert!(sentence_of(&summary).contains("are used up, 2.00 samples a position"));
    }

    #[test]
    fn a_stage_that_is_missing_or_makes_no_progress_is_named_first() {
        let mut nothing = summary(0.93, 0.4, 0.1);
        nothing.actor.visits_per_second = Some(0.0);
        assert_eq!(sentence_of(&nothing), "self-play begins");
        nothing.after_seconds = 30.0;
        assert!(sentence_of(&nothing).starts_with("self-play makes no progress"));
        nothing.actor.visits_per_second = None;
        assert_eq!(sentence_of(&nothing), "waiting for self-play to begin");
        nothing.inference.version = None;
        assert_eq!(sentence_of(&nothing), "waiting for the first network");
        nothing.inference.newest_refused = Some("damaged".into());
        assert_eq!(
            sentence_of(&nothing),
            "the inference server refuses the network: damaged"
        );
        nothing.actor.paused = true;
        nothing.actor.spooled_games = Some(17);
        assert!(sentence_of(&nothing).contains("17 finished games wait for the store"));
        nothing.disks = vec![Disk {
            content: "checkpoints".into(),
            setting: "checkpoints.store".into(),
            folder: "/big/checkpoints".into(),
            free_bytes: 63 << 20,
        }];
        assert_eq!(
            sentence_of(&nothing),
            "the disk limits: 63.00 MiB are free on the disk of /big/checkpoints (checkpoints); free some space there, or move \
             checkpoints.store"
        );
        nothing.disks[0].free_bytes = 64 << 20;
        assert!(sentence_of(&nothing).starts_with("the replay store limits"));
        nothing.replay.free_bytes = Some(12 << 20);
        assert_eq!(
            sentence_of(&nothing),
            "the disk limits: 12.00 MiB of 256.00 MiB that must stay free (replay.min_free_mib) are free on the disk of replay; \
             free some space there; self-play is paused, 17 finished games wait for the store"
        );
        nothing.replay.free_bytes = Some(1 << 40);
        nothing.replay.disk_bytes = Some(17 << 30);
        assert!(sentence_of(&nothing).contains("take 17.00 GiB of 16.00 GiB (replay.max_disk_mib)"));
    }
}
