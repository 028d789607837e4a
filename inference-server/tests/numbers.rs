//! Compares the outputs of ONNX Runtime with the row layout's expansion and a plain evaluation of the weights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "numbers/bound.rs"]
mod bound;
mod common;
#[path = "numbers/fish_eye.rs"]
mod fish_eye;
#[path = "numbers/int8.rs"]
mod int8;

use common::{chess, file, model_of, of_any_size, othello, small, tower};
use config::Provider;
use games::{Game, RowLayout, paco_sako::PacoSako};
use network::{
    ModelFile,
    batch::Batch,
    loader::{LoadError, Loader},
    model::Model,
    provider::{self, ProviderSettings},
};
use onnx::{
    Input, TowerShape, TowerWeights,
    graph::{Graph, Side},
    proto::tensor_proto::DataType,
};
use ort::value::Tensor;

fn layouts() -> Vec<RowLayout> {
    let games = [small(), chess(), othello()];
    games
        .into_iter()
        .chain((0..8).map(paco_sako))
        .chain(of_any_size())
        .collect()
}

fn paco_sako(options: u32) -> RowLayout {
    let encoding = PacoSako::encoding(&Default::default(), options);
    PacoSako::layout(encoding.unwrap())
}

/// Loads a file with the plain CPU provider.
fn session(file: &[u8]) -> ort::session::Session {
    let environment = network::runtime::load().unwrap();
    provider::load(Provider::Cpu, &environment, &1.into(), file, None, None).unwrap()
}

fn load_file(
    provider: Provider,
    settings: impl Into<ProviderSettings>,
    file: &ModelFile,
) -> Result<Model, LoadError> {
    Loader::new(settings, 64, provider)?.load(file)
}

fn model_file(bytes: &[u8], layout: &RowLayout) -> ModelFile {
    ModelFile {
        bytes: bytes.to_vec().into(),
        version: "test".into(),
        step: 5,
        layout: layout.clone(),
        search: None,
    }
}

fn load(provider: Provider, bytes: &[u8], layout: &RowLayout) -> Result<Model, LoadError> {
    load_file(provider, 1, &model_file(bytes, layout))
}

fn batch(layout: &RowLayout, rows: &[u32]) -> Batch {
    let rows = layout.split(rows);
    rows.map(|row| row.iter().map(|&number| number as i32)).collect()
}

/// Returns logits and values of some rows, without padding.
fn run(model: &Model, rows: &[u32]) -> (Vec<f32>, Vec<f32>) {
    let outputs = model.run(batch(&model.info.layout, rows)).unwrap();
    (outputs.logits().to_vec(), outputs.values().to_vec())
}

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let differences = left.iter().zip(right).map(|(left, right)| (left - right).abs());
    differences.fold(0.0, f32::max)
}

/// Expands rows with the layout's reference implementation.
fn expanded(layout: &RowLayout, rows: &[u32]) -> Vec<f32> {
    let stack = layout.stack().unwrap();
    let mut planes = vec![0.0; rows.len() / stack.row_len() * stack.tensor_len()];
    for (row, planes) in rows
        .chunks(stack.row_len())
        .zip(planes.chunks_mut(stack.tensor_len()))
    {
        stack.expand(row, planes).unwrap();
    }
    planes
}

/// Returns a model with the expansion only: input `indices`, output `planes`.
fn expansion(layout: &RowLayout) -> Vec<u8> {
    let stack = layout.stack().unwrap();
    let (batch, row) = (Side::Free("batch"), Side::Fixed(stack.row_len()));
    let [planes, height, width] = stack.shape().map(Side::Fixed);
    let mut graph = Graph::new("expansion");
    let rows = graph.input("indices", DataType::Int32, &[batch, row]);
    let expanded = onnx::expansion::expand(&mut graph, stack, &rows);
    graph.output(
        "planes",
        &expanded,
        DataType::Float,
        &[batch, planes, height, width],
    );
    model_of(graph, 9, 18)
}

#[test]
fn the_graphs_expansion_equals_the_layouts() {
    for layout in layouts() {
        let mut session = session(&expansion(&layout));
        for (size, filled) in [(1, 1.0), (7, 0.5), (64, 0.9)] {
            let rows = onnx::random::rows(&layout, size, filled, 3);
            let numbers: Vec<i32> = rows.iter().map(|&number| number as i32).collect();
            let input = Tensor::from_array(([size, layout.row_len().unwrap()], numbers)).unwrap();
            let outputs = session.run(ort::inputs!["indices" => input]).unwrap();
            let (shape, found) = outputs["planes"].try_extract_tensor::<f32>().unwrap();
            let [planes, height, width] = layout.stack().unwrap().shape().map(|side| side as i64);
            assert_eq!(shape[..], [size as i64, planes, height, width]);
            assert!(found == expanded(&layout, &rows), "{}", layout.game);
        }
    }
}

#[test]
fn a_towers_outputs_equal_its_plain_evaluation() {
    // The model has another output for win, draw and loss, which the server ignores.
    let heads = [(0, false), (5, true), (3, true)];
    for (layout, (pooling, outcomes)) in layouts().into_iter().zip(heads.into_iter().cycle()) {
        let shape = TowerShape {
            pooling,
            outcomes,
            ..TowerShape::new(&layout, 2, 12)
        };
        let weights = TowerWeights::random(&shape, 11);
        let model = load(Provider::Cpu, &file(&weights, &layout, Input::Rows), &layout).unwrap();
        let rows = onnx::random::rows(&layout, 2, 0.8, 5);
        let (logits, values) = run(&model, &rows);
        let planes = expanded(&layout, &rows);
        let (mut true_logits, mut true_values) = (Vec::new(), Vec::new());
        for planes in planes.chunks(layout.stack().unwrap().tensor_len()) {
            let (logits, value) = common::reference::tower::evaluate(&weights, planes);
            true_logits.extend(logits);
            true_values.push(value);
        }
        let spread = true_logits
            .iter()
            .fold(0.0_f32, |spread, logit| spread.max(logit.abs()));
        assert!(spread > 0.1, "the logits say nothing: {spread}");
        let difference = largest_difference(&logits, &true_logits);
        assert!(
            difference < 1e-4 * spread.max(1.0),
            "{}: {difference} of {spread}",
            layout.game
        );
        assert!(
            largest_difference(&values, &true_values) < 1e-4,
            "{}",
            layout.game
        );
    }
}

#[test]
fn a_dense_model_expanded_on_the_cpu_gives_equal_outputs() {
    for layout in layouts() {
        let weights = tower(&layout, 2);
        let rows = onnx::random::rows(&layout, 5, 0.8, 5);
        let [in_graph, dense] = [Input::Rows, Input::Planes].map(|input| {
            let model = load(Provider::Cpu, &file(&weights, &layout, input), &layout).unwrap();
            run(&model, &rows)
        });
        assert!(largest_difference(&in_graph.0, &dense.0) < 1e-5);
        assert!(largest_difference(&in_graph.1, &dense.1) < 1e-5);
    }
}

#[test]
fn a_single_row_gives_the_outputs_of_a_batch_of_64() {
    let layout = small();
    let shape = TowerShape::new(&layout, 3, 32);
    let weights = TowerWeights::random(&shape, 11);
    let model = load(Provider::Cpu, &file(&weights, &layout, Input::Rows), &layout).unwrap();
    let rows = onnx::random::rows(&layout, 64, 0.8, 5);
    let (logits, values) = run(&model, &rows);
    for (number, row) in rows.chunks(layout.row_len().unwrap()).enumerate() {
        let alone = run(&model, row);
        let actions = layout.actions as usize;
        let together = &logits[number * actions..(number + 1) * actions];
        assert!(largest_difference(&alone.0, together) < 1e-5);
        assert!(largest_difference(&alone.1, &values[number..=number]) < 1e-5);
    }
}

#[test]
fn every_available_provider_agrees_with_f32_within_its_bound() {
    let layout = paco_sako(0);
    let shape = TowerShape::new(&layout, 4, 32);
    let weights = TowerWeights::random(&shape, 7);
    let file = file(&weights, &layout, Input::Rows);
    let rows = onnx::random::rows(&layout, 64, 0.8, 9);
    let truth = run(&load(Provider::Cpu, &file, &layout).unwrap(), &rows);
    for backend in Provider::each() {
        if let Err(error) = provider::check(backend) {
            // A provider that is not available must be refused, not replaced.
            let refused = load(backend, &file, &layout).unwrap_err().to_string();
            assert!(refused.contains(&error.reason), "{refused}");
            continue;
        }
        // Loading checks the bound; this test checks that the check compares the correct numbers.
        let loaded = match load(backend, &file, &layout) {
            Ok(loaded) => loaded,
            Err(error) if backend == Provider::OpenvinoBf16 => {
                let error = error.to_string();
                assert!(error.contains("has no bf16 units"), "{error}");
                continue;
            }
            Err(error) => panic!("{backend}: {error}"),
        };
        let (logits, values) = run(&loaded, &rows);
        let of_logits = largest_difference(&truth.0, &logits);
        let of_values = largest_difference(&truth.1, &values);
        println!("{backend}: largest difference of a logit {of_logits}, of a value {of_values}");
        let bound = if matches!(backend, Provider::Cpu | Provider::OpenvinoF32) {
            1e-3
        } else {
            0.5
        };
        assert!(of_logits < bound && of_values < bound, "{backend}");
    }
}

#[test]
fn auto_chooses_a_provider_and_keeps_it() {
    let layout = small();
    let loader = Loader::new(1, 8, Provider::Auto).unwrap();
    let provider = |seed| {
        let bytes = file(&tower(&layout, seed), &layout, Input::Rows);
        loader.load(&model_file(&bytes, &layout)).unwrap().info.provider
    };
    let first = provider(1);
    assert!(Provider::each().any(|backend| backend.name() == first));
    assert_eq!(provider(2), first);
}

#[test]
fn auto_takes_the_order_that_an_earlier_start_measured() {
    let layout = small();
    let model = model_file(&file(&tower(&layout, 1), &layout, Input::Rows), &layout);
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("providers.json");
    let chosen = || {
        let loader = Loader::new(1, 8, Provider::Auto).unwrap();
        let loader = loader.keeping_choices(Some(folder.path().into()));
        loader.load(&model).unwrap().info.provider
    };
    let orders = || serde_json::from_slice::<serde_json::Value>(&std::fs::read(&kept).unwrap()).unwrap();
    chosen();
    // An order that no measurement gives: a provider that is not measured is in front, and fails or is right.
    let mut changed = orders();
    changed[0]["ranking"] = serde_json::json!(["tensorrt", "cpu"]);
    std::fs::write(&kept, changed.to_string()).unwrap();
    assert!(["tensorrt", "cpu"].contains(&chosen()));
    assert_eq!(orders(), changed, "nothing was measured");
    // Another machine's order does not count, and a damaged file is measured anew.
    let mut others = changed.clone();
    others[0]["conditions"]["processor"] = "abacus".into();
    for text in [others.to_string(), "{".into()] {
        std::fs::write(&kept, text).unwrap();
        chosen();
        let own = orders().as_array().unwrap().last().unwrap().clone();
        assert_eq!(own["conditions"], changed[0]["conditions"]);
        assert_ne!(own["ranking"], changed[0]["ranking"]);
    }
    // A named provider asks nobody.
    std::fs::remove_file(&kept).unwrap();
    let loader = Loader::new(1, 8, Provider::Cpu).unwrap();
    let loader = loader.keeping_choices(Some(folder.path().into()));
    assert_eq!(loader.load(&model).unwrap().info.provider, "cpu");
    assert!(!kept.exists());
}

#[test]
fn unusable_models_are_refused_with_a_reason() {
    let layout = small();
    let weights = tower(&layout, 1);
    let refused = |bytes: &[u8], layout: &RowLayout| {
        service::chain(&load(Provider::Cpu, bytes, layout).unwrap_err()).to_string()
    };

    let good = file(&weights, &layout, Input::Rows);
    assert!(refused(&good[..good.len() / 2], &layout).contains("onnx file"));
    assert!(refused(b"nonsense", &layout).contains("onnx file"));

    let other = RowLayout {
        mirrored_actions: false,
        ..layout.clone()
    };
    assert!(refused(&good, &other).contains("row layout"));

    assert!(refused(&expansion(&layout), &layout).contains("policy_logits"));

    // Finite weights with outputs that are not finite.
    let mut huge = weights;
    for name in ["value.output", "policy.linear"] {
        huge.layer_mut(name).unwrap().weights.fill(3e38);
    }
    for name in ["value.hidden", "policy.conv"] {
        huge.layer_mut(name).unwrap().bias.fill(3e38);
    }
    let huge = file(&huge, &layout, Input::Rows);
    assert!(refused(&huge, &layout).contains("not finite"));
}

#[test]
fn a_whole_chess_evaluation_stays_below_256_bytes() {
    use prost::Message as _;
    let layout = chess();
    // A full board takes most bytes, because a missing piece repeats the first index, which is small.
    let pieces = [8, 2, 2, 2, 1, 1, 8, 2, 2, 2, 1, 1];
    let mut row: Vec<u32> = (0..12)
        .flat_map(|plane| (0..pieces[plane as usize]).map(move |piece| 64 * plane + 8 + piece))
        .collect();
    // No en-passant square; then repetitions, colour, castling rights, the counter.
    row.extend([row[0], 0, 0, 1, 1, 1, 1, 1, 99]);
    layout.validate(&row).unwrap();
    let request = proto::v1::EvaluateRequest {
        id: 1000,
        indices: row,
        // Actions of two bytes each.
        legal_actions: (layout.actions - 35..layout.actions).collect(),
        legal_counts: vec![35],
        ..Default::default()
    };
    let reply = proto::v1::EvaluateReply {
        id: request.id,
        version: "000000001200-3fa94c21".into(),
        values: vec![0.25],
        priors: proto::priors::encode(&[0.1; 35]),
        error: None,
    };
    let bytes = request.encoded_len() + reply.encoded_len();
    assert!(bytes < 256, "{bytes} bytes");
}
