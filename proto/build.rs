//! Generates the wire types. protox compiles the `.proto` files, so that building needs no protoc.

use std::{error::Error, fs, path::PathBuf};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let own = ["minuet/v1/evaluator.proto", "minuet/v1/replay.proto"];
    let standard = ["inference/grpc_service.proto"];
    let files = [&own[..], &standard].concat();
    for file in &files {
        println!("cargo::rerun-if-changed={file}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let descriptors = protox::compile(files, ["."])?;
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".")
        .compile_fds(protox::compile(own, ["."])?)?;
    tonic_prost_build::configure()
        .bytes(".")
        .codec_path("crate::bounded::BoundedCodec")
        .compile_fds(protox::compile(standard, ["."])?)?;
    Ok(())
}
