//! Tests of many models at once: labels, versions, other stores, files of other programs.

use std::sync::Arc;

use bytes::Bytes;
use games::{Game as _, RowLayout, Symmetry, othello::Othello};
use network::{
    Network as _, NetworkError, PositionBatch, Predictions, RemoteNetwork,
    session::{Contract, ValueKind},
    trial::{self, Trial},
};
use onnx::{
    Input,
    graph::{Attribute, Graph, Side},
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto,
        attribute_proto::AttributeType,
        tensor_proto::{DataLocation, DataType},
        type_proto,
    },
};
use prost::Message as _;
use proto::v1::EvaluateRequest;
use tonic::Code;

use crate::common::{Server, Store, agrees, code, file, model_of, othello, request, small, tower, until};

fn named(layout: &RowLayout, model: &str) -> EvaluateRequest {
    EvaluateRequest {
        model: model.into(),
        ..request(layout, 3, 4, 5)
    }
}

#[tokio::test]
async fn labels_versions_and_other_stores_are_served() {
    let (store, other) = (Store::new(), Store::new());
    let (layout, other_layout) = (small(), othello());
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
        config.inference.also_serve = vec!["best".into(), old.to_string()];
    })
    .await;
    server.wait_for(&latest).await;
    for name in ["best", old.as_str(), "othello"] {
        server.wait_for_model(name).await.unwrap();
    }

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
        let description = server.wait_for_model(name).await.unwrap();
        assert_eq!(description.game, "othello");
    }
    for name in ["worst", "othello/best", "000000000009-00000000", "No Name"] {
        assert_eq!(
            code(server.evaluate(named(&layout, name)).await),
            Code::NotFound,
            "{name}"
        );
    }

    // Every served label is followed.
    let better = store.publish(bytes(3), &layout, 5).await;
    store.repository.set_label("best", &better).await.unwrap();
    until(async || {
        let reply = server.evaluate(named(&layout, "best")).await;
        reply.unwrap().version == better.as_str()
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn repeated_requests_get_equal_answers_and_never_those_of_another_model() {
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
    // Some positions are in the cache, some are not, one occurs twice.
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

/// Returns a network like those of other programs: dense input, other names, an old opset, probabilities of win, draw and loss.
fn made_elsewhere(layout: &RowLayout, opset: i64) -> Vec<u8> {
    let stack = layout.stack().unwrap();
    let (width, actions) = (stack.tensor_len(), layout.actions as usize);
    let weight = |row: usize, column: usize| ((row * 31 + column * 7) % 19) as f32 / 100.0 - 0.09;
    let matrix = |columns: usize| -> Vec<f32> {
        (0..width)
            .flat_map(|row| (0..columns).map(move |column| weight(row, column)))
            .collect()
    };
    let batch = Side::Free("N");
    let mut graph = Graph::new("elsewhere");
    let [planes, ranks, files] = stack.shape().map(Side::Fixed);
    let board = graph.input("board", DataType::Float, &[batch, planes, ranks, files]);
    let flat = graph.node("Flatten", "flat", &[&board], &[]);
    let mut gemm = |name: &str, columns: usize, bias: &[f32]| {
        let weights = graph.floats(&format!("{name}_w"), &[width, columns], &matrix(columns));
        let bias = graph.floats(&format!("{name}_b"), &[columns], bias);
        graph.node("Gemm", name, &[&flat, &weights, &bias], &[])
    };
    let moves = gemm("moves_all", actions, &vec![0.0; actions]);
    let outcome = gemm("outcome_all", 3, &[0.1, 0.2, 0.3]);
    let axis = [("axis", Attribute::Int(1))];
    let outcome = graph.node("Softmax", "outcome_softmax", &[&outcome], &axis);
    graph.output("moves", &moves, DataType::Float, &[batch, Side::Fixed(actions)]);
    graph.output("outcome", &outcome, DataType::Float, &[batch, Side::Fixed(3)]);
    model_of(graph, 4, opset)
}

/// Evaluates Othello's first position as a player does. Returns the values.
fn first_position(network: &RemoteNetwork) -> Result<Vec<f32>, NetworkError> {
    let state = Othello::start(&Default::default(), None).unwrap();
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    let mut batch = PositionBatch::default();
    batch.push_position(&state, Symmetry::IDENTITY, &legal, Default::default());
    let mut predictions = Predictions::default();
    network.evaluate(&batch, &mut predictions)?;
    Ok(predictions.values)
}

/// A player that named a version is refused when the server no longer has it; one that named a label continues with the
/// label's new version.
#[tokio::test]
async fn a_player_keeps_its_version_until_the_label_has_moved() {
    let (store, layout) = (Store::new(), othello());
    let publish = async |seed: u64| {
        let bytes = file(&tower(&layout, seed), &layout, Input::Rows);
        store.publish_latest(bytes, &layout, seed).await
    };
    let first = publish(1).await;
    let server = Server::start(&store, |config| config.game.name = "othello".into()).await;
    server.wait_for(&first).await;
    let connect = |model: String| {
        let address = server.address.clone();
        tokio::task::spawn_blocking(move || RemoteNetwork::connect(&address, &model).unwrap())
    };
    let evaluate = async |network: &Arc<RemoteNetwork>| {
        let network = network.clone();
        tokio::task::spawn_blocking(move || first_position(&network))
            .await
            .unwrap()
    };
    let by_label = Arc::new(connect("latest".into()).await.unwrap());
    let by_version = Arc::new(connect(first.to_string()).await.unwrap());
    let before = evaluate(&by_label).await.unwrap();
    assert_eq!(evaluate(&by_version).await.unwrap(), before);
    let second = publish(2).await;
    server.wait_for(&second).await;
    assert_ne!(evaluate(&by_label).await.unwrap(), before);
    let refused = evaluate(&by_version).await.unwrap_err();
    assert!(refused.to_string().contains(first.as_str()), "{refused}");
    drop((by_label, by_version));
    server.stop().await;
}

#[tokio::test]
async fn models_of_other_programs_are_served_by_their_descriptions() {
    let (store, layout) = (Store::new(), othello());
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
    for opset in [7, 9, 13, 17] {
        server.wait_for_model(&format!("foreign-{opset}")).await.unwrap();
    }
    let reply = server.evaluate(asked.clone()).await.unwrap();
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
        let asked = EvaluateRequest {
            model: format!("foreign-{opset}"),
            ..asked.clone()
        };
        let other = server.evaluate(asked).await.unwrap();
        assert_eq!((&other.values, &other.priors), (&reply.values, &reply.priors));
    }
    // A player in another process names the version that was described to it.
    for model in ["foreign-13", "foreign-13/latest"] {
        let address = server.address.clone();
        let values = tokio::task::spawn_blocking(move || {
            first_position(&RemoteNetwork::connect(&address, model).unwrap()).unwrap()
        });
        assert_eq!(values.await.unwrap().len(), 1, "{model}");
    }
    for (model, words) in [("broken", "nothing.onnx"), ("wrong", "mvoes")] {
        let refused = server.wait_for_model(model).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains(words), "{refused}");
    }
    server.stop().await;
}

/// A model's results, and its cache entries, depend on its description as well as on its file.
#[tokio::test]
async fn each_description_of_a_file_is_another_model() {
    let (store, layout) = (Store::new(), othello());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("net.onnx"), made_elsewhere(&layout, 13)).unwrap();
    let describe = |name: &str, kind: &str| {
        let text =
            format!("game='othello'\nfile='net.onnx'\npolicy='moves'\nvalue='outcome'\nvalue_kind='{kind}'");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    };
    describe("one", "win-draw-loss");
    describe("other", "win-draw-loss-logits");
    let server = Server::start(&store, |config| {
        config.inference.models = folder.path().into();
        config.inference.cache_mib = 1;
    })
    .await;
    let ask = async |model: &str| {
        server.wait_for_model(model).await.unwrap();
        let asked = EvaluateRequest {
            legal_actions: vec![64, 0, 7],
            legal_counts: vec![3],
            indices: onnx::random::rows(&layout, 1, 0.8, 1),
            model: model.into(),
            ..EvaluateRequest::default()
        };
        let reply = server.evaluate(asked).await.unwrap();
        (reply.version, reply.values[0])
    };
    let (one, other) = (ask("one").await, ask("other").await);
    assert!(one.0 != other.0 && one.1 != other.1, "{one:?} and {other:?}");
    // The second time from the cache.
    assert_eq!(
        (ask("one").await, ask("other").await),
        (one.clone(), other.clone())
    );
    server.stop().await;
}

/// Returns the body of a branch, or a graph, with one node whose output is that of the graph.
fn body(mut node: NodeProto, kind: DataType, initializer: Vec<TensorProto>) -> GraphProto {
    node.output = vec!["extra".into()];
    let tensor = type_proto::Tensor {
        elem_type: Some(kind as i32),
        ..Default::default()
    };
    let value = ValueInfoProto {
        name: Some("extra".into()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    };
    GraphProto {
        name: Some("body".into()),
        node: vec![node],
        output: vec![value],
        initializer,
        ..Default::default()
    }
}

fn scalar(name: &str, kind: DataType, dims: Vec<i64>, bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(kind as i32),
        dims,
        raw_data: Some(bytes.to_vec().into()),
        ..Default::default()
    }
}

fn node(kind: &str, input: &[&str], branches: &[(&str, &GraphProto)]) -> NodeProto {
    let attribute = branches.iter().map(|(name, branch)| AttributeProto {
        name: Some((*name).into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some((*branch).clone()),
        ..Default::default()
    });
    NodeProto {
        op_type: Some(kind.into()),
        input: input.iter().map(|&name| name.into()).collect(),
        attribute: attribute.collect(),
        ..Default::default()
    }
}

/// Returns a network of another program with the parts of `more` in its graph.
fn made_with(layout: &RowLayout, more: GraphProto) -> Bytes {
    let mut model = ModelProto::decode(&made_elsewhere(layout, 13)[..]).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.node.extend(more.node);
    graph.output.extend(more.output);
    graph.initializer.extend(more.initializer);
    model.encode_to_vec().into()
}

/// A model of another program cannot name other files, and what it takes is known before the server loads it.
#[tokio::test]
async fn a_foreign_model_that_reads_files_or_takes_too_much_is_refused() {
    let layout = othello();
    let numbers = |count: i64| scalar("side", DataType::Int64, vec![1], &count.to_le_bytes());
    let constant = |count: i64| {
        body(
            node("ConstantOfShape", &["side"], &[]),
            DataType::Float,
            vec![numbers(count)],
        )
    };
    let branch = constant(3 << 28);
    let inside = node(
        "If",
        &["yes"],
        &[("then_branch", &branch), ("else_branch", &branch)],
    );
    let inside = body(
        inside,
        DataType::Float,
        vec![scalar("yes", DataType::Bool, vec![], &[1])],
    );
    let outside = GraphProto {
        initializer: vec![TensorProto {
            data_location: Some(DataLocation::External as i32),
            ..numbers(1)
        }],
        ..Default::default()
    };
    let contract = Contract {
        policy: "moves".into(),
        value: "outcome".into(),
        value_kind: ValueKind::WinDrawLoss,
        ..Contract::default()
    };
    let trial = Trial {
        layout: layout.clone(),
        contract,
        memory: 64 << 20,
        memory_setting: "inference.memory_mib",
        time: trial::TIME,
    };
    // Memory of the tensors that a graph makes, in bytes, beyond that of a usual network: none for a constant of 4 MiB.
    let more = async |count| trial.run(&made_with(&layout, constant(count))).await.unwrap();
    assert_eq!(more(1 << 20).await, 0);
    assert!((100 << 20..300 << 20).contains(&more(25 << 20).await));
    for (more, words) in [
        (
            constant(3 << 28),
            "at most 64 MiB may be used: inference.memory_mib",
        ),
        (inside, "at most 64 MiB may be used: inference.memory_mib"),
        (outside, "lies in another file"),
    ] {
        let reason = trial.run(&made_with(&layout, more)).await.unwrap_err();
        assert!(reason.contains(words), "{reason}");
    }
    let hurried = Trial {
        time: std::time::Duration::ZERO,
        ..trial
    };
    let reason = hurried
        .run(&made_with(&layout, GraphProto::default()))
        .await
        .unwrap_err();
    assert!(reason.contains("took more than"), "{reason}");
}
