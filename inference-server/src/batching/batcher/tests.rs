//! Tests of when a batch is taken, with a paused clock and a device that the test controls.

use tokio::sync::mpsc::{self, error::TryRecvError};

use super::*;
use crate::{
    models::table::ModelSlot,
    tests::{Answers, job_of, model, model_on, policy, slot},
};

/// A batcher, and the device's end of it.
struct Rig {
    batcher: Arc<Batcher>,
    slot: Arc<ModelSlot>,
    device: mpsc::Receiver<FormedBatch>,
    stop: CancellationToken,
    answers: Vec<Answers>,
}

impl Rig {
    fn new() -> Self {
        Self::of(policy(8, 32))
    }

    fn of(policy: BatchingPolicy) -> Self {
        let batcher = Batcher::new(policy, Arc::new(Metrics::new()));
        // As the executor has it: one batch waits while another is executed.
        let (batches, device) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let running = (batcher.clone(), stop.clone());
        tokio::spawn(async move { running.0.run(batches, running.1).await });
        Self {
            batcher,
            slot: slot(model("1", 8)),
            device,
            stop,
            answers: Vec::new(),
        }
    }

    fn push(&mut self, client: u64, positions: usize) {
        let (job, answers) = job_of(&self.slot, client, self.answers.len() as u64, positions);
        self.answers.push(answers);
        self.batcher.push(job).unwrap();
    }

    /// Lets the batcher do its work without advancing the clock.
    async fn settle(&self) {
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
    }

    /// Takes a batch for the device, if there is one. Returns its number of positions.
    async fn take(&mut self) -> Option<usize> {
        self.settle().await;
        match self.device.try_recv() {
            Ok(formed) => {
                self.settle().await;
                Some(formed.positions)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("the batcher ended"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_device_gets_waiting_requests_at_once() {
    let mut rig = Rig::new();
    let began = Instant::now();
    rig.push(1, 3);
    assert_eq!(rig.take().await, Some(3));
    assert_eq!(Instant::now(), began);
}

#[tokio::test(start_paused = true)]
async fn requests_that_gather_while_the_device_works_are_one_batch() {
    let mut rig = Rig::new();
    rig.push(1, 3);
    assert_eq!(rig.take().await, Some(3));
    // While the device works, less than a largest batch waits for any time.
    rig.push(2, 2);
    rig.push(3, 1);
    assert_eq!(rig.take().await, None);
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(rig.take().await, None);
    rig.push(4, 1);
    rig.batcher.finished(8, 1);
    assert_eq!(rig.take().await, Some(4));
    rig.batcher.finished(8, 1);
    assert_eq!(rig.take().await, None);
}

/// Four clients that send a request after each answer: the device computes two of them while the other two send.
#[tokio::test(start_paused = true)]
async fn two_halves_of_the_clients_take_turns() {
    let mut rig = Rig::new();
    for client in 1..=4 {
        rig.push(client, 2);
    }
    assert_eq!(rig.take().await, Some(8));
    rig.batcher.finished(8, 4);
    // Each client sends after a few rounds of the runtime.
    for client in 1..=4 {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        rig.push(client, 2);
    }
    assert_eq!(rig.take().await, Some(4), "whole requests of two clients");
    assert_eq!(rig.take().await, None);
    rig.batcher.finished(4, 2);
    assert_eq!(rig.take().await, Some(4), "the other two");
    // Only one client sends again, and does not wait for others.
    rig.batcher.finished(4, 2);
    rig.push(1, 5);
    assert_eq!(rig.take().await, Some(5));
}

/// Two threads: each has a share of the requests while the third share gathers.
#[tokio::test(start_paused = true)]
async fn free_threads_divide_what_waits_between_them() {
    let mut rig = Rig::of(policy(128, 1000));
    rig.slot.replace(model_on(2, "1", 128));
    rig.push(1, 1);
    assert_eq!(
        rig.take().await,
        Some(1),
        "the first model tells the number of threads"
    );
    rig.batcher.finished(1, 1);
    for client in 1..=3 {
        rig.push(client, 16);
    }
    assert_eq!(
        rig.take().await,
        Some(16),
        "at most half of 48 positions, whole requests"
    );
    assert_eq!(rig.take().await, Some(32), "the other thread gets the rest");
    rig.push(1, 16);
    assert_eq!(rig.take().await, None, "both threads work");
    rig.batcher.finished(16, 1);
    assert_eq!(rig.take().await, Some(16));
    rig.batcher.finished(32, 2);
    rig.batcher.finished(16, 1);
    // A large request is split, a small one is not.
    rig.push(1, 64);
    assert_eq!(rig.take().await, Some(32));
    assert_eq!(rig.take().await, Some(32));
    rig.batcher.finished(32, 1);
    rig.batcher.finished(32, 1);
    rig.push(1, 16);
    assert_eq!(rig.take().await, Some(16));
}

#[tokio::test(start_paused = true)]
async fn one_whole_batch_is_formed_while_another_is_executed_and_no_more() {
    let mut rig = Rig::new();
    rig.push(1, 8);
    assert_eq!(rig.take().await, Some(8));
    // Three largest batches gather: one is formed and waits for the device, two are not formed.
    for client in 2..=7 {
        rig.push(client, 4);
    }
    rig.settle().await;
    assert_eq!(rig.batcher.queue.lock().waiting().positions, 16);
    rig.batcher.finished(8, 1);
    assert_eq!(rig.take().await, Some(8));
    assert_eq!(rig.batcher.queue.lock().waiting().positions, 8);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_recovers() {
    let mut rig = Rig::new();
    rig.push(1, 8);
    assert_eq!(rig.take().await, Some(8));
    rig.push(1, 8);
    rig.settle().await;
    rig.push(2, 28);
    let (job, _answers) = job_of(&rig.slot, 3, 99, 1);
    let Err(Refusal::QueueFull {
        waiting: 28,
        most: 28,
        retry_after_ms,
    }) = rig.batcher.push(job.clone())
    else {
        panic!("it is full");
    };
    assert!(retry_after_ms >= 1);
    rig.batcher.finished(8, 1);
    assert_eq!(rig.take().await, Some(8));
    rig.batcher.push(job).unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_refused_when_the_server_stops() {
    let mut rig = Rig::new();
    rig.push(1, 8);
    assert_eq!(rig.take().await, Some(8));
    rig.push(2, 3);
    rig.stop.cancel();
    rig.settle().await;
    let reply = rig.answers[1].try_recv().unwrap();
    assert_eq!((reply.id, reply.answer), (1, Err(Refusal::Stopping)));
    assert!(matches!(rig.device.try_recv(), Err(TryRecvError::Disconnected)));
}

#[test]
fn expected_time_follows_the_measured_speed_and_ignores_idle_time() {
    let (mut speed, start) = (DeviceSpeed::default(), Instant::now());
    assert_eq!(speed.time_for(1000), Duration::from_secs(1));
    for batch in 0..100 {
        speed.done(64, start + Duration::from_millis(10) * batch);
    }
    let time = speed.time_for(6400).as_secs_f64();
    assert!((time - 1.0).abs() < 1e-6, "{time}");
    assert_eq!(speed.time_for(0), SHORTEST);
    assert_eq!(speed.time_for(usize::MAX), LONGEST);
    // An hour without requests does not change the speed.
    speed.done(64, start + Duration::from_secs(3600));
    assert!((speed.time_for(6400).as_secs_f64() - 1.0).abs() < 1e-6);
}
