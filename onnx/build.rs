//! Generates the types of `onnx.proto` (of ONNX 1.23.2). protox compiles the file, so that building needs no protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=onnx.proto");
    let descriptors = protox::compile(["onnx.proto"], ["."])?;
    prost_build::Config::new()
        // The file's comments contain indented text, which rustdoc would take for code.
        .disable_comments(["."])
        .bytes(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
