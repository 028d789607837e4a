//! Random bytes for every message that a server or a client receives.

use prost::Message;
use test_support::fuzz;

use crate::{
    bounded::{Shaped, check},
    inference as kserve, v1,
};

/// Decodes as [`crate::bounded::BoundedCodec`] does, and checks that an accepted message survives an encoding.
fn decodes<M: Message + Shaped + Default + PartialEq>(bytes: &[u8]) -> bool {
    if check::<M>(bytes).is_err() {
        return false;
    }
    let Ok(message) = M::decode(bytes) else {
        return false;
    };
    // A decoded NaN is not equal to itself, but encodes to the same bytes.
    let encoded = message.encode_to_vec();
    assert_eq!(M::decode(&encoded[..]).unwrap().encode_to_vec(), encoded);
    true
}

/// Fields of every wire type and of many numbers: a start for messages that have no example of their own.
const MIXED: &[u8] = b"\x08\x07\x12\x04name\x1a\x03\x01\x02\x03\x22\x02\x08\x01\x2d\x00\x00\x80\x3f\x31\x00\x00\x00\x00\x00\x00\xf0\x3f\x38\x01";

macro_rules! fuzz_messages {
    ($($module:ident::$message:ident),* $(,)?) => {
        #[test]
        fn fuzz_messages() {
            $(
                let filled = $module::$message::default().encode_to_vec();
                fuzz(stringify!($message), &[&filled, MIXED], decodes::<$module::$message>);
            )*
        }
    };
}

fuzz_messages!(
    v1::EvaluateRequest,
    v1::EvaluateReply,
    v1::DescribeModelRequest,
    v1::ModelDescription,
    v1::Game,
    v1::AppendAck,
    v1::KnownGamesRequest,
    v1::KnownGamesReply,
    v1::SampleRequest,
    v1::Batch,
    v1::StatsReply,
    v1::DeleteGamesRequest,
    v1::DeleteGamesReply,
    v1::ListGamesRequest,
    v1::ListGamesReply,
    v1::GetGameRequest,
    v1::ExportRequest,
    v1::StoredGame,
    kserve::ServerMetadataResponse,
    kserve::ModelReadyRequest,
    kserve::ModelMetadataRequest,
    kserve::ModelMetadataResponse,
    kserve::ModelInferRequest,
    kserve::ModelInferResponse,
    kserve::ModelStreamInferResponse,
    kserve::ModelConfigRequest,
    kserve::ModelConfigResponse,
    kserve::RepositoryIndexRequest,
    kserve::RepositoryIndexResponse,
);
