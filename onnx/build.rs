//! Generates the types of `onnx.proto` (as ONNX 1.23.2 ships it) with protox; no protoc is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=onnx.proto");
    let descriptors = protox::compile(["onnx.proto"], ["."])?;
    prost_build::Config::new()
        // Its comments hold indented text that rustdoc would take for code.
        .disable_comments(["."])
        .bytes(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
