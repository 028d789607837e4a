//! Tests of the contents of written files, without a runtime. (Tests of the inference server run such files.)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use games::{
    ConstantPlane, Game as _, PlaneStack, PolicyHead, RowForm, RowLayout,
    generator::{Encoding, GeneratorGame},
};
use onnx::{
    Input, Metadata, OnnxError, PolicyShape, TowerShape, TowerWeights, build,
    half::to_half,
    metadata_of, model,
    proto::{ModelProto, tensor_shape_proto::dimension, type_proto},
    random, tower_of,
};
use prost::Message as _;

fn constant(plane: u32, divisor: u32, max: u32) -> ConstantPlane {
    ConstantPlane {
        name: format!("constant {plane}"),
        plane,
        divisor,
        max,
    }
}

/// Squares of a plane of [`mixed`].
const SQUARES: u32 = 35;

/// Returns a layout with constant planes and planes of ones between the sparse ones. The policy has planes if the actions suffice.
fn mixed(actions: u32) -> RowLayout {
    RowLayout {
        game: "mixed".into(),
        options: 3,
        form: RowForm::Planes(PlaneStack {
            height: 5,
            width: 7,
            entries: 6,
            planes: 7,
            sparse: vec![0, 2, 5],
            constants: vec![constant(6, 100, 100), constant(1, 1, 1), constant(4, 1, 1)],
            ones: vec![3],
        }),
        actions,
        mirrored_actions: false,
        policy_head: match actions {
            ..SQUARES => PolicyHead::Dense,
            _ => PolicyHead::Planes,
        },
    }
}

fn metadata(actions: u32) -> Metadata {
    Metadata {
        layout: mixed(actions),
        step: 1200,
    }
}

#[test]
fn weights_are_read_back_as_they_were_written() {
    for (actions, pooling, outcomes) in [
        (9, 0, false),
        (2 * SQUARES, 3, true),
        (SQUARES + 2, 0, true),
        (9, 2, true),
    ] {
        let metadata = metadata(actions);
        let shape = TowerShape {
            pooling,
            outcomes,
            ..TowerShape::new(&metadata.layout, 3, 8)
        };
        let weights = TowerWeights::random(&shape, 1);
        let file = build(&weights, &metadata, Input::Rows).unwrap();
        assert_eq!(tower_of(&file).unwrap(), (weights.clone(), metadata));

        // Numbers of half precision have eleven bits.
        let (rounded, _) = tower_of(&to_half(&file).unwrap()).unwrap();
        assert_ne!(rounded, weights);
        let numbers = [&rounded, &weights].map(|weights| &weights.layer("input").weights);
        for (rounded, weight) in numbers[0].iter().zip(numbers[1]) {
            assert!(
                (rounded - weight).abs() <= weight.abs() / 2048.0 + 1e-7,
                "{rounded} {weight}"
            );
        }
    }
}

#[test]
fn files_that_hold_no_tower_are_refused() {
    let metadata = metadata(9);
    let shape = TowerShape::new(&metadata.layout, 2, 8);
    let weights = TowerWeights::random(&shape, 1);
    let mut model = ModelProto::decode(build(&weights, &metadata, Input::Rows).unwrap().as_slice()).unwrap();
    let tensors = &mut model.graph.as_mut().unwrap().initializer;
    let bias = tensors
        .iter()
        .position(|tensor| tensor.name() == "value.hidden.bias")
        .unwrap();
    let removed = tensors.remove(bias);
    let refused = |file: &[u8], words: &str| {
        let error = tower_of(file).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&model.encode_to_vec(), "no floats `value.hidden.bias`");

    let mut flat = removed.clone();
    flat.dims = vec![removed.dims[0], 1];
    model.graph.as_mut().unwrap().initializer.push(flat);
    refused(&model.encode_to_vec(), "has the dimensions [64, 1]");

    let layout = GeneratorGame::layout(Encoding::Plain);
    let fish_eye = random::model(&Metadata { layout, step: 0 }, 1, 4, 1).unwrap();
    refused(&fish_eye, "the rows of generator are not planes");
}

#[test]
fn nodes_come_in_order_and_names_are_unique() {
    for (actions, pooling, outcomes, input) in [
        (9, 0, false, Input::Rows),
        (2 * SQUARES, 3, true, Input::Rows),
        (SQUARES + 2, 3, true, Input::Rows),
        (9, 2, true, Input::Planes),
    ] {
        let metadata = metadata(actions);
        let shape = TowerShape {
            pooling,
            outcomes,
            ..TowerShape::new(&metadata.layout, 2, 8)
        };
        let weights = TowerWeights::random(&shape, 1);
        let file = build(&weights, &metadata, input).unwrap();
        let graph = ModelProto::decode(file.as_slice()).unwrap().graph.unwrap();

        let mut known = HashSet::new();
        let mut names = HashSet::new();
        for value in &graph.input {
            assert!(known.insert(value.name().to_owned()));
        }
        for tensor in &graph.initializer {
            assert!(known.insert(tensor.name().to_owned()), "{} twice", tensor.name());
            let count: i64 = tensor.dims.iter().product();
            let size = if tensor.data_type() == 7 { 8 } else { 4 };
            assert_eq!(tensor.raw_data().len() as i64, count * size, "{}", tensor.name());
        }
        for node in &graph.node {
            assert!(names.insert(node.name().to_owned()), "{} twice", node.name());
            for input in &node.input {
                assert!(known.contains(input), "{} takes {input} too early", node.name());
            }
            for output in &node.output {
                assert!(known.insert(output.clone()), "{output} twice");
            }
        }
        for output in &graph.output {
            assert!(known.contains(output.name()));
        }
    }
}

#[test]
fn inputs_and_outputs_follow_the_contract() {
    let metadata = metadata(9);
    let plain = TowerShape::new(&metadata.layout, 1, 8);
    let contract = [
        "indices: batch × 9",
        "policy_logits: batch × 9",
        "value: batch × 1",
        "wdl: batch × 3",
    ];
    assert_eq!(named_sides(&metadata, &plain), contract[..3]);
    let with_outcomes = TowerShape {
        outcomes: true,
        ..plain
    };
    assert_eq!(named_sides(&metadata, &with_outcomes), contract);
}

/// Lists inputs and outputs of a model of this shape with their axes.
fn named_sides(metadata: &Metadata, shape: &TowerShape) -> Vec<String> {
    let weights = TowerWeights::random(shape, 1);
    let file = build(&weights, metadata, Input::Rows).unwrap();
    assert_eq!(metadata_of(&file).unwrap(), *metadata);
    let graph = ModelProto::decode(file.as_slice()).unwrap().graph.unwrap();
    let sides = graph.input.iter().chain(&graph.output).map(|value| {
        let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_ref().unwrap().value.as_ref()
        else {
            panic!("no tensor")
        };
        let sides = tensor.shape.as_ref().unwrap().dim.iter();
        let sides = sides.map(|dim| match dim.value.as_ref().unwrap() {
            dimension::Value::DimParam(name) => name.clone(),
            dimension::Value::DimValue(size) => size.to_string(),
        });
        format!("{}: {}", value.name(), sides.collect::<Vec<_>>().join(" × "))
    });
    sides.collect()
}

#[test]
fn build_refuses_weights_that_do_not_fit() {
    let metadata = metadata(9);
    let shape = TowerShape {
        pooling: 3,
        outcomes: true,
        ..TowerShape::new(&metadata.layout, 2, 8)
    };
    let good = TowerWeights::random(&shape, 1);
    let refused = |change: &dyn Fn(&mut TowerWeights)| {
        let mut weights = good.clone();
        change(&mut weights);
        build(&weights, &metadata, Input::Rows).unwrap_err()
    };
    for layer in ["block1.second", "block0.first.pooled.linear", "value.output"] {
        let error = refused(&|weights| weights.layer_mut(layer).unwrap().shape.outputs = 2);
        assert!(error.to_string().starts_with(&format!("{layer}: ")), "{error}");
    }
    let error = refused(&|weights| weights.layer_mut("input").unwrap().weights[3] = f32::NAN);
    assert_eq!(error, OnnxError::NotFinite("input".into()));
    type Change = fn(&mut TowerWeights);
    let changes: [(Change, &str); 5] = [
        (
            |weights| weights.layer_mut("value.hidden").unwrap().bias.truncate(63),
            "value.hidden: 63 biases, 64 expected",
        ),
        (|weights| weights.shape.actions = 8, "8 logits"),
        (
            |weights| {
                let (planes, globals) = (2, 1);
                weights.shape.policy = PolicyShape::Planes { planes, globals };
            },
            "71 logits",
        ),
        (|weights| weights.shape.width = 8, "8 files, the layout needs 7"),
        (|weights| drop(weights.layers.pop()), "layers, "),
    ];
    for (change, words) in changes {
        let error = refused(&change).to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Shapes are stored with checkpoints, and older versions wrote no number of global actions.
#[test]
fn the_policy_of_a_shape_follows_the_layout_and_is_read_as_older_versions_wrote_it() {
    for (actions, planes, globals, written) in [
        (SQUARES, 1, 0, r#"{"planes":{"planes":1}}"#),
        (2 * SQUARES + 3, 2, 3, r#"{"planes":{"planes":2,"globals":3}}"#),
    ] {
        let shape = TowerShape::new(&mixed(actions), 1, 8);
        assert_eq!((shape.height, shape.width), (5, 7));
        assert_eq!(shape.policy, PolicyShape::Planes { planes, globals });
        assert_eq!(serde_json::to_string(&shape.policy).unwrap(), written);
        assert_eq!(
            serde_json::from_str::<PolicyShape>(written).unwrap(),
            shape.policy
        );
    }
}

#[test]
fn invalid_metadata_is_refused() {
    assert!(metadata_of(b"no onnx file").is_err());
    let bare = ModelProto::default().encode_to_vec();
    assert!(metadata_of(&bare).is_err());
    let mut twice = mixed(9);
    if let RowForm::Planes(stack) = &mut twice.form {
        stack.ones = vec![2];
    }
    let twice = serde_json::to_string(&twice).unwrap();
    assert!(model::parse_metadata(&twice, Some("5")).is_err());
    let good = serde_json::to_string(&mixed(9)).unwrap();
    assert!(model::parse_metadata(&good, Some("five")).is_err());
    assert_eq!(model::parse_metadata(&good, None).unwrap().step, 0);
}

#[test]
fn random_rows_are_valid_rows_of_the_layout() {
    let layout = mixed(9);
    let rows = random::rows(&layout, 200, 0.7, 5);
    assert_eq!(rows.len(), 200 * layout.row_len().unwrap());
    for row in rows.chunks(layout.row_len().unwrap()) {
        layout.validate(row).unwrap();
    }
    assert_eq!(rows, random::rows(&layout, 200, 0.7, 5));
}
