//! Which stage limits the run, said in words with the number that shows it.

use config::RunConfig;

use super::Summary;

/// A stage that is busier than this limits those before and after it.
const FULL: f64 = 0.85;

/// What limits the run now.
pub fn sentence(summary: &Summary, config: &RunConfig) -> String {
    let percent = |ratio: f64| format!("{:.0} %", 100.0 * ratio);
    let actor = &summary.actor;
    let inference = &summary.inference;
    if actor.paused {
        let games = actor.spooled_games.unwrap_or_default();
        return format!("self-play pauses: {games} finished games wait for the replay store, which limits");
    }
    if inference.version.is_none() {
        return "waiting for the first network".into();
    }
    let Some(visits) = actor.visits_per_second else {
        return "waiting for self-play to begin".into();
    };
    if visits == 0.0 {
        return "self-play stands still: see the logs of actor and inference server".into();
    }
    let cores: f64 = summary.processes.iter().filter_map(|process| process.cores).sum();
    let available = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    if cores >= 0.95 * available {
        let mut shares: Vec<_> = summary
            .processes
            .iter()
            .filter_map(|process| Some((process.cores?, process.name.as_str())))
            .collect();
        shares.sort_by(|left, right| right.0.total_cmp(&left.0));
        let shares: Vec<String> = shares
            .iter()
            .take(3)
            .map(|(cores, name)| format!("{name} {}", percent(cores / available)))
            .collect();
        return format!("all {available} cores are busy and limit: {}", shares.join(", "));
    }
    match (inference.busy_ratio, actor.busy_ratio) {
        (Some(device), _) if device >= FULL => {
            let filled = inference.batch_fill_ratio.unwrap_or_default();
            format!(
                "inference is busy {} with batches {} full: it limits",
                percent(device),
                percent(filled)
            )
        }
        (_, Some(workers)) if workers >= FULL => {
            format!(
                "actors are busy {}: they limit (more cores or --actors help)",
                percent(workers)
            )
        }
        (Some(device), Some(workers)) => {
            let (games, flight) = (config.actor.games_per_thread, config.actor.requests_in_flight);
            format!(
                "nothing is full (inference busy {}, actors {}): each waits for the other; \
                 more than {games} games or {flight} requests in flight a thread would help",
                percent(device),
                percent(workers)
            )
        }
        _ => "not known yet".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::{Actor, Inference, Process};
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
                cores: Some(cores),
                ..Process::default()
            }],
            ..Summary::default()
        }
    }

    fn said(summary: &Summary) -> String {
        sentence(summary, &RunConfig::default())
    }

    #[test]
    fn the_full_stage_is_named_with_its_number() {
        assert_eq!(
            said(&summary(0.93, 0.4, 0.1)),
            "inference is busy 93 % with batches 50 % full: it limits"
        );
        assert!(said(&summary(0.4, 0.97, 0.1)).starts_with("actors are busy 97 %: they limit"));
        assert!(
            said(&summary(0.4, 0.5, 0.1)).starts_with("nothing is full (inference busy 40 %, actors 50 %)")
        );
        assert!(said(&summary(0.4, 0.5, 4096.0)).contains("cores are busy and limit: learner"));
    }

    #[test]
    fn what_is_missing_or_stands_still_comes_first() {
        let mut nothing = summary(0.93, 0.4, 0.1);
        nothing.actor.visits_per_second = Some(0.0);
        assert!(said(&nothing).starts_with("self-play stands still"));
        nothing.actor.visits_per_second = None;
        assert_eq!(said(&nothing), "waiting for self-play to begin");
        nothing.inference.version = None;
        assert_eq!(said(&nothing), "waiting for the first network");
        nothing.actor.paused = true;
        nothing.actor.spooled_games = Some(17);
        assert!(said(&nothing).contains("17 finished games wait for the replay store"));
    }
}
