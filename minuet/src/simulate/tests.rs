//! Simulations against what was measured, and against laws that hold for every system of queues.

use service::role::Role;

use super::{
    costs::{Costs, StoreCosts, Wanted},
    failure::Failure,
    host::{Host, Work},
    outcome::Outcome,
    plot::{Curve, Plot},
    system::{Settings, simulate},
};
use crate::plan::{measured::Measured, reports::Report};

/// Greatest relative difference between a simulated figure and a measured one.
const WITHIN: f64 = 0.15;

/// Figures of a machine with two cores on which nothing else ran; `docs/results/speed.md` shows them beside the simulated ones.
const TWO_CORES: &str = include_str!("two_cores.jsonl");

#[track_caller]
fn close(what: &str, simulated: f64, measured: f64, within: f64) {
    let ratio = simulated / measured;
    assert!(
        (1.0 - within..=1.0 + within).contains(&ratio),
        "{what}: simulated {simulated:.4}, measured {measured:.4}, ratio {ratio:.3}"
    );
}

/// 10 µs a visit, half of which ask; a device of 1,000 evaluations a second; no other cost.
fn costs() -> Costs {
    Costs {
        visit: 10e-6,
        asking: 0.5,
        positions: 0.02,
        compute: 1e-3,
        compute_threads: 1,
        request: 0.0,
        row: 0.0,
        store: Some(StoreCosts {
            append: 1e-5,
            sample: 1e-5,
        }),
        train: Some(1e-4),
    }
}

fn settings() -> Settings {
    Settings {
        costs: costs(),
        actors: 1,
        servers: 1,
        rows: 256,
        rows_per_request: 64,
        requests_in_flight: 3,
        max_batch: 128,
        latency: 0.0,
        cores: None,
        learner: Some((64.0, 2.0)),
        failures: Vec::new(),
        warm_up: 20.0,
        seconds: 60.0,
        seed: 1,
    }
}

/// Self-play on two cores: one actor thread, one server whose device has two threads, one store, no learner.
fn two_cores(game: &str, network: &str) -> Outcome {
    let measured = Measured::parse(TWO_CORES.as_bytes(), "two_cores.jsonl").unwrap();
    let wanted = Wanted {
        game,
        network,
        is_shared: true,
    };
    simulate(&Settings {
        costs: wanted.find(&measured).unwrap().costs,
        cores: Some(2),
        learner: None,
        ..settings()
    })
}

/// Speeds, batches, requests and processor time of the whole self-play follow from the costs of its parts. The costs were measured
/// apart, but for the processor time of a visit and the share of visits that ask. The share of time for which the device computes is not
/// compared: its metric leaves out the assembly of batches.
#[test]
fn self_play_on_two_cores_is_reproduced() {
    for (game, network) in [("paco-sako", "4x64"), ("connect-four", "4x32")] {
        let simulated = two_cores(game, network);
        let mut objects = TWO_CORES.lines().map(|line| serde_json::from_str(line).unwrap());
        let measured = objects
            .rfind(|object: &serde_json::Value| object["bench"] == "selfplay" && object["game"] == game)
            .unwrap();
        for (key, value) in [
            ("visits_per_second", simulated.visits_per_second),
            ("fresh_evaluations_per_second", simulated.evaluations_per_second),
            ("positions_per_second", simulated.positions_per_second),
            ("positions_per_batch", simulated.positions_per_batch),
            ("rows_per_request", simulated.rows_per_request),
            ("actor_cores", simulated.actor_cores),
            ("inference_cores", simulated.inference_cores),
        ] {
            let expected = measured[key].as_f64().unwrap();
            println!("{game} {key}: simulated {value:.3}, measured {expected:.3}");
            close(&format!("{game}: {key}"), value, expected, WITHIN);
        }
    }
}

/// The table "Inference through gRPC" of `docs/results/speed.md` at `e67914c`: streams × rows, direct evaluations a second, processor time of the
/// other threads in µs, served evaluations a second, p50 in ms. The server had one core. Left out is the row of single positions on
/// the fastest device, whose speed in the small batches of that load was not measured.
#[test]
fn served_loads_on_one_core_are_reproduced() {
    for (streams, rows, direct, others, served, p50) in [
        (4, 64, 2_996.0, 2.5, 2_943.0, 85.0),
        (64, 1, 3_312.0, 18.0, 3_264.0, 20.0),
        (4, 64, 18_571.0, 1.5, 18_239.0, 14.0),
        (64, 1, 17_853.0, 15.0, 13_033.0, 5.0),
        (4, 64, 26_932.0, 1.5, 24_574.0, 10.0),
        (64, 1, 24_016.0, 15.0, 15_713.0, 4.0),
        (4, 64, 127_714.0, 1.4, 104_762.0, 2.0),
    ] {
        let outcome = simulate(&Settings {
            costs: Costs {
                visit: 1e-9,
                asking: 1.0,
                compute: 1.0 / direct,
                row: others * 1e-6,
                store: None,
                train: None,
                ..costs()
            },
            actors: streams,
            rows,
            rows_per_request: rows,
            requests_in_flight: 1,
            max_batch: 64,
            seconds: 10.0,
            ..settings()
        });
        let load = format!("{streams}x{rows} at {direct}");
        println!(
            "{load}: simulated {:.0}, {:.1} ms",
            outcome.evaluations_per_second, outcome.request_p50_ms
        );
        close(&load, outcome.evaluations_per_second, served, WITHIN);
        // The table rounds to whole milliseconds.
        let rounding = 0.5 / p50;
        close(
            &format!("{load}: p50"),
            outcome.request_p50_ms,
            p50,
            WITHIN + rounding,
        );
    }
}

/// A thread keeps three requests in flight. Where the way there and back takes most of the time, their number divided by it is the
/// rate (Little 1961).
#[test]
fn latency_bounds_the_rate_of_an_actor() {
    let far = simulate(&Settings {
        latency: 1.0,
        ..settings()
    });
    let device = 3.0 * 64.0 * 1e-3;
    assert!(far.evaluations_per_second <= 3.0 * 64.0 / 2.0);
    assert!(far.evaluations_per_second >= 3.0 * 64.0 / (2.0 + device) * 0.95);
    assert!(far.request_p50_ms >= 2_000.0);
    assert_eq!(far.saturated, Vec::<&str>::new());
}

/// The throughput of a closed system is at most that of its slowest part and at most that of its clients (Denning and Buzen 1978).
#[test]
fn rates_stay_below_the_bounds_and_reach_them() {
    let rate = |actors, servers| {
        let outcome = simulate(&Settings {
            actors,
            servers,
            seconds: 120.0,
            ..settings()
        });
        (outcome.evaluations_per_second, outcome.saturated)
    };
    let (one, saturated) = rate(1, 1);
    close("one server", one, 1_000.0, 0.01);
    assert_eq!(saturated, ["inference servers"]);
    // A second actor brings nothing.
    let (two, _) = rate(2, 1);
    close("two actors on one server", two, 1_000.0, 0.01);
    // One actor uses one server at a time.
    let (one_of_four, _) = rate(1, 4);
    close("one actor on four servers", one_of_four, 1_000.0, 0.02);
    // Four actors that choose among four servers leave about a third of them idle: (1 - 1/4)^4 is 0.32.
    let (four, _) = rate(4, 4);
    assert!((2_200.0..=3_300.0).contains(&four), "{four}");
    let (many, saturated) = rate(40, 4);
    close("forty actors on four servers", many, 4_000.0, 0.02);
    assert_eq!(saturated, ["inference servers"]);
    // 50,000 evaluations a second cost an actor all of its time.
    let fast = Settings {
        costs: Costs {
            compute: 1e-6,
            ..costs()
        },
        ..settings()
    };
    let outcome = simulate(&fast);
    close("a fast server", outcome.evaluations_per_second, 50_000.0, 0.02);
    assert_eq!(outcome.saturated, ["actors"]);
}

#[test]
fn a_slow_store_or_learner_is_named_and_does_not_stop_play() {
    let slow = |costs| simulate(&Settings { costs, ..settings() });
    // 2,000 visits a second are 40 positions and 80 samples a second.
    let usual = slow(costs());
    close("positions", usual.positions_per_second, 40.0, 0.02);
    close("stored", usual.stored_per_second.unwrap(), 40.0, 0.05);
    close("samples", usual.samples_per_second.unwrap(), 80.0, 0.05);
    let slow_store = slow(Costs {
        store: Some(StoreCosts {
            append: 0.1,
            sample: 0.0,
        }),
        ..costs()
    });
    close("stored", slow_store.stored_per_second.unwrap(), 10.0, 0.1);
    close("played", slow_store.positions_per_second, 40.0, 0.02);
    assert_eq!(slow_store.saturated, ["inference servers", "replay store"]);
    let slow_learner = slow(Costs {
        train: Some(0.1),
        ..costs()
    });
    close("samples", slow_learner.samples_per_second.unwrap(), 10.0, 0.1);
    assert_eq!(slow_learner.saturated, ["inference servers", "learner"]);
    let unknown = slow(Costs {
        store: None,
        ..costs()
    });
    assert_eq!(
        (unknown.stored_per_second, unknown.samples_per_second),
        (None, None)
    );
}

/// Every fault costs at most its own time, and what the store has to take waits for it.
#[test]
fn failures_cost_their_time_and_lose_no_stored_position() {
    let with = |failures: &[(Role, f64, f64)], servers| {
        simulate(&Settings {
            servers,
            actors: 16,
            failures: failures
                .iter()
                .map(|&(role, at, seconds)| Failure { role, at, seconds })
                .collect(),
            warm_up: 0.0,
            seconds: 100.0,
            ..settings()
        })
    };
    let usual = with(&[], 2);
    // Half of the servers for a fifth of the time.
    let server = with(&[(Role::InferenceServer, 40.0, 20.0)], 2);
    close(
        "a server of two",
        server.positions_per_second / usual.positions_per_second,
        0.9,
        0.05,
    );
    // The only server: everything waits, and goes on.
    let only = with(&[(Role::InferenceServer, 40.0, 20.0)], 1);
    let during = |outcome: &Outcome, from: f64, to: f64| -> f64 {
        let inside = outcome
            .timeline
            .iter()
            .filter(|interval| interval.until > from + 2.0 && interval.until <= to);
        inside.map(|interval| interval.positions).sum()
    };
    assert_eq!(during(&only, 42.0, 60.0), 0.0);
    assert!(during(&only, 65.0, 100.0) > 0.0);
    let store = with(&[(Role::ReplayStore, 40.0, 20.0)], 2);
    assert_eq!(store.positions_per_second, usual.positions_per_second);
    close(
        "stored in the end",
        store.stored_per_second.unwrap(),
        usual.stored_per_second.unwrap(),
        0.01,
    );
    let learner = with(&[(Role::Learner, 40.0, 20.0)], 2);
    close(
        "trained in the end",
        learner.samples_per_second.unwrap(),
        usual.samples_per_second.unwrap(),
        0.01,
    );
    let actors: Vec<_> = (0..16).map(|_| (Role::Actor, 50.0, 50.0)).collect();
    let half = with(&actors, 2);
    close(
        "no actor",
        half.positions_per_second / usual.positions_per_second,
        0.5,
        0.05,
    );
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    let of = |seed| {
        let outcome = simulate(&Settings {
            seed,
            actors: 5,
            servers: 3,
            ..settings()
        });
        serde_json::to_string(&outcome).unwrap()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn threads_share_the_cores_of_a_host() {
    let mut host = Host::new(2.0);
    host.start(0.0, Work::Compute(0), 1.0, 2);
    assert_eq!(host.remaining(), Some(1.0));
    // Three threads on two cores run at two thirds of their speed.
    host.start(0.5, Work::Play(0), 1.0, 1);
    assert!((host.remaining().unwrap() - 0.75).abs() < 1e-9);
    assert_eq!(host.completed(1.0), None);
    assert_eq!(host.completed(1.25), Some((Work::Compute(0), 2.0)));
    // Half of the other task is done, and it has a core of its own now.
    assert!((host.remaining().unwrap() - 0.5).abs() < 1e-9);
    host.stop(1.3, Work::Play(0));
    assert_eq!(host.remaining(), None);
}

#[test]
fn failures_are_read_and_others_are_refused() {
    let read: Failure = "replay-store@10+2.5".parse().unwrap();
    let expected = Failure {
        role: Role::ReplayStore,
        at: 10.0,
        seconds: 2.5,
    };
    assert_eq!(read, expected);
    for text in [
        "",
        "store@1+1",
        "learner@1",
        "learner@-1+1",
        "learner@1+x",
        "rating@1+1",
    ] {
        let error = text.parse::<Failure>().unwrap_err();
        assert!(
            error.contains("ROLE@AT+SECONDS") && error.contains("inference-server"),
            "{error}"
        );
    }
}

#[test]
fn a_missing_figure_is_an_error_that_names_its_command() {
    let lines = |keep: &[&str]| -> String {
        let is_kept = |line: &&str| {
            keep.iter()
                .any(|bench| line.contains(&format!("\"bench\":\"{bench}\"")))
        };
        TWO_CORES.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
    };
    let find = |text: &str, is_shared| {
        let measured = Measured::parse(text.as_bytes(), "figures.jsonl").unwrap();
        let wanted = Wanted {
            game: "paco-sako",
            network: "4x64",
            is_shared,
        };
        wanted.find(&measured).map_err(|error| error.to_string())
    };
    let error = find(&lines(&["inference", "replay"]), false).unwrap_err();
    assert!(
        error.contains("minuet bench selfplay --game paco-sako --blocks 4 --filters 64"),
        "{error}"
    );
    let error = find(&lines(&["selfplay", "replay"]), false).unwrap_err();
    assert!(
        error.contains("minuet bench inference --game paco-sako --networks 4x64"),
        "{error}"
    );
    let older = TWO_CORES.replace("thread_speeds", "speeds");
    assert!(find(&older, false).is_ok());
    assert!(find(&older, true).unwrap_err().contains("speed of the device"));
    let without_store = find(&lines(&["selfplay", "inference"]), false).unwrap();
    assert!(without_store.costs.store.is_none());
}

/// The costs of a server's other threads are those of two loads: of a request, and of each position in it.
#[test]
fn costs_of_requests_and_positions_fit_both_loads() {
    let measured = Measured::parse(TWO_CORES.as_bytes(), "two_cores.jsonl").unwrap();
    let wanted = Wanted {
        game: "paco-sako",
        network: "4x64",
        is_shared: false,
    };
    let costs = wanted.find(&measured).unwrap().costs;
    let line = TWO_CORES
        .lines()
        .find(|line| line.contains("\"bench\":\"inference\",\"game\":\"paco-sako\""));
    let Report::Inference(found) = serde_json::from_str(line.unwrap()).unwrap() else {
        panic!("no result of the inference server");
    };
    for figures in found.figures {
        let rows = f64::from(figures.load.rows);
        let expected = 1e-6 * figures.other_threads_us_per_position.unwrap();
        close("other threads", costs.row + costs.request / rows, expected, 1e-6);
    }
}

#[test]
fn pictures_show_every_curve_and_escape_names() {
    let plot = Plot {
        title: "a < b".into(),
        across: "actors",
        up: "positions a second",
        is_logarithmic: true,
        curves: vec![
            Curve {
                name: "1 & 2".into(),
                points: vec![[1.0, 10.0], [10.0, 0.0], [100.0, 1_000.0]],
            },
            Curve {
                name: "3".into(),
                points: vec![[1.0, 2_500.0]],
            },
        ],
    };
    let svg = plot.svg();
    assert!(svg.contains("a &lt; b") && svg.contains("1 &amp; 2"), "{svg}");
    assert_eq!(svg.matches("<polyline").count(), 2);
    // The point at 0 has no place on a logarithmic axis.
    assert!(svg.contains("points=\"78.0,370.0 570.0,"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}
