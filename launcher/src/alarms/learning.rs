//! [`LEARNING`]: alarms about what a run learns. A run with one of these faults continues and looks busy, but its network gets no better.

use std::collections::HashMap;

use config::Provider;
use service::role::Role;

use super::{
    Definition, Evidence,
    Severity::*,
    learned::{Finished, VALIDATIONS},
};
use crate::losses::{Fit, Validation};

/// Fewest games from which shares are taken.
const GAMES: usize = 50;
/// Gap from which its growth matters, in units of the limit.
const SMALL: f64 = 2.0;

/// Alarms that no metrics page tells.
pub const LEARNING: &[Definition] = &[
    Definition {
        name: "MinuetGapGrows",
        severity: Warning,
        limit: 0.05,
        fix: "the network overfits: draw each position less often, or keep more games (replay.window_positions)",
        setting: Some("learner.samples_per_position=1.5"),
        alert: None,
        check: |evidence, limit| {
            // One head may lose on held-out games what the other one gains. In the first minutes every network knows its few games better
            // than others, and learns from both nevertheless.
            let found = growth(&evidence.now.learned.validations).filter(|[loss, gap]| {
                let is_worse = loss[1] > loss[0] + limit;
                is_worse && gap[1] > gap[0] + limit && gap[1] > SMALL * limit
            });
            Vec::from_iter(found.map(|[loss, gap]| {
                format!(
                    "the loss on held-out games, policy and value together, rose from {:.3} to {:.3}, and its distance from that on trained games from {:.3} to {:.3}",
                    loss[0], loss[1], gap[0], gap[1]
                )
            }))
        },
    },
    Definition {
        name: "MinuetPolicyCollapsed",
        severity: Warning,
        limit: 0.01,
        fix: "the policy is certain everywhere, so the search explores nothing: raise the noise at the root, or lower the learning rate",
        setting: Some("search.noise_fraction=0.4"),
        alert: None,
        check: |evidence, limit| {
            let collapsed = evidence.now.learned.probe_entropy.filter(|&share| share < limit);
            Vec::from_iter(collapsed.map(|share| {
                let percent = 100.0 * share;
                format!("on the probe positions the policy has {percent:.1} % of the entropy of equal priors")
            }))
        },
    },
    Definition {
        name: "MinuetGamesDrawn",
        severity: Warning,
        limit: 0.95,
        fix: "drawn games teach the value nothing: begin games with more random actions, so that one side gets an advantage",
        setting: Some("actor.random_plies=16"),
        alert: None,
        check: |evidence, limit| share(evidence, limit, |game| game.is_drawn, "were drawn"),
    },
    Definition {
        name: "MinuetGamesCut",
        severity: Warning,
        limit: 0.95,
        fix: "games that the limit of actions ends have no result: allow more actions, or look for actions that undo each other",
        setting: Some("search.max_actions=2000"),
        alert: None,
        check: |evidence, limit| {
            share(
                evidence,
                limit,
                |game| game.is_cut,
                "reached the limit of actions",
            )
        },
    },
    Definition {
        name: "MinuetOpeningsEqual",
        severity: Warning,
        limit: 0.5,
        fix: "the run sees the same positions again and again: begin games with random actions, or raise search.temperature there",
        setting: Some("actor.random_plies=8"),
        alert: None,
        check: |evidence, limit| {
            let games = &evidence.now.learned.games;
            let mut counts: HashMap<_, usize> = HashMap::new();
            for game in games {
                *counts.entry(&game.opening).or_default() += 1;
            }
            let most = counts.into_values().max().unwrap_or_default();
            let all = games.len();
            let is_most = all >= GAMES && most as f64 > limit * all as f64;
            let text = || format!("{most} of the newest {all} games began with the same actions");
            Vec::from_iter(is_most.then(text))
        },
    },
    Definition {
        name: "MinuetOtherProvider",
        severity: Warning,
        limit: 0.0,
        fix: "the server was started with other settings than run.toml has now: start the run again, or let it measure the providers",
        setting: Some("inference.provider=auto"),
        alert: None,
        check: |evidence, _| {
            let Some(asked) = evidence.now.provider else {
                return Vec::new();
            };
            let servers = evidence.of(Role::InferenceServer).filter_map(|seen| seen.now);
            let others = servers.filter_map(|page| {
                let runs = |name: &str| {
                    let info = page.sum_with("minuet_inference_provider_info", "provider", name);
                    info.is_some_and(|info| info >= 1.0)
                };
                let names = Provider::ALL.map(Provider::name);
                names.into_iter().find(|&name| name != asked && runs(name))
            });
            others
                .map(|other| format!("the inference server runs on {other}, and the run asks for {asked}"))
                .collect()
        },
    },
    Definition {
        name: "MinuetBestUnchanged",
        severity: Warning,
        limit: 20.0,
        fix: "training no longer makes it stronger: lower the learning rate, search with more visits, or train a larger network (`minuet grow`)",
        setting: Some("learner.learning_rate=0.0005"),
        alert: None,
        check: |evidence, limit| {
            let matches = evidence.now.learned.matches_since_best;
            let text =
                || format!("no checkpoint of the last {matches} rated matches has beaten the best one");
            Vec::from_iter((matches as f64 > limit).then(text))
        },
    },
];

/// Means over the older and over the newer half of the validations, of the loss on held-out games and of its distance from that on
/// trained games, policy and value together. `None` before there are enough validations, or if a loss is not a number.
fn growth(validations: &[Validation]) -> Option<[[f64; 2]; 2]> {
    if validations.len() < VALIDATIONS {
        return None;
    }
    let mut means = [[0.0; 2]; 2];
    for (number, validation) in validations.iter().enumerate() {
        let half = usize::from(number >= VALIDATIONS / 2);
        let Fit { policy, value } = validation.held_out;
        means[0][half] += (policy? + value?) / (VALIDATIONS / 2) as f64;
        means[1][half] += (validation.policy_gap()? + validation.value_gap()?) / (VALIDATIONS / 2) as f64;
    }
    Some(means)
}

/// Returns a sentence if there are enough games and the share of those that are as `is` says is above `limit`.
fn share(evidence: Evidence<'_>, limit: f64, is: fn(&Finished) -> bool, what: &str) -> Vec<String> {
    let games = &evidence.now.learned.games;
    let (count, found) = (games.len(), games.iter().filter(|game| is(game)).count());
    let share = found as f64 / count.max(1) as f64;
    let text = || format!("{:.0} % of the newest {count} games {what}", 100.0 * share);
    Vec::from_iter((count >= GAMES && share > limit).then(text))
}
