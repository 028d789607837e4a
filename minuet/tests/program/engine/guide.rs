//! Runs the Python client of docs/guide/programs.md (Open Inference Protocol) against a served model. Only the address is
//! replaced, because a test takes a free port.

use std::{path::Path, process::Command};

use config::RunConfig;
use games::{Game as _, RowLayout, Symmetry, connect_four::ConnectFour};
use onnx::{TowerShape, TowerWeights};

use crate::support::{program::printed, reference, served::Served};

/// The address in docs/guide/programs.md.
const ADDRESS: &str = "127.0.0.1:50051";

/// Returns the only block of Python in docs/guide/programs.md.
fn example(root: &Path) -> String {
    let page = std::fs::read_to_string(root.join("docs/guide/programs.md")).unwrap();
    let mut blocks = page.split("```python\n").skip(1);
    let block = blocks.next().unwrap();
    assert!(blocks.next().is_none(), "the page has several blocks of Python");
    block.split("```").next().unwrap().to_owned()
}

/// Returns the value and the priors of the position in the example, computed directly from the weights.
fn truth(layout: &RowLayout, weights: &TowerWeights) -> Vec<f32> {
    let mut state = ConnectFour::start(&Default::default(), None).unwrap();
    state.play_legal(3);
    let (mut row, mut actions) = (Vec::new(), Vec::new());
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    state.legal_actions(&mut actions);
    let stack = layout.stack().unwrap();
    let mut planes = vec![0.0; stack.tensor_len()];
    stack.expand(&row, &mut planes).unwrap();
    let (logits, value) = reference::tower::evaluate(weights, &planes);
    let exps: Vec<f32> = actions
        .iter()
        .map(|&action| {
            logits[state.policy_index(Default::default(), Symmetry::IDENTITY, action) as usize].exp()
        })
        .collect();
    let sum: f32 = exps.iter().sum();
    let mut numbers = vec![value];
    numbers.extend(exps.iter().map(|exp| exp / sum));
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_the_guide_runs_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let Some(python) = test_support::python("kserve") else {
        return;
    };
    let layout = ConnectFour::layout(Default::default());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    let folder = tempfile::tempdir().unwrap();
    let mut config = RunConfig::default();
    config.checkpoints.store = folder.path().to_str().unwrap().into();
    config.game.name = layout.game.clone();
    config.game.options = layout.options;
    let served = Served::start(config, &layout, &weights).await;

    // The example calls a program by its path in the repository; the test replaces it by the program that it was built with.
    let mut script = example(root);
    for (written, here) in [
        (ADDRESS, served.address.as_str()),
        ("target/release/minuet", env!("CARGO_BIN_EXE_minuet")),
    ] {
        assert_eq!(script.matches(written).count(), 1, "{written} in the example");
        script = script.replace(written, here);
    }
    let mut running = Command::new(python);
    running.args(["-c", &script]).current_dir(root);
    let running = tokio::task::spawn_blocking(move || printed(&mut running));
    let said = running.await.unwrap();
    let (answered, numbers) = said.split_once(' ').unwrap();
    assert_eq!(answered, served.version.as_str());
    let found: Vec<f32> = numbers
        .split(|letter: char| letter.is_whitespace() || "[]".contains(letter))
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect();
    let expected = truth(&layout, &weights);
    assert_eq!(found.len(), expected.len(), "{said}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-4, "{said}: {expected:?}");
    }
    served.stop().await;
}
