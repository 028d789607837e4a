//! Random text for the readers of model names and of descriptions beside models.

use std::{path::Path, str::from_utf8};

use games::{Game as _, chess::Chess};
use test_support::fuzz;

use crate::{ModelName, sidecar};

#[test]
fn fuzz_sidecars() {
    let named = b"game = \"chess\"\nfile = \"model.onnx\"\npolicy = \"policy\"\nvalue = \"value\"\n";
    let layout = serde_json::to_value(Chess::encoding(0).map(Chess::layout).unwrap());
    let written = format!("[layout]\n{}", toml::to_string(&layout.unwrap()).unwrap());
    fuzz(
        "sidecar",
        &[b"game = \"chess\"\n", named, written.as_bytes()],
        |bytes| from_utf8(bytes).is_ok_and(|text| sidecar::parse(Path::new("model.toml"), text).is_ok()),
    );
}

#[test]
fn fuzz_model_names() {
    fuzz(
        "model name",
        &[b"latest", b"chess:latest", b"1234567890abcdef"],
        |bytes| from_utf8(bytes).is_ok_and(|text| text.parse::<ModelName>().is_ok()),
    );
}
