//! Every kind of name finds the same network, and an unusable name is refused with the reason.

use std::fs;

use arena::{Player, Spec};
use games::{connect_four::ConnectFour, registry};
use network::{ModelFile, ModelName};

use super::common;

fn find(name: &str) -> Result<ModelFile, String> {
    let name: ModelName = name.parse().unwrap();
    ModelFile::find(&name).map_err(|error| service::chain(&error).to_string())
}

#[test]
fn every_name_finds_the_same_network() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("runs/four");
    let version = common::run::<ConnectFour>(&run, 1);
    let place = run.to_str().unwrap();
    let truth = common::file::<ConnectFour>(1);
    let checkpoint = format!("{place}/checkpoints/versions/{version}");
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in ["manifest.json", "model.onnx"] {
        fs::copy(format!("{checkpoint}/{file}"), copy.join(file)).unwrap();
    }
    for name in [
        place.to_owned(),
        format!("{place}@latest"),
        format!("{place}@{version}"),
        format!("{place}/checkpoints"),
        format!("file://{place}/checkpoints@latest"),
        checkpoint.clone(),
        copy.to_str().unwrap().to_owned(),
        format!("{checkpoint}@{version}"),
    ] {
        let found = find(&name).unwrap();
        assert_eq!(found.version, version.as_str(), "{name}");
        assert_eq!((found.bytes == truth, found.step), (true, 7), "{name}");
    }
    let bare = find(&format!("{checkpoint}/model.onnx")).unwrap();
    assert_eq!((bare.version.as_str(), bare.step), ("model", 7));
    // The network comes with the search settings of its run.
    assert_eq!(find(place).unwrap().search.unwrap().exploration, 2.75);
}

#[test]
fn an_unusable_network_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let version = common::run::<ConnectFour>(&run, 1);
    let place = run.to_str().unwrap();
    let says = |name: &str, words: &str| {
        let said = find(name).unwrap_err();
        assert!(said.contains(words), "{said}");
    };
    says(&format!("{place}@best"), "has no `best`");
    says("/nowhere/run", "cannot read /nowhere/run");
    says("/nowhere/model.onnx", "cannot read /nowhere/model.onnx");
    says(folder.path().to_str().unwrap(), "is neither a run's folder");
    let unused = folder.path().join("empty");
    fs::create_dir(&unused).unwrap();
    fs::write(unused.join("run.toml"), "").unwrap();
    says(unused.to_str().unwrap(), "is neither a run's folder");
    assert!(
        !unused.join("checkpoints").exists(),
        "the search for a network creates no folder"
    );
    let checkpoint = format!("{place}/checkpoints/versions/{version}");
    says(&format!("{checkpoint}@latest"), "leave out @latest");

    let text = folder.path().join("text.onnx");
    fs::write(&text, "no network").unwrap();
    says(text.to_str().unwrap(), "text.onnx: not an onnx file");
    let model = format!("{checkpoint}/model.onnx");
    let mut bytes = fs::read(&model).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&model, bytes).unwrap();
    says(&checkpoint, "is damaged: its sha-256 is");
    says(place, "is damaged: its sha-256 is");
}

#[test]
fn a_player_of_another_game_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    common::run::<ConnectFour>(&run, 1);
    let mut networks = common::networks();
    let mut says = |text: &str, words: &str| {
        let spec: Spec = text.parse().unwrap();
        let othello = registry::find("othello").unwrap();
        let said = Player::open(othello, &spec, &mut networks)
            .unwrap_err()
            .to_string();
        assert!(said.contains(words), "{said}");
    };
    says(run.to_str().unwrap(), "plays connect-four, not othello");
    says("perfect", "a perfect player plays connect-four only, not othello");
    says("luna,visits=9", "luna plays paco-sako only, not othello");
    says("uci:engine", "a UCI engine plays chess only, not othello");
}
