//! Tests of the composition of batches.

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;
use crate::{
    intake::request::EvaluationRequest,
    models::table::ModelSlot,
    tests::{Answers, job_with, model, request, slot},
};

/// Jobs are answered by a model with batches of 8.
struct Rig {
    queue: Queue,
    slot: Arc<ModelSlot>,
    answers: Vec<Answers>,
}

impl Rig {
    fn new(limit: usize) -> Self {
        Self {
            queue: Queue::new(limit),
            slot: slot(model("1", 8)),
            answers: Vec::new(),
        }
    }

    /// Makes a queue with jobs of (client, positions).
    fn with(jobs: &[(u64, usize)]) -> Self {
        let mut rig = Self::new(10_000);
        for &(client, positions) in jobs {
            rig.push(client, positions).unwrap();
        }
        rig
    }

    fn push(&mut self, client: u64, positions: usize) -> Result<(), Refusal> {
        self.ask(client, request(positions, 0))
    }

    fn ask(&mut self, client: u64, request: EvaluationRequest) -> Result<(), Refusal> {
        let (sender, answers) = mpsc::unbounded_channel();
        let id = self.answers.len() as u64;
        self.answers.push(answers);
        self.queue
            .push(job_with(&self.slot, client, id, request, &sender))
    }

    fn take(&mut self) -> Option<FormedBatch> {
        self.queue.take(8, Instant::now())
    }

    /// Returns (client, first position, positions) of each slice of all batches until nothing waits.
    fn batches(&mut self) -> Vec<Vec<(u64, usize, usize)>> {
        std::iter::from_fn(|| self.take())
            .map(|formed| slices(&formed))
            .collect()
    }
}

/// Returns (client, first position, positions) of each slice.
fn slices(formed: &FormedBatch) -> Vec<(u64, usize, usize)> {
    let slices = formed.slices.iter();
    slices
        .map(|slice| (slice.job.client.0, slice.first, slice.count))
        .collect()
}

fn play(positions: usize) -> EvaluationRequest {
    EvaluationRequest {
        priority: Priority::Play,
        ..request(positions, 0)
    }
}

#[test]
fn clients_take_turns() {
    // Client 1 has sent all its requests before client 2 sends.
    let mut rig = Rig::with(&[(1, 4), (1, 4), (1, 4), (2, 4), (3, 4)]);
    let all = QueueLength {
        requests: 5,
        positions: 20,
    };
    assert_eq!(rig.queue.waiting(), all);
    assert_eq!(
        rig.batches(),
        [
            vec![(1, 0, 4), (2, 0, 4)],
            vec![(3, 0, 4), (1, 0, 4)],
            vec![(1, 0, 4)]
        ]
    );
    assert_eq!(rig.queue.waiting(), QueueLength::default());
}

#[test]
fn a_second_round_fills_the_batch() {
    let mut rig = Rig::with(&[(1, 1), (1, 1), (1, 1), (2, 1)]);
    assert_eq!(rig.batches(), [vec![(1, 0, 1), (2, 0, 1), (1, 0, 1), (1, 0, 1)]]);
}

#[test]
fn clients_with_large_and_small_requests_get_equal_shares() {
    let mut jobs = vec![(1, 6); 20];
    jobs.extend([(2, 1); 60]);
    let mut rig = Rig::with(&jobs);
    let mut of = [0; 3];
    for _ in 0..12 {
        for (client, _, positions) in slices(&rig.take().unwrap()) {
            of[client as usize] += positions;
        }
        // The shares never differ by more than a batch.
        assert!((of[1] as i64 - of[2] as i64).abs() <= 8, "{of:?}");
    }
}

#[test]
fn requests_are_not_split_and_one_that_did_not_fit_comes_first() {
    let mut rig = Rig::with(&[(1, 5), (2, 6), (3, 3), (1, 2)]);
    assert_eq!(
        rig.batches(),
        [vec![(3, 0, 3), (1, 0, 5)], vec![(2, 0, 6), (1, 0, 2)]]
    );
}

#[test]
fn a_request_larger_than_a_batch_is_split_and_others_get_their_turns_in_between() {
    let mut rig = Rig::with(&[(1, 20), (2, 2), (2, 8)]);
    assert_eq!(
        rig.batches(),
        [
            vec![(2, 0, 2)],
            vec![(1, 0, 8)],
            vec![(2, 0, 8)],
            vec![(1, 8, 8)],
            vec![(1, 16, 4)],
        ]
    );
}

#[test]
fn a_request_is_answered_by_one_model_even_across_a_swap() {
    let mut rig = Rig::with(&[(1, 12)]);
    let first = rig.take().unwrap();
    assert_eq!(
        (first.model.info.version.as_str(), slices(&first)),
        ("1", vec![(1, 0, 8)])
    );
    rig.slot.replace(model("2", 8));
    rig.push(2, 3).unwrap();
    // Client 2's request goes to the new model; the rest of client 1's to the old one, alone.
    let rest = [rig.take().unwrap(), rig.take().unwrap()];
    let mut found = rest.map(|formed| (formed.model.info.version.clone(), slices(&formed)));
    found.sort();
    assert_eq!(
        found,
        [("1".into(), vec![(1, 8, 4)]), ("2".into(), vec![(2, 0, 3)])]
    );
    assert!(rig.take().is_none());
}

#[test]
fn requests_to_several_models_are_not_mixed() {
    let mut rig = Rig::with(&[(1, 2), (1, 2)]);
    let other = slot(model("other", 8));
    let (sender, _answers) = mpsc::unbounded_channel();
    for client in [2, 3] {
        rig.queue
            .push(job_with(&other, client, 0, request(2, 0), &sender))
            .unwrap();
    }
    let found: Vec<_> = std::iter::from_fn(|| rig.take())
        .map(|formed| (formed.model.info.version.clone(), formed.positions))
        .collect();
    assert_eq!(found, [("1".into(), 4), ("other".into(), 4)]);
}

#[test]
fn play_comes_first_and_self_play_is_never_left_out() {
    let mut rig = Rig::with(&[(1, 8); 4]);
    rig.ask(2, play(3)).unwrap();
    rig.ask(2, play(3)).unwrap();
    rig.push(3, 2).unwrap();
    // Play first; self-play fills the rest of the batch.
    assert_eq!(slices(&rig.take().unwrap()), [(2, 0, 3), (2, 0, 3), (3, 0, 2)]);
    // A permanent load of play that the device can just compute.
    for _ in 0..20 {
        rig.ask(2, play(8)).unwrap();
    }
    let order: Vec<u64> = (0..16).map(|_| slices(&rig.take().unwrap())[0].0).collect();
    assert_eq!(
        order.iter().filter(|&&client| client == 1).count(),
        2,
        "{order:?}"
    );
    assert_eq!(order[7], 1, "{order:?}");
}

#[test]
fn the_limit_counts_positions_and_takes_requests_whole() {
    let mut rig = Rig::new(16);
    rig.push(1, 11).unwrap();
    assert!(matches!(
        rig.push(2, 4),
        Err(Refusal::QueueFull {
            waiting: 11,
            most: 14,
            ..
        })
    ));
    rig.push(2, 3).unwrap();
    while rig.take().is_some() {}
    rig.push(2, limit_of(Priority::SelfPlay, 16)).unwrap();
}

#[test]
fn self_play_that_fills_the_queue_leaves_room_for_play() {
    let mut rig = Rig::new(80);
    // So many clients that none exceeds its fair share.
    let filled = (0..).take_while(|&client| rig.push(client, 1).is_ok()).count();
    assert_eq!(filled, 70);
    for client in 100..110 {
        rig.ask(client, play(1)).unwrap();
    }
    let full = |refused, limit| matches!(refused, Err(Refusal::QueueFull { waiting: 80, most, .. }) if most == limit);
    assert!(full(rig.ask(110, play(1)), 80));
    assert!(full(rig.push(111, 1), 70));
    // Play is computed first; its free part of the queue is not for self-play.
    assert_eq!(rig.take().unwrap().positions, 8);
    assert!(rig.push(111, 1).is_err());
    rig.ask(110, play(1)).unwrap();
}

#[test]
fn no_client_fills_the_queue_alone() {
    let mut rig = Rig::new(100);
    for client in 2..=5 {
        rig.push(client, 1).unwrap();
    }
    let mut taken = 4;
    while rig.push(1, 1).is_ok() {
        taken += 1;
    }
    // Any client may take half of the queue; beyond that each of the five may take a fifth.
    assert_eq!(taken, 50);
    for _ in 0..19 {
        rig.push(2, 1).unwrap();
    }
    assert!(rig.push(2, 1).is_err());
    // New clients are admitted until the queue is full.
    rig.push(6, 19).unwrap();
}

#[test]
fn requests_of_clients_that_are_gone_are_not_computed() {
    let mut rig = Rig::with(&[(1, 4), (2, 4), (1, 4), (3, 12)]);
    rig.answers.remove(2);
    rig.answers.remove(0);
    let mut batches = rig.batches();
    batches.sort();
    assert_eq!(batches, [vec![(2, 0, 4)], vec![(3, 0, 8)], vec![(3, 8, 4)]]);
    assert_eq!(
        (rig.queue.waiting(), rig.queue.take_cancelled()),
        (QueueLength::default(), 2)
    );

    // The client of a large request goes in the middle of it: the rest is not computed.
    rig.push(4, 12).unwrap();
    assert_eq!(rig.take().unwrap().positions, 8);
    rig.answers.clear();
    assert!(rig.take().is_none());
    assert_eq!(
        (rig.queue.waiting(), rig.queue.take_cancelled()),
        (QueueLength::default(), 1)
    );

    // Their places in the queue are free at once.
    rig.push(1, 4).unwrap();
    rig.push(1, 2).unwrap();
    rig.push(2, 2).unwrap();
    rig.answers.remove(0);
    rig.queue.sweep(ClientId(1), Instant::now());
    assert_eq!(
        (rig.queue.waiting().positions, rig.queue.take_cancelled()),
        (4, 1)
    );
    let mut batch = slices(&rig.take().unwrap());
    batch.sort_unstable();
    assert_eq!(batch, [(1, 0, 2), (2, 0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn late_requests_are_not_computed() {
    let mut rig = Rig::with(&[(1, 3)]);
    let deadline = Instant::now() + std::time::Duration::from_millis(10);
    for client in [2, 1] {
        let late = EvaluationRequest {
            deadline: Some(deadline),
            ..request(4, 0)
        };
        rig.ask(client, late).unwrap();
    }
    tokio::time::advance(std::time::Duration::from_millis(10)).await;
    assert_eq!(rig.batches(), [vec![(1, 0, 3)]]);
    // Late requests are counted as refused when they are answered, not as cancelled.
    assert_eq!(
        (rig.queue.waiting(), rig.queue.take_cancelled()),
        (QueueLength::default(), 0)
    );
    for (id, answers) in rig.answers.iter_mut().enumerate().skip(1) {
        let reply = answers.try_recv().unwrap();
        assert_eq!((reply.id, reply.answer), (id as u64, Err(Refusal::Late)));
    }
}

proptest! {
    /// Every position is computed once, in order, by one model; no batch is too large; only requests larger than a batch are split.
    #[test]
    fn no_position_is_lost_or_computed_twice(
        jobs in prop::collection::vec((0u64..6, 1usize..40), 1..40),
        max_batch in 1usize..24,
        swap_at in 0usize..20,
    ) {
        let (sender, _answers) = mpsc::unbounded_channel();
        let mut queue = Queue::new(10_000);
        let slot = slot(model("1", max_batch));
        for (id, &(client, positions)) in jobs.iter().enumerate() {
            let priority = if client == 5 { Priority::Play } else { Priority::SelfPlay };
            let request = EvaluationRequest { priority, ..request(positions, 0) };
            queue.push(job_with(&slot, client, id as u64, request, &sender)).unwrap();
        }
        let mut done: HashMap<*const Job, (usize, String)> = HashMap::new();
        let mut number = 0;
        while let Some(formed) = queue.take(max_batch, Instant::now()) {
            number += 1;
            if number == swap_at {
                slot.replace(model("2", max_batch));
            }
            let sum: usize = formed.slices.iter().map(|slice| slice.count).sum();
            prop_assert_eq!(sum, formed.positions);
            prop_assert!((1..=max_batch).contains(&sum));
            for slice in &formed.slices {
                let key = Arc::as_ptr(&slice.job);
                let (taken, version) = done.entry(key).or_insert((0, formed.model.info.version.clone()));
                prop_assert_eq!(*taken, slice.first);
                prop_assert_eq!(&*version, &formed.model.info.version);
                *taken += slice.count;
                prop_assert!(slice.count == slice.job.positions() || slice.job.positions() > max_batch);
                prop_assert!(slice.count == max_batch || *taken == slice.job.positions());
            }
            prop_assert!(number < 10_000);
        }
        prop_assert_eq!(queue.waiting(), QueueLength::default());
        prop_assert_eq!(done.len(), jobs.len());
        let total: usize = done.values().map(|(taken, _)| taken).sum();
        prop_assert_eq!(total, jobs.iter().map(|(_, positions)| positions).sum::<usize>());
    }

    /// A client is served within one round of the others' turns.
    #[test]
    fn no_client_waits_for_ever(greedy in 1u64..8, requests in 1usize..20, positions in 1usize..30) {
        let max_batch = 16;
        let (sender, _answers) = mpsc::unbounded_channel();
        let mut queue = Queue::new(100_000);
        let slot = slot(model("1", max_batch));
        for id in 0..requests as u64 {
            for client in 0..greedy {
                queue.push(job_with(&slot, client, id, request(positions, 0), &sender)).unwrap();
            }
        }
        queue.push(job_with(&slot, 99, 0, request(16, 0), &sender)).unwrap();
        let mut others = 0;
        loop {
            let formed = queue.take(max_batch, Instant::now()).unwrap();
            if formed.slices.iter().any(|slice| slice.job.client.0 == 99) {
                break;
            }
            others += formed.positions as u64;
        }
        // For each other client as many positions as its own, and one request or batch more.
        let most = greedy * (16 + 2 + 16);
        prop_assert!(others <= most, "{others} positions of {greedy} clients before");
    }
}
