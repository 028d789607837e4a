//! Names of the metrics from which the summary is computed.

use service::role::Role;

pub const VISITS: &str = "minuet_actor_visits_total";
pub const FRESH: &str = "minuet_actor_fresh_evaluations_total";
pub const CACHE_HITS: &str = "minuet_actor_cache_hits_total";
pub const WORKER_BUSY: &str = "minuet_actor_worker_busy_seconds_total";
pub const WORKER_WAITING: &str = "minuet_actor_worker_waiting_seconds_total";
pub const SPOOL_GAMES: &str = "minuet_actor_spool_games";
pub const ACTOR_PAUSED: &str = "minuet_actor_paused";

/// Label `kind`: a kind of problem.
pub const PROBLEM_LEVEL: &str = "minuet_actor_problem_level";
pub const PROBLEM_RECENT: &str = "minuet_actor_problem_recent";
pub const PROBLEM_SOLVED: &str = "minuet_actor_problem_recent_solved";
pub const PROBLEM_MOVES: &str = "minuet_actor_problem_recent_moves";

pub const EVALUATED: &str = "minuet_inference_positions_total";
pub const BATCHES: &str = "minuet_inference_batches_total";
pub const BATCH_POSITIONS: &str = "minuet_inference_batch_positions_total";
pub const DEVICE_BUSY: &str = "minuet_inference_device_seconds_sum";
pub const QUEUE_SECONDS_SUM: &str = "minuet_inference_queue_seconds_sum";
pub const QUEUE_SECONDS_COUNT: &str = "minuet_inference_queue_seconds_count";

pub const NEWEST_REFUSED: &str = "minuet_inference_model_newest_refused";

pub const STEP: &str = "minuet_learner_step";
/// Label `head`: `policy` or `value`.
pub const LOSS: &str = "minuet_learner_loss";
/// Label `head`.
pub const VALIDATION_LOSS: &str = "minuet_learner_validation_loss";
/// Label `head`.
pub const VALIDATION_GAP: &str = "minuet_learner_validation_gap";
pub const TARGET_ENTROPY: &str = "minuet_learner_target_entropy";
pub const STEPS: &str = "minuet_learner_steps_total";
pub const LEARNER_WAITING: &str = "minuet_learner_waiting";
pub const SAMPLES_PER_POSITION: &str = "minuet_learner_samples_per_position_ratio";

/// Label `checkpoint`: `best` or `latest`.
pub const RATING_ELO: &str = "minuet_rating_elo";
pub const RATING_ELO_LOW: &str = "minuet_rating_elo_low";
pub const RATING_ELO_HIGH: &str = "minuet_rating_elo_high";
pub const RATING_STEP: &str = "minuet_rating_step";
pub const RATING_GAMES: &str = "minuet_rating_games_total";

pub const DISK_FREE: &str = "minuet_replay_disk_free_bytes";

pub const RESIDENT: &str = "process_resident_memory_bytes";
pub const PEAK_RESIDENT: &str = "process_peak_resident_memory_bytes";
pub const CPU_SECONDS: &str = "process_cpu_seconds_total";

/// The counters whose growth the summary shows.
pub const COUNTERS: [(Role, &str); 12] = [
    (Role::Actor, VISITS),
    (Role::Actor, FRESH),
    (Role::Actor, CACHE_HITS),
    (Role::Actor, WORKER_BUSY),
    (Role::Actor, WORKER_WAITING),
    (Role::InferenceServer, EVALUATED),
    (Role::InferenceServer, BATCHES),
    (Role::InferenceServer, BATCH_POSITIONS),
    (Role::InferenceServer, DEVICE_BUSY),
    (Role::InferenceServer, QUEUE_SECONDS_SUM),
    (Role::InferenceServer, QUEUE_SECONDS_COUNT),
    (Role::Learner, STEPS),
];
