//! Many models at once: labels, versions, other stores, files made elsewhere; a budget of memory.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use checkpoints::Version;
use games::{Game as _, RowLayout, othello::Othello};
use inference_server::{
    backend::Backend,
    buckets::Buckets,
    library::{Library, Listed, Parts},
    loader::Loader,
    metrics::Metrics,
    models::Models,
    names::{ModelName, Pointer},
    refusal::Refusal,
    source::Source,
};
use onnx::{
    Input,
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
        TypeProto, ValueInfoProto,
        attribute_proto::AttributeType,
        tensor_proto::DataType,
        tensor_shape_proto::{Dimension, dimension},
        type_proto,
    },
};
use prost::Message as _;
use proto::v1::{DescribeModelRequest, EvaluateRequest};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::common::{
    PATIENCE, Served, Server, Store, agrees, code, file, othello_like, request, small, tower,
};

fn named(layout: &RowLayout, model: &str) -> EvaluateRequest {
    EvaluateRequest {
        model: model.into(),
        ..request(layout, 3, 4, 5)
    }
}

#[tokio::test]
async fn labels_versions_and_other_stores_are_loaded_when_they_are_asked_for() {
    let (store, other) = (Store::new(), Store::new());
    let (layout, other_layout) = (small(), othello_like());
    let towers: Vec<_> = (0..4).map(|seed| tower(&layout, seed)).collect();
    let bytes = |number: usize| file(&towers[number], &layout, Input::Rows);
    let old = store.publish(bytes(0), &layout, 1).await;
    let best = store.publish(bytes(1), &layout, 2).await;
    store.repository.set_label("best", &best).await.unwrap();
    let latest = store.publish_latest(bytes(2), &layout, 3).await;
    let other_tower = tower(&other_layout, 9);
    let foreign = other
        .publish_latest(file(&other_tower, &other_layout, Input::Rows), &other_layout, 4)
        .await;
    let server = Server::start(&store, |config| {
        config.inference.sources = vec![format!("othello={}", other.folder.path().display())];
    })
    .await;
    server.wait_for(&latest).await;

    for (name, version, tower) in [("best", &best, 1), (old.as_str(), &old, 0), ("", &latest, 2)] {
        let asked = named(&layout, name);
        let reply = server.evaluate(asked.clone()).await.unwrap();
        assert_eq!(reply.version, version.as_str());
        assert!(agrees(&reply, &towers[tower], &layout, &asked), "{name}");
    }
    for name in ["othello", "othello/latest", &format!("othello/{foreign}")] {
        let asked = named(&other_layout, name);
        let reply = server.evaluate(asked.clone()).await.unwrap();
        assert_eq!(reply.version, foreign.as_str());
        assert!(agrees(&reply, &other_tower, &other_layout, &asked), "{name}");
        let mut client = server.client();
        let description = client.describe_model(DescribeModelRequest { model: name.into() });
        assert_eq!(description.await.unwrap().into_inner().game, "othello");
    }
    // On a stream too, while others are answered.
    let mut stream = server.stream().await;
    store.repository.set_label("third", &old).await.unwrap();
    stream
        .send(EvaluateRequest {
            id: 1,
            ..named(&layout, "third")
        })
        .await;
    stream
        .send(EvaluateRequest {
            id: 2,
            ..named(&layout, "")
        })
        .await;
    let mut replies = [stream.reply().await, stream.reply().await];
    replies.sort_by_key(|reply| reply.id);
    assert_eq!(
        replies.map(|reply| reply.version),
        [old.to_string(), latest.to_string()]
    );
    for name in ["worst", "othello/best", "000000000009-00000000", "No Name"] {
        assert_eq!(
            code(server.evaluate(named(&layout, name)).await),
            Code::NotFound,
            "{name}"
        );
    }

    // A label that was asked for is followed.
    let better = store.publish(bytes(3), &layout, 5).await;
    store.repository.set_label("best", &better).await.unwrap();
    let followed = async {
        while server.evaluate(named(&layout, "best")).await.unwrap().version != better.as_str() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, followed).await.unwrap();
    drop(stream);
    server.stop().await;
}

#[tokio::test]
async fn what_was_said_once_is_said_again_and_never_by_a_new_model() {
    let (store, layout) = (Store::new(), small());
    let towers: Vec<_> = (0..2).map(|seed| tower(&layout, seed)).collect();
    let publish = async |number: usize| {
        let bytes = file(&towers[number], &layout, Input::Rows);
        store.publish_latest(bytes, &layout, number as u64).await
    };
    let first = publish(0).await;
    let server = Server::start(&store, |config| config.inference.cache_mib = 1).await;
    server.wait_for(&first).await;
    let asked = named(&layout, "");
    let reply = server.evaluate(asked.clone()).await.unwrap();
    assert_eq!(server.evaluate(asked.clone()).await.unwrap(), reply);
    // Some known, some not, one of them twice.
    let mut mixed = request(&layout, 8, 3, 5);
    for part in [&asked.indices[..18], &mixed.indices.clone()[..9]] {
        mixed.indices.extend_from_slice(part);
    }
    mixed.legal_actions = (0..5).rev().collect::<Vec<_>>().repeat(6);
    mixed.legal_counts = vec![5; 6];
    let reply = server.evaluate(mixed.clone()).await.unwrap();
    assert!(agrees(&reply, &towers[0], &layout, &mixed));
    let second = publish(1).await;
    server.wait_for(&second).await;
    let reply = server.evaluate(mixed.clone()).await.unwrap();
    assert_eq!(reply.version, second.as_str());
    assert!(agrees(&reply, &towers[1], &layout, &mixed));
    server.stop().await;
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_again() {
    let Served { layout, server, .. } = Served::start_with(|config| config.inference.max_queue = 40).await;
    let refused = server.evaluate(request(&layout, 1, 41, 1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let retry = refused.get_error_details().retry_info().cloned().unwrap();
    assert!(retry.retry_delay.unwrap() >= Duration::from_millis(1));
    let mut stream = server.stream().await;
    stream.send(request(&layout, 2, 41, 1)).await;
    assert!(stream.reply().await.error.unwrap().retry_after_ms.unwrap() >= 1);
    drop(stream);
    server.stop().await;
}

/// A library over a store, for so many of its models.
async fn library(store: &Store, budget: u64) -> Arc<Library> {
    let environment = onnx_runtime::load(Path::new("")).unwrap();
    let loader = Loader::new(environment, 1, Buckets::new(&[], 8), Some(Backend::Cpu)).unwrap();
    let default = ModelName {
        source: String::new(),
        pointer: Pointer::Label("latest".into()),
    };
    let library = Library::new(Parts {
        models: Arc::new(Models::new(default, [])),
        sources: BTreeMap::from([(String::new(), Source::Store(store.repository.clone()))]),
        loader: Arc::new(loader),
        game: ("paco-sako".into(), 0),
        poll: Duration::from_millis(5),
        budget,
        on_demand: true,
        metrics: Arc::new(Metrics::new()),
    });
    library.start();
    tokio::time::timeout(PATIENCE, library.first_model())
        .await
        .unwrap();
    library
}

#[tokio::test]
async fn what_was_used_longest_ago_makes_room_and_what_is_in_flight_ends_first() {
    let (store, layout) = (Store::new(), small());
    let mut versions: Vec<Version> = Vec::new();
    let mut bytes = 0;
    for seed in 0..4 {
        let file = file(&tower(&layout, seed), &layout, Input::Rows);
        bytes = file.len() as u64;
        versions.push(store.publish(file, &layout, seed).await);
    }
    store.repository.set_label("latest", &versions[0]).await.unwrap();
    let library = library(&store, 3 * bytes).await;
    let name = |number: usize| versions[number].as_str();
    let loaded = || {
        // Finding one by its name would be a use of it.
        let is_loaded = |number: &usize| library.models().loaded("", name(*number)).is_some();
        (0..4).filter(is_loaded).collect::<Vec<_>>()
    };
    library.get(name(1)).await.unwrap();
    let in_flight = library.get(name(2)).await.unwrap();
    // It was found to be loaded, which is a use.
    library.get(name(1)).await.unwrap();
    let waits = tokio::spawn({
        let (library, name) = (library.clone(), name(3).to_owned());
        async move { library.get(&name).await }
    });
    let unloaded = async {
        while loaded().contains(&2) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, unloaded).await.unwrap();
    // It takes memory until what it was given is answered, and nothing else is unloaded in its place.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(loaded(), [0, 1]);
    drop(in_flight);
    let third = tokio::time::timeout(PATIENCE, waits)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(third.model.info.version, name(3));
    assert_eq!(loaded(), [0, 1, 3]);
    drop(third);

    // Asked for by name, whatever was used when; the default stays.
    library.unload(name(3)).await.unwrap();
    assert_eq!(loaded(), [0, 1]);
    assert!(matches!(library.unload("latest").await, Err(Refusal::Pinned(_))));
    assert!(matches!(
        library.unload(name(3)).await,
        Err(Refusal::UnknownModel(_))
    ));
    library.load(name(3)).await.unwrap();
    let index = library.index().await.unwrap();
    let entry = |name: &str| index.iter().find(|entry| entry.name == name).unwrap().clone();
    let latest = Listed {
        name: "latest".into(),
        version: name(0).into(),
        is_loaded: true,
        reason: String::new(),
    };
    assert_eq!(entry("latest"), latest);
    assert!(entry(name(3)).is_loaded);
}

#[tokio::test]
async fn a_model_that_never_fits_is_refused() {
    let (store, layout) = (Store::new(), small());
    let bytes = |seed| file(&tower(&layout, seed), &layout, Input::Rows);
    store.publish_latest(bytes(1), &layout, 1).await;
    let other = store.publish(bytes(2), &layout, 2).await;
    let library = library(&store, bytes(1).len() as u64 * 3 / 2).await;
    let refused = library.get(other.as_str()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(
        refused.to_string().contains("raise inference.memory_mib"),
        "{refused}"
    );
}

/// A network as others write them: dense input, their own names, an old opset, probabilities of a win, a draw and a loss.
fn made_elsewhere(layout: &RowLayout, opset: i64) -> Vec<u8> {
    let stack = layout.stack().unwrap();
    let width = stack.tensor_len();
    let weight = |row: usize, column: usize| ((row * 31 + column * 7) % 19) as f32 / 100.0 - 0.09;
    let tensor = |name: &str, sides: &[usize], data: Vec<f32>| TensorProto {
        name: Some(name.into()),
        dims: sides.iter().map(|&side| side as i64).collect(),
        data_type: Some(DataType::Float as i32),
        float_data: data,
        ..TensorProto::default()
    };
    let matrix = |name: &str, columns: usize| {
        let data = (0..width).flat_map(|row| (0..columns).map(move |column| weight(row, column)));
        tensor(name, &[width, columns], data.collect())
    };
    let node = |operator: &str, inputs: &[&str], output: &str| NodeProto {
        op_type: Some(operator.into()),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    };
    let info = |name: &str, sides: &[i64]| {
        let side = |&side: &i64| Dimension {
            value: Some(match side {
                -1 => dimension::Value::DimParam("N".into()),
                side => dimension::Value::DimValue(side),
            }),
            ..Dimension::default()
        };
        let shape = TensorShapeProto {
            dim: sides.iter().map(side).collect(),
        };
        let tensor = type_proto::Tensor {
            elem_type: Some(DataType::Float as i32),
            shape: Some(shape),
        };
        ValueInfoProto {
            name: Some(name.into()),
            r#type: Some(TypeProto {
                value: Some(type_proto::Value::TensorType(tensor)),
                ..TypeProto::default()
            }),
            ..ValueInfoProto::default()
        }
    };
    let mut softmax = node("Softmax", &["outcome_logits"], "outcome");
    softmax.attribute.push(AttributeProto {
        name: Some("axis".into()),
        r#type: Some(AttributeType::Int as i32),
        i: Some(1),
        ..AttributeProto::default()
    });
    let actions = layout.actions as usize;
    let planes = i64::from(stack.planes);
    let graph = GraphProto {
        name: Some("elsewhere".into()),
        node: vec![
            node("Flatten", &["board"], "flat"),
            node("Gemm", &["flat", "moves_w", "moves_b"], "moves"),
            node("Gemm", &["flat", "outcome_w", "outcome_b"], "outcome_logits"),
            softmax,
        ],
        initializer: vec![
            matrix("moves_w", actions),
            tensor("moves_b", &[actions], vec![0.0; actions]),
            matrix("outcome_w", 3),
            tensor("outcome_b", &[3], vec![0.1, 0.2, 0.3]),
        ],
        input: vec![info("board", &[-1, planes, 8, 8])],
        output: vec![info("moves", &[-1, actions as i64]), info("outcome", &[-1, 3])],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(4),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(opset),
        }],
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

#[tokio::test]
async fn models_made_elsewhere_are_served_by_their_descriptions() {
    let (store, layout) = (Store::new(), Othello::encoding(0).map(Othello::layout).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let description = |file: &str| {
        format!("game='othello'\nfile='{file}'\npolicy='moves'\nvalue='outcome'\nvalue_kind='win-draw-loss'")
    };
    for opset in [7, 9, 13, 17] {
        let bytes = made_elsewhere(&layout, opset);
        std::fs::write(folder.path().join(format!("opset-{opset}.onnx")), bytes).unwrap();
        let text = description(&format!("opset-{opset}.onnx"));
        std::fs::write(folder.path().join(format!("foreign-{opset}.toml")), text).unwrap();
    }
    std::fs::write(folder.path().join("broken.toml"), description("nothing.onnx")).unwrap();
    let wrong = description("opset-7.onnx").replace("'moves'", "'mvoes'");
    std::fs::write(folder.path().join("wrong.toml"), wrong).unwrap();
    let server = Server::start(&store, |config| {
        config.inference.models = folder.path().into();
        config.inference.default_model = "foreign-17".into();
    })
    .await;

    let asked = EvaluateRequest {
        legal_actions: [64, 0, 7].repeat(3),
        legal_counts: vec![3; 3],
        indices: onnx::random::rows(&layout, 3, 0.8, 1),
        ..EvaluateRequest::default()
    };
    let answered = async {
        loop {
            match server.evaluate(asked.clone()).await {
                Err(status) if status.code() == Code::Unavailable => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                answered => return answered.unwrap(),
            }
        }
    };
    let reply = tokio::time::timeout(PATIENCE, answered).await.unwrap();
    let stack = layout.stack().unwrap();
    for (position, row) in asked.indices.chunks(stack.row_len()).enumerate() {
        let mut planes = vec![0.0; stack.tensor_len()];
        stack.expand(row, &mut planes).unwrap();
        let dot = |column: usize| -> f64 {
            let weight = |row: usize| f64::from(((row * 31 + column * 7) % 19) as f32 / 100.0 - 0.09);
            planes
                .iter()
                .enumerate()
                .map(|(row, &plane)| f64::from(plane) * weight(row))
                .sum()
        };
        let exps: Vec<f64> = (0..3)
            .map(|column| (dot(column) + [0.1, 0.2, 0.3][column]).exp())
            .collect();
        let value = (exps[0] - exps[2]) / exps.iter().sum::<f64>();
        assert!((f64::from(reply.values[position]) - value).abs() < 1e-5);
        let exps: Vec<f64> = [64, 0, 7].map(|column| dot(column).exp()).to_vec();
        let mut priors = Vec::new();
        proto::priors::decode(&reply.priors, 9, &mut priors).unwrap();
        for (found, exp) in priors[3 * position..].iter().zip(&exps) {
            assert!((f64::from(*found) - exp / exps.iter().sum::<f64>()).abs() < 1e-3);
        }
    }
    for opset in [7, 9, 13] {
        let model = format!("foreign-{opset}");
        let other = server
            .evaluate(EvaluateRequest {
                model,
                ..asked.clone()
            })
            .await
            .unwrap();
        assert_eq!((&other.values, &other.priors), (&reply.values, &reply.priors));
    }
    for (model, words) in [("broken", "nothing.onnx"), ("wrong", "mvoes")] {
        let refused = server
            .evaluate(EvaluateRequest {
                model: model.into(),
                ..asked.clone()
            })
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains(words), "{refused}");
    }
    server.stop().await;
}
