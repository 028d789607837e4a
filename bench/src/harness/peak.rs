//! The greatest speed of a provider: products of large matrices in a process of their own, which a network's speed is compared with.

use std::{
    hint::black_box,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use config::Provider;
use network::provider::{self, Settings};
use onnx::{
    graph::{Graph, Side},
    proto::{ModelProto, OperatorSetIdProto, tensor_proto::DataType},
};
use ort::{session::Session, value::Tensor};
use prost::Message as _;

use super::child::DrivenChild;

/// Rows and columns of the matrices.
const SIDE: usize = 1024;
/// Products in one run.
const PRODUCTS: usize = 4;
/// Squares of a board, on which each convolution is computed.
const SQUARES: i64 = 64;

/// Arguments of the child process.
#[derive(clap::Args)]
pub struct Arguments {
    provider: String,
}

/// Starts the child process on the core of this thread. It counts floating-point operations in millions. `None` if `provider` is not
/// the name of a provider in its own precision.
///
/// # Errors
/// The process cannot be started, or the provider does not run there.
pub fn start(provider: &str) -> anyhow::Result<Option<DrivenChild>> {
    if named(provider).is_none() {
        return Ok(None);
    }
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["peak", provider]);
    DrivenChild::start(command).map(Some)
}

/// Does the work of the child process, as [`DrivenChild`] describes it.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let provider = named(&arguments.provider).context("there is no such provider")?;
    let environment = network::runtime::load(Path::new(""))?;
    let mut session = provider.load(&environment, &Settings::from(1), &products(), None, None)?;
    product(&mut session)?;
    println!("ready");
    let millions = 2 * (SIDE as u64).pow(3) * PRODUCTS as u64 / 1_000_000;
    for line in std::io::stdin().lines() {
        let time = Duration::from_secs_f64(line?.trim().parse()?);
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            product(&mut session)?;
            done += millions;
        }
        println!("{done}");
    }
    Ok(())
}

/// Returns the floating-point operations (an addition and a multiplication for each weight and square) that a tower needs for one
/// position.
///
/// # Errors
/// The bytes are not an ONNX file.
pub fn operations(file: &[u8]) -> anyhow::Result<f64> {
    let graph = ModelProto::decode(file)?
        .graph
        .context("the model has no graph")?;
    let sides = |name: &String| {
        let found = graph
            .initializer
            .iter()
            .find(|tensor| tensor.name.as_ref() == Some(name));
        found.map(|tensor| tensor.dims.iter().product::<i64>())
    };
    let weights = |node: &onnx::proto::NodeProto| node.input.get(1).and_then(sides).unwrap_or(0);
    let operations = graph.node.iter().map(|node| match node.op_type() {
        "Conv" => 2 * SQUARES * weights(node),
        "Gemm" | "MatMul" => 2 * weights(node),
        _ => 0,
    });
    Ok(operations.sum::<i64>() as f64)
}

fn named(provider: &str) -> Option<Provider> {
    Provider::each().find(|known| known.name() == provider)
}

/// Returns a model that multiplies a matrix by [`PRODUCTS`] constant ones.
fn products() -> Vec<u8> {
    let mut graph = Graph::new("peak");
    let sides = [Side::Fixed(SIDE), Side::Fixed(SIDE)];
    let mut value = graph.input("matrix", DataType::Float, &sides);
    for number in 0..PRODUCTS {
        // Small and different numbers, so that no product overflows and none is left out.
        let numbers: Vec<f32> = (0..SIDE * SIDE)
            .map(|at| (at * (number + 7) % 31) as f32 * 1e-3)
            .collect();
        let name = format!("factor{number}");
        let factor = graph.floats(&name, &[SIDE, SIDE], &numbers);
        value = graph.node("MatMul", &name, &[&value, &factor], &[]);
    }
    graph.output("product", &value, DataType::Float, &sides);
    let opset = OperatorSetIdProto {
        domain: Some(String::new()),
        version: Some(17),
    };
    ModelProto {
        ir_version: Some(9),
        opset_import: vec![opset],
        graph: Some(graph.finish()),
        ..ModelProto::default()
    }
    .encode_to_vec()
}

fn product(session: &mut Session) -> anyhow::Result<()> {
    let matrix = Tensor::from_array(([SIDE, SIDE], vec![1e-3_f32; SIDE * SIDE]))?;
    black_box(session.run(ort::inputs!["matrix" => matrix])?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_layers() {
        let (model, _) = super::super::model::find("connect-four", 0, None, (3, 16)).unwrap();
        let planes = model.layout.stack().unwrap().planes as i64;
        let blocks = 3 * 2 * 9 * 16 * 16;
        let found = operations(&model.bytes).unwrap();
        let least = 2 * SQUARES * (9 * planes * 16 + blocks);
        // The heads have far fewer weights than the tower.
        assert!(found > least as f64, "{found} {least}");
        assert!(found < 1.3 * least as f64, "{found} {least}");
    }
}
