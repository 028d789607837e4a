//! Tests of the limit, and random bytes for every message that a server or a client receives.

use bytes::Bytes;

use test_support::fuzz;

use super::*;
use crate::{
    inference as kserve,
    v1::{self, Batch, ExportRequest, Game, GameFilter, KnownGamesRequest, ListGamesRequest},
};

fn is_accepted<U: Message + Shaped>(message: &U) -> bool {
    check::<U>(&message.encode_to_vec()).is_ok()
}

#[test]
fn a_request_of_empty_ids_is_refused_and_one_of_real_ids_accepted() {
    let filter = |ids: Vec<Bytes>| GameFilter {
        ids,
        ..GameFilter::default()
    };
    for (id, count, accepted) in [
        (Bytes::new(), 400_000, false),
        (Bytes::from(vec![7; 16]), 400_000, true),
        (Bytes::new(), 30_000, true),
    ] {
        let ids = vec![id; count];
        assert_eq!(is_accepted(&KnownGamesRequest { ids: ids.clone() }), accepted);
        let filter = Some(filter(ids));
        assert_eq!(
            is_accepted(&ListGamesRequest {
                filter: filter.clone(),
                ..ListGamesRequest::default()
            }),
            accepted
        );
        assert_eq!(
            is_accepted(&ExportRequest {
                filter,
                ..ExportRequest::default()
            }),
            accepted
        );
    }
    let lists = GameFilter {
        endings: vec![String::new(); 400_000],
        ..GameFilter::default()
    };
    assert!(!is_accepted(&lists));
}

#[test]
fn large_columns_are_accepted() {
    assert!(is_accepted(&Game {
        rows: vec![1; 1 << 20],
        model_versions: vec!["000000001200-3fa94c21".into(); 4096],
        ..Game::default()
    }));
    assert!(is_accepted(&Batch {
        rows: vec![1; 1 << 20],
        game_sequences: vec![1; 1 << 20],
        results: vec![0.5; 1 << 16],
        ..Batch::default()
    }));
}

/// Decodes as [`super::BoundedCodec`] does, and checks that an accepted message survives an encoding.
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
