//! Random bytes for the readers of ONNX files.

#![allow(clippy::unwrap_used)]

use games::{Game as _, connect_four::ConnectFour};
use onnx::{
    Metadata, half::to_half, legal::with_legal_logits, metadata_of, model, one_file, random, tower_of,
};
use test_support::fuzz;

#[test]
fn fuzz_onnx_files() {
    let layout = ConnectFour::layout(Default::default());
    let file = random::model(&Metadata { layout, step: 7 }, 1, 2, 1).unwrap();
    fuzz("ONNX metadata", &[&file], |bytes| metadata_of(bytes).is_ok());
    fuzz("ONNX in one file", &[&file], |bytes| {
        one_file::check(bytes).is_ok()
    });
    fuzz("ONNX to weights", &[&file], |bytes| tower_of(bytes).is_ok());
    fuzz("ONNX to half precision", &[&file], |bytes| to_half(bytes).is_ok());
    fuzz("ONNX with legal logits", &[&file], |bytes| {
        with_legal_logits(bytes, model::POLICY).is_ok()
    });
}
