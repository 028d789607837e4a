//! The analysis engine gives results that do not depend on other jobs, and is fair.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use arena::{
    Player,
    analysis::{End, Engine, Figures, Job},
    players::{NetworkOptions, Networks, searches::decide_all},
};
use games::registry;
use search::GameKey;

/// A player with the network that comes with Minuet for a game.
fn player(game: &str, networks: &mut Networks) -> Arc<Player> {
    let spec = game.parse().unwrap();
    Arc::new(Player::open(registry::find(game).unwrap(), &spec, networks).unwrap())
}

fn networks() -> Networks {
    Networks::new(NetworkOptions {
        provider: config::Provider::Cpu,
        copies: 2,
        ..NetworkOptions::default()
    })
}

/// Analysis after the first `turns` of some moves of the game.
fn job(player: &Arc<Player>, turns: usize, visits: u32) -> Job {
    let game = player.game();
    let mut state = game
        .variant(&game.people_rules(), None)
        .unwrap()
        .start(None)
        .unwrap();
    for number in 0..turns {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        state.play(legal[number % legal.len()]).unwrap();
    }
    Job {
        key: GameKey { run_seed: 1, game: 1 },
        client: 1,
        ..Job::new(
            Arc::clone(player),
            state,
            format!("{turns} of {}", game.name),
            visits,
        )
    }
}

fn figures(engine: &Engine, jobs: Vec<Job>) -> Vec<Figures> {
    engine.run(jobs, |search| Figures::of(search, 8)).unwrap()
}

#[test]
fn each_answer_is_that_of_a_search_alone_visit_for_visit_whatever_runs_beside() {
    let mut networks = networks();
    let players = ["connect-four", "othello", "paco-sako"].map(|game| player(game, &mut networks));
    let asked: Vec<Job> = (0..48)
        .map(|number| {
            job(
                &players[number % 3],
                number / 3 % 8,
                50 + 17 * (number as u32 % 11),
            )
        })
        .collect();
    let beside = Engine::start(2);
    let together = figures(&beside, asked.clone());
    for (number, (asked, together)) in asked.iter().zip(together).enumerate() {
        let (_, mut searches) = asked.player.searches(0).unwrap();
        let states = [asked.state.copy()];
        let alone = decide_all(&mut *searches, &states, &asked.settings, 1, 1)
            .unwrap()
            .remove(0);
        let rows: BTreeMap<_, _> = together.rows.iter().map(|row| (row.action, row.visits)).collect();
        let visits: BTreeMap<_, _> = alone
            .actions
            .iter()
            .copied()
            .zip(alone.visits.iter().copied())
            .collect();
        assert_eq!(
            rows, visits,
            "job {number}: {:?} {}",
            asked.place, asked.settings.visits
        );
        assert_eq!(together.value, alone.value, "job {number}");
    }
}

#[test]
fn a_position_that_is_asked_again_continues_its_tree_to_the_result_of_a_search_from_the_beginning() {
    let mut networks = networks();
    let player = player("othello", &mut networks);
    let engine = Engine::start(1);
    let fresh = |visits| {
        let (sender, receiver) = mpsc::channel();
        engine.submit(job(&player, 3, visits), move |report| {
            if report.end.is_some() {
                let figures = Figures::of(report.search.unwrap(), 8);
                sender.send((report.fresh, figures)).unwrap();
            }
        });
        receiver.recv().unwrap()
    };
    let (first, _) = fresh(300);
    let (again, _) = fresh(300);
    let (longer, continued) = fresh(500);
    // The end of the first search is searched again, with the evaluations of the cache.
    assert!(
        first > 200 && again == 0 && longer < 250,
        "{first} {again} {longer}"
    );
    engine.clear_trees();
    assert_eq!(fresh(500).1, continued);
    assert_eq!(
        fresh(100).1.visits,
        100,
        "a shorter search does not see the longer one"
    );
}

#[test]
fn a_short_job_of_another_client_does_not_wait_for_long_ones() {
    let mut networks = networks();
    let player = player("connect-four", &mut networks);
    let engine = Engine::start(1);
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    for number in 0..40 {
        let mut long = job(&player, number % 5, 4_000_000);
        (long.place, long.stop) = (number.to_string(), Arc::clone(&stop));
        let sender = sender.clone();
        engine.submit(long, move |report| {
            if let Some(end) = &report.end {
                sender.send(end.clone()).unwrap();
            }
        });
    }
    let mut short = job(&player, 1, 200);
    short.client = 2;
    assert_eq!(figures(&engine, vec![short])[0].visits, 200);
    let mut timed = job(&player, 2, 4_000_000);
    (timed.client, timed.time) = (3, Some(Duration::from_millis(20)));
    assert!(figures(&engine, vec![timed])[0].visits >= 1);
    assert!(receiver.try_recv().is_err(), "no long job has ended");
    stop.store(true, Ordering::Relaxed);
    for _ in 0..40 {
        assert_eq!(receiver.recv().unwrap(), End::Cancelled);
    }
}
