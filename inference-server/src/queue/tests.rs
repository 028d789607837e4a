//! What is in a batch.

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;
use crate::{
    job::Answer,
    testing::{job, job_for, model},
};

type Answers = mpsc::UnboundedReceiver<(u64, Answer)>;

/// A queue with jobs of (client, id, positions), and what keeps them alive.
fn queue(jobs: &[(u64, u64, usize)]) -> (Queue, Vec<Answers>) {
    let mut queue = Queue::new(10_000);
    let answers = jobs
        .iter()
        .map(|&(client, id, positions)| {
            let (job, answers) = job(client, id, positions);
            queue.push(job).unwrap();
            answers
        })
        .collect();
    (queue, answers)
}

/// (client, first position, positions) of each piece.
fn pieces(formed: &Formed) -> Vec<(u64, usize, usize)> {
    let pieces = formed.pieces.iter();
    pieces
        .map(|piece| (piece.job.client.0, piece.first, piece.count))
        .collect()
}

/// All batches until nothing waits.
fn batches(queue: &mut Queue, model: &Arc<Model>) -> Vec<Vec<(u64, usize, usize)>> {
    std::iter::from_fn(|| queue.take(model))
        .map(|formed| pieces(&formed))
        .collect()
}

#[test]
fn clients_take_turns() {
    // Client 1 has sent everything before client 2 came.
    let (mut queue, _answers) = queue(&[(1, 0, 4), (1, 1, 4), (1, 2, 4), (2, 3, 4), (3, 4, 4)]);
    assert_eq!(queue.waiting(), 20);
    assert_eq!(
        batches(&mut queue, &model("1", 8)),
        [
            vec![(1, 0, 4), (2, 0, 4)],
            vec![(3, 0, 4), (1, 0, 4)],
            vec![(1, 0, 4)]
        ]
    );
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn a_second_round_fills_the_batch() {
    let (mut queue, _answers) = queue(&[(1, 0, 1), (1, 1, 1), (1, 2, 1), (2, 3, 1)]);
    assert_eq!(
        batches(&mut queue, &model("1", 8)),
        [vec![(1, 0, 1), (2, 0, 1), (1, 0, 1), (1, 0, 1)]]
    );
}

#[test]
fn whole_requests_are_not_cut_and_who_did_not_fit_comes_first() {
    let (mut queue, _answers) = queue(&[(1, 0, 5), (2, 1, 6), (3, 2, 3), (1, 3, 2)]);
    assert_eq!(
        batches(&mut queue, &model("1", 8)),
        [vec![(1, 0, 5), (3, 0, 3)], vec![(2, 0, 6), (1, 0, 2)]]
    );
}

#[test]
fn a_request_larger_than_a_batch_is_cut_and_others_get_their_turns_between() {
    let (mut queue, _answers) = queue(&[(1, 0, 20), (2, 1, 2), (2, 2, 8)]);
    assert_eq!(
        batches(&mut queue, &model("1", 8)),
        [
            vec![(1, 0, 8)],
            vec![(2, 0, 2)],
            vec![(1, 8, 8)],
            vec![(2, 0, 8)],
            vec![(1, 16, 4)],
        ]
    );
}

#[test]
fn a_request_is_answered_by_one_model_even_across_a_swap() {
    let (mut queue, _answers) = queue(&[(1, 0, 12), (2, 1, 3)]);
    let (old, new) = (model("1", 8), model("2", 8));
    let first = queue.take(&old).unwrap();
    assert_eq!(
        (first.model.info.version.as_str(), pieces(&first)),
        ("1", vec![(1, 0, 8)])
    );
    // Client 2's request goes to the new model; the rest of client 1's to the old one, alone.
    let second = queue.take(&new).unwrap();
    assert_eq!(
        (second.model.info.version.as_str(), pieces(&second)),
        ("2", vec![(2, 0, 3)])
    );
    let third = queue.take(&new).unwrap();
    assert_eq!(
        (third.model.info.version.as_str(), pieces(&third)),
        ("1", vec![(1, 8, 4)])
    );
    assert!(queue.take(&new).is_none());
}

#[test]
fn the_limit_counts_positions_and_takes_requests_whole() {
    let mut queue = Queue::new(10);
    let (first, _first) = job(1, 0, 7);
    queue.push(first).unwrap();
    let (second, _second) = job(2, 1, 4);
    assert_eq!(
        queue.push(second),
        Err(Refusal::QueueFull { waiting: 7, most: 10 })
    );
    let (third, _third) = job(2, 2, 3);
    queue.push(third).unwrap();
    assert!(queue.take(&model("1", 16)).is_some());
    let (fourth, _fourth) = job(2, 3, 10);
    queue.push(fourth).unwrap();
}

#[test]
fn nobody_computes_for_who_is_gone() {
    let (mut queue, mut answers) = queue(&[(1, 0, 4), (2, 1, 4), (1, 2, 4), (3, 3, 12)]);
    drop(answers.remove(2));
    drop(answers.remove(0));
    assert_eq!(
        batches(&mut queue, &model("1", 8)),
        [vec![(2, 0, 4)], vec![(3, 0, 8)], vec![(3, 8, 4)]]
    );
    assert_eq!((queue.waiting(), queue.take_dropped()), (0, 2));

    // Gone in the middle of a large request: the rest is not computed.
    let (large, answers) = job(4, 4, 12);
    queue.push(large).unwrap();
    assert_eq!(queue.take(&model("1", 8)).unwrap().positions, 8);
    drop(answers);
    assert!(queue.take(&model("1", 8)).is_none());
    assert_eq!((queue.waiting(), queue.take_dropped()), (0, 1));
}

proptest! {
    /// Every position is computed once, in order; no batch is too large; only requests larger than a batch are cut;
    /// and while several clients wait, none is served twice before another that would have fitted is served.
    #[test]
    fn nothing_is_lost_or_doubled(
        jobs in prop::collection::vec((0u64..6, 1usize..40), 1..40),
        max_batch in 1usize..24,
        swap_at in 0usize..20,
    ) {
        let (sender, _answers) = mpsc::unbounded_channel();
        let mut queue = Queue::new(10_000);
        for (id, &(client, positions)) in jobs.iter().enumerate() {
            queue.push(job_for(client, id as u64, positions, &sender)).unwrap();
        }
        let models = [model("1", max_batch), model("2", max_batch)];
        let mut done: HashMap<*const Job, (usize, String)> = HashMap::new();
        let mut last_of: HashMap<ClientId, *const Job> = HashMap::new();
        let mut number = 0;
        while let Some(formed) = queue.take(&models[usize::from(number >= swap_at)]) {
            number += 1;
            let sum: usize = formed.pieces.iter().map(|piece| piece.count).sum();
            prop_assert_eq!(sum, formed.positions);
            prop_assert!((1..=max_batch).contains(&sum));
            for piece in &formed.pieces {
                let key = Arc::as_ptr(&piece.job);
                let (taken, version) = done.entry(key).or_insert((0, formed.model.info.version.clone()));
                prop_assert_eq!(*taken, piece.first);
                prop_assert_eq!(&*version, &formed.model.info.version);
                *taken += piece.count;
                prop_assert!(piece.count == piece.job.positions() || piece.job.positions() > max_batch);
                prop_assert!(piece.count == max_batch || *taken == piece.job.positions());
                last_of.insert(piece.job.client, key);
            }
            prop_assert!(number < 10_000);
        }
        prop_assert_eq!(queue.waiting(), 0);
        prop_assert_eq!(done.len(), jobs.len());
        let total: usize = done.values().map(|(taken, _)| taken).sum();
        prop_assert_eq!(total, jobs.iter().map(|(_, positions)| positions).sum::<usize>());
    }

    /// A client that asks for little is served within one round of the others' turns.
    #[test]
    fn nobody_waits_for_ever(greedy in 1u64..8, requests in 1usize..20, positions in 1usize..30) {
        let max_batch = 16;
        let (sender, _answers) = mpsc::unbounded_channel();
        let mut queue = Queue::new(100_000);
        for id in 0..requests as u64 {
            for client in 0..greedy {
                queue.push(job_for(client, id, positions, &sender)).unwrap();
            }
        }
        queue.push(job_for(99, 0, 16, &sender)).unwrap();
        let model = model("1", max_batch);
        let mut batches = 0;
        loop {
            let formed = queue.take(&model).unwrap();
            batches += 1;
            if formed.pieces.iter().any(|piece| piece.job.client.0 == 99) {
                break;
            }
        }
        prop_assert!(batches <= greedy + 1, "{} batches, {} clients before", batches, greedy);
    }
}
