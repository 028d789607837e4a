//! Tests of the whole server over gRPC on loopback, with ONNX Runtime and a model repository.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod many_models;
mod memory;
mod messages;
mod waiting;

use std::collections::HashMap;

use common::{
    Served, Server, Store, agrees, clients, code, file, infer_request, request, small, tower, until, within,
};
use games::RowLayout;
use onnx::Input;
use proto::{
    inference::{RepositoryIndexRequest, ServerReadyRequest},
    v1::DescribeModelRequest,
};
use service::connect;
use tokio::sync::watch;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

async fn health(server: &Server, name: &str) -> ServingStatus {
    let channel = connect::channel(&server.address).unwrap();
    let request = HealthCheckRequest { service: name.into() };
    let response = HealthClient::new(channel).check(request).await.unwrap();
    ServingStatus::try_from(response.into_inner().status).unwrap()
}

#[tokio::test]
async fn the_server_is_unavailable_until_the_first_model() {
    let (store, layout) = (Store::new(), small());
    let server = Server::start(&store, |_| {}).await;
    let asked = request(&layout, 1, 3, 5);
    assert_eq!(code(server.evaluate(asked.clone()).await), Code::Unavailable);
    let (_, mut standard) = clients(&server.address);
    let ready = standard.server_ready(ServerReadyRequest {}).await.unwrap();
    assert!(!ready.into_inner().ready);
    let inferred = standard.model_infer(infer_request(&layout, "latest", 1, 3)).await;
    assert_eq!(inferred.unwrap_err().code(), Code::Unavailable);
    let mut stream = server.stream().await;
    stream.send(asked.clone()).await;
    let refused = stream.reply().await;
    assert_eq!(
        (refused.id, refused.error.unwrap().code),
        (1, Code::Unavailable as i32)
    );
    let described = server
        .client()
        .describe_model(DescribeModelRequest::default())
        .await;
    assert_eq!(described.unwrap_err().code(), Code::Unavailable);
    assert_eq!(health(&server, "").await, ServingStatus::NotServing);
    assert_eq!(
        health(&server, "minuet.v1.Evaluator").await,
        ServingStatus::NotServing
    );

    let weights = tower(&layout, 1);
    let version = store
        .publish_latest(file(&weights, &layout, Input::Rows), &layout, 5)
        .await;
    let description = server.wait_for(&version).await;
    assert_eq!(
        serde_json::from_str::<RowLayout>(&description.layout_json).unwrap(),
        layout
    );
    assert_eq!(
        (description.row_length, description.actions, description.step),
        (9, 9, 5)
    );
    assert_eq!(
        (description.game.as_str(), description.provider.as_str()),
        ("paco-sako", "cpu")
    );
    assert_eq!(
        health(&server, "minuet.v1.Evaluator").await,
        ServingStatus::Serving
    );

    // The stream continues.
    stream.send(asked.clone()).await;
    let reply = stream.reply().await;
    assert_eq!(
        (reply.id, &reply.version, &reply.error),
        (1, &version.to_string(), &None)
    );
    assert!(agrees(&reply, &weights, &layout, &asked));
    assert_eq!(server.evaluate(asked).await.unwrap(), reply);
    drop((stream, standard));
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_request_does_not_affect_others_in_its_batch() {
    let Served {
        layout,
        weights,
        server,
        ..
    } = Served::start().await;

    let mut stream = server.stream().await;
    let bad = |id: u64| {
        let mut request = request(&layout, id, 3, 4);
        match id % 4 {
            0 => request.indices[9 + 2] = 64,
            1 => request.legal_actions[5] = 9,
            2 => request.model = "nobody".into(),
            _ => request.legal_counts[2] = 5,
        }
        request
    };
    for id in 0..40 {
        let request = if id % 2 == 0 {
            request(&layout, id, 3, 4)
        } else {
            bad(id / 2)
        };
        stream.send(proto::v1::EvaluateRequest { id, ..request }).await;
    }
    let mut seen = [false; 40];
    for _ in 0..40 {
        let reply = stream.reply().await;
        assert!(!std::mem::replace(&mut seen[reply.id as usize], true));
        let Some(error) = reply.error else {
            assert_eq!(reply.id % 2, 0);
            assert!(agrees(
                &reply,
                &weights,
                &layout,
                &request(&layout, reply.id, 3, 4)
            ));
            continue;
        };
        assert_eq!(reply.id % 2, 1);
        let (code, position) = match reply.id / 2 % 4 {
            0 | 1 => (Code::InvalidArgument, Some(1)),
            2 => (Code::NotFound, None),
            _ => (Code::InvalidArgument, None),
        };
        assert_eq!(
            (error.code, error.position),
            (code as i32, position),
            "{}",
            error.message
        );
        assert!((reply.values, reply.priors, reply.version) == (vec![], bytes::Bytes::new(), String::new()));
    }

    let refused = server.evaluate(bad(0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().starts_with("position 1: value 2: index 64"),
        "{refused}"
    );
    assert_eq!(
        code(server.evaluate(request(&layout, 1, 65, 1)).await),
        Code::InvalidArgument
    );
    drop(stream);
    server.stop().await;
}

/// Several streams with many requests in flight while checkpoints are published: no request fails, every answer is correct for the
/// version that it names, and versions on a stream never go back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swaps_under_load_fail_no_request_and_mix_no_versions() {
    const VERSIONS: u64 = 4;
    let (store, layout) = (Store::new(), small());
    let towers: Vec<_> = (0..VERSIONS).map(|seed| tower(&layout, seed)).collect();
    let first = store
        .publish_latest(file(&towers[0], &layout, Input::Rows), &layout, 0)
        .await;
    let server = Server::start(&store, |_| {}).await;
    server.wait_for(&first).await;

    let last = tokio_util::sync::CancellationToken::new();
    let (mut clients, mut seen) = (Vec::new(), Vec::new());
    for client in 0..3_u64 {
        let mut stream = server.stream().await;
        let (layout, towers, last) = (layout.clone(), towers.clone(), last.clone());
        let (says, sees) = watch::channel(String::new());
        seen.push(sees);
        clients.push(tokio::spawn(async move {
            let ask = |id: u64| request(&layout, id, 1 + (id % 7) as usize, 1 + (id % 9) as u32);
            let (mut sent, mut newest) = (0, String::new());
            let mut answered = 0;
            // By the id of a request in flight: the newest version that the client had seen when it sent the request.
            let mut seen_before = HashMap::new();
            while !last.is_cancelled() || answered < sent {
                while sent - answered < 8 && !last.is_cancelled() {
                    let id = 1000 * client + sent;
                    seen_before.insert(id, newest.clone());
                    stream.send(ask(id)).await;
                    sent += 1;
                }
                if answered == sent {
                    continue;
                }
                let reply = stream.reply().await;
                answered += 1;
                assert_eq!(reply.error, None);
                // Two threads evaluate, so a batch of the older version may end after one of the newer version. A request that was
                // sent after an answer of the newer version is never evaluated by the older one.
                let before = seen_before.remove(&reply.id).unwrap();
                assert!(reply.version >= before, "{} after {before}", reply.version);
                // Every tenth answer and the first one of each version are recomputed.
                if reply.version > newest || answered % 10 == 0 {
                    let step: usize = reply.version[..12].parse().unwrap();
                    assert!(
                        agrees(&reply, &towers[step], &layout, &ask(reply.id)),
                        "{}",
                        reply.version
                    );
                }
                if reply.version > newest {
                    newest = reply.version;
                    says.send_replace(newest.clone());
                }
            }
        }));
    }
    let mut version = first;
    for step in 0..VERSIONS {
        if step > 0 {
            let file = file(&towers[step as usize], &layout, Input::Rows);
            version = store.publish_latest(file, &layout, step).await;
        }
        // The next checkpoint is published after every client has an answer of this one.
        for sees in &mut seen {
            within(sees.wait_for(|newest| newest == version.as_str()))
                .await
                .unwrap();
        }
    }
    last.cancel();
    for client in clients {
        client.await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_bad_checkpoint_does_not_replace_the_served_model() {
    let (store, layout) = (Store::new(), small());
    let weights = tower(&layout, 1);
    let good = store
        .publish_latest(file(&weights, &layout, Input::Rows), &layout, 1)
        .await;
    let server = Server::start(&store, |_| {}).await;
    server.wait_for(&good).await;
    let (_, mut standard) = clients(&server.address);
    let mut reason = String::new();
    let mut still_good = async |what: &str| {
        // The list of models has the reason as soon as the server has tried.
        let before = reason.clone();
        until(async || {
            let listed = standard.repository_index(RepositoryIndexRequest::default()).await;
            reason = listed.unwrap().into_inner().models.remove(0).reason;
            reason != before
        })
        .await;
        let asked = request(&layout, 1, 2, 3);
        let reply = server.evaluate(asked.clone()).await.unwrap();
        assert_eq!(reply.version, good.as_str(), "after {what}");
        assert!(agrees(&reply, &weights, &layout, &asked));
    };

    let nothing = b"no model at all".to_vec();
    store.publish_latest(nothing, &layout, 2).await;
    still_good("a file that is not a model").await;

    let version = store
        .publish(file(&tower(&layout, 3), &layout, Input::Rows), &layout, 3)
        .await;
    let path = store.folder.path().join(format!("versions/{version}/model.onnx"));
    let mut damaged = std::fs::read(&path).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    store.repository.set_label("latest", &version).await.unwrap();
    still_good("a flipped bit").await;

    let other_game = RowLayout {
        game: "chess".into(),
        ..layout.clone()
    };
    let other_layout = RowLayout {
        mirrored_actions: false,
        ..layout.clone()
    };
    for (other, what) in [
        (other_game, "another game's model"),
        (other_layout, "another row layout"),
    ] {
        let model = file(&tower(&other, 4), &other, Input::Rows);
        store.publish_latest(model, &other, 4).await;
        still_good(what).await;
    }

    let better = store
        .publish_latest(file(&tower(&layout, 6), &layout, Input::Rows), &layout, 6)
        .await;
    server.wait_for(&better).await;
    drop(standard);
    server.stop().await;
}

/// A client sends more requests than a stream may have in flight before it reads any answer.
#[tokio::test]
async fn a_client_that_reads_late_gets_every_answer_once() {
    const REQUESTS: u64 = 5 * inference_server::intake::stream::MAX_IN_FLIGHT as u64;
    let Served { layout, server, .. } = Served::start().await;
    let mut stream = server.stream().await;
    for id in 0..REQUESTS {
        stream.send(request(&layout, id, 1, 2)).await;
    }
    let mut ids = Vec::new();
    for _ in 0..REQUESTS {
        let reply = stream.reply().await;
        assert_eq!(reply.error, None);
        ids.push(reply.id);
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..REQUESTS));
    // The server ends the stream after the client has.
    let common::Stream {
        requests,
        mut replies,
    } = stream;
    drop(requests);
    assert!(within(replies.message()).await.unwrap().is_none());
    server.stop().await;
}

#[tokio::test]
async fn a_provider_that_is_not_available_is_an_error_at_start() {
    network::runtime::load().unwrap();
    if network::provider::check(config::Provider::Cuda).is_ok() {
        return;
    }
    let store = Store::new();
    let server = Server::start(&store, |config| {
        config.inference.provider = config::Provider::Cuda;
    })
    .await;
    let ended = within(server.task).await.unwrap();
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("the provider cuda cannot be used here"), "{error}");
}
