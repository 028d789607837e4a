//! Wire contracts of Minuet: the types generated from the `.proto` files, and the encodings that these do not define.
//!
//! Invariant: no other crate knows the layout of a message in bytes. The comments of the `.proto` files document each
//! field with its shape, unit and range; they are also the documentation of the generated types in [`v1`].
//!
//! | module | contents |
//! |---|---|
//! | [`v1`] | `minuet.v1`: the services `Evaluator`, `ReplayStore` and `Analysis` |
//! | [`inference`] | the Open Inference Protocol (KServe v2) |
//! | [`columns`] | views of ragged columns: rows and sparse policies of many positions |
//! | [`decisions`] | results of searches in games and batches |
//! | [`ids`] | ids of games as text |
//! | [`endings`], [`IMPORTED`] | endings of games that no rule gives; the origin of games that others played |
//! | [`priors`] | packing of priors in [`v1::EvaluateReply::priors`] |
//! | [`bounded`] | a codec that limits the memory of a decoded message |

pub mod bounded;
pub mod columns;
pub mod decisions;
pub mod ids;
pub mod priors;

use serde::{Serialize as _, Serializer};

/// `minuet.v1`: the evaluation service, the replay store and the analysis service.
///
/// A request for the evaluation of two positions whose rows have three entries each:
///
/// ```
/// use prost::Message as _;
/// use proto::v1::{EvaluateRequest, Priority};
///
/// let request = EvaluateRequest {
///     id: 7,
///     model: "latest".into(),
///     indices: vec![4, 70, 130, 5, 70, 131],
///     legal_actions: vec![0, 1, 2, 9],
///     legal_counts: vec![3, 1],
///     priority: Priority::Play.into(),
///     ..EvaluateRequest::default()
/// };
/// let bytes = request.encode_to_vec();
/// assert_eq!(EvaluateRequest::decode(&bytes[..])?, request);
/// # Ok::<(), prost::DecodeError>(())
/// ```
// Generated code: prost documents no `oneof` types, and clippy's style does not apply.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("minuet.v1");
}

/// `inference`: the Open Inference Protocol (KServe v2), for public clients.
// Generated code: prost documents no `oneof` types, and clippy's style does not apply.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod inference {
    tonic::include_proto!("inference");
}

/// File descriptor set of the services of an inference server, serialised, for gRPC server reflection.
pub const EVALUATION_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/evaluation.bin"));

/// File descriptor set of the services of a replay store, serialised, for gRPC server reflection.
pub const REPLAY_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/replay.bin"));

/// File descriptor set of the analysis service, serialised, for gRPC server reflection.
pub const ANALYSIS_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/analysis.bin"));

/// Text in [`v1::Game::provenance`] of a game that others played, read from a file: its policy is the action that was played.
pub const IMPORTED: &str = "imported";

/// Names in [`v1::Game::ending`] of endings that no game's rules define.
pub mod endings {
    use crate::v1::{Game, GameResult};

    /// The game reached the run's limit of actions.
    pub const MAX_ACTIONS: &str = "max-actions";
    /// The player to act has no legal action, and the rules give no outcome.
    pub const NO_ACTION: &str = "no-action";
    /// The players or an arbiter decided the game before its rules did: resignation, time, agreement on a draw. Only a game that is
    /// [`IMPORTED`](crate::IMPORTED) ends so; its result is the one that its file gives.
    pub const ADJUDICATED: &str = "adjudicated";

    impl Game {
        /// True if a game of two players has no result, because it reached the limit of actions. Such a game is recorded as a draw. (A
        /// problem of a one-player game that is not solved within the limit has a result: it is not solved.)
        pub fn is_undecided(&self) -> bool {
            self.ending == MAX_ACTIONS && self.result() == GameResult::Draw
        }
    }
}

/// Writes a text that is JSON as JSON.
fn write_json<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
    value.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_describes_its_own_services_only() {
        let holds = |set: &[u8], name: &str| set.windows(name.len()).any(|part| part == name.as_bytes());
        let [evaluator, kserve, store, analysis] = [
            "Evaluator",
            "GRPCInferenceService",
            "ReplayStore",
            "AnalyzeRequest",
        ];
        for (set, own, others) in [
            (
                EVALUATION_DESCRIPTORS,
                &[evaluator, kserve][..],
                &[store, analysis][..],
            ),
            (REPLAY_DESCRIPTORS, &[store], &[evaluator, kserve, analysis]),
            (ANALYSIS_DESCRIPTORS, &[analysis], &[evaluator, kserve, store]),
        ] {
            assert!(own.iter().all(|name| holds(set, name)), "{own:?}");
            assert!(!others.iter().any(|name| holds(set, name)), "{others:?}");
        }
    }
}
