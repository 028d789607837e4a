//! Generates the wire types, and the tables of [`unpacked`](src/bounded/unpacked.rs). protox compiles the `.proto` files, so that
//! building needs no protoc.

use std::{error::Error, fmt::Write as _, fs, path::PathBuf};

use prost::Message as _;
use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use tonic_prost_build::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let own = [
        "minuet/v1/evaluator.proto",
        "minuet/v1/replay.proto",
        "minuet/v1/analysis.proto",
    ];
    let standard = ["inference/grpc_service.proto"];
    let files = [&own[..], &standard].concat();
    for file in &files {
        println!("cargo::rerun-if-changed={file}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let descriptors = protox::compile(files, ["."])?;
    // Each role reflects its own services only.
    let evaluation = protox::compile([own[0], standard[0]], ["."])?;
    fs::write(out.join("evaluation.bin"), evaluation.encode_to_vec())?;
    for (file, name) in [(own[1], "replay.bin"), (own[2], "analysis.bin")] {
        fs::write(out.join(name), protox::compile([file], ["."])?.encode_to_vec())?;
    }
    let wire = tonic_prost_build::configure()
        .bytes(".")
        .codec_path("crate::bounded::BoundedCodec");
    with_json(wire).compile_fds(descriptors.clone())?;
    let pool = DescriptorPool::from_file_descriptor_set(descriptors)?;
    fs::write(out.join("shapes.rs"), shapes(&pool)?)?;
    Ok(())
}

/// Gives the messages of the analysis service the form of JSON lines that `minuet analyze` writes.
fn with_json(mut wire: Builder) -> Builder {
    for message in [
        "AnalyzeReply",
        "PositionAnalysis",
        "AnalyzedMove",
        "MovePrior",
        "MoveValue",
        "AnalysisNode",
        "AnalysisModel",
        "AnalysisQuery",
    ] {
        wire = wire.type_attribute(format!("minuet.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    wire = wire
        .type_attribute(
            "minuet.v1.AnalysisQuery",
            "#[derive(serde::Deserialize)] #[serde(default)]",
        )
        .field_attribute("minuet.v1.AnalyzeReply.id", "#[serde(skip)]")
        .field_attribute("minuet.v1.AnalyzeReply.answer", "#[serde(flatten)]");
    for (message, fields, is_unset) in [
        (
            "AnalyzeReply",
            &["turn", "partial", "cancelled", "error"][..],
            "Option::is_none",
        ),
        ("PositionAnalysis", &["priors", "values", "tree"], "Vec::is_empty"),
        ("AnalysisQuery", &["turns"], "Vec::is_empty"),
    ] {
        for field in fields {
            let attribute = format!("#[serde(skip_serializing_if = \"{is_unset}\")]");
            wire = wire.field_attribute(format!("minuet.v1.{message}.{field}"), attribute);
        }
    }
    for message in ["AnalyzedMove", "MovePrior", "MoveValue"] {
        let attribute = "#[serde(serialize_with = \"crate::write_json\")]";
        wire = wire.field_attribute(format!("minuet.v1.{message}.action"), attribute);
    }
    wire
}

/// Returns the table of all messages, and the place of each message in it.
fn shapes(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let messages: Vec<MessageDescriptor> = pool.all_messages().collect();
    let mut text = String::from("static SHAPES: &[Shape] = &[\n");
    for message in &messages {
        writeln!(text, "    // {}", message.full_name())?;
        text.push_str("    Shape { fields: &[");
        let mut fields: Vec<FieldDescriptor> = message.fields().collect();
        fields.sort_by_key(FieldDescriptor::number);
        for field in fields {
            let nested = match field.kind() {
                Kind::Message(nested) => messages.iter().position(|message| *message == nested),
                _ => None,
            };
            let (tag, (each, for_each_byte)) = (field.number(), cost(&field));
            write!(
                text,
                "Field {{ tag: {tag}, each: {each}, for_each_byte: {for_each_byte}, nested: {nested:?} }}, "
            )?;
        }
        text.push_str("] },\n");
    }
    text.push_str("];\n");
    let whole = messages.iter().enumerate();
    for (at, message) in whole.filter(|(_, message)| message.parent_message().is_none()) {
        let path = message
            .full_name()
            .replace("minuet.v1.", "v1::")
            .replace("inference.", "inference::");
        writeln!(
            text,
            "impl Shaped for crate::{path} {{ const SHAPE: usize = {at}; }}"
        )?;
    }
    Ok(text)
}

/// Returns the memory of one occurrence of a field, and that of each of its bytes, beyond the message's own.
fn cost(field: &FieldDescriptor) -> (usize, usize) {
    if !field.is_list() && !field.is_map() {
        return (0, usize::from(field.kind() == Kind::String));
    }
    // A table of a map has up to twice the room of its entries.
    let copies = if field.is_map() { 2 } else { 1 };
    match field.kind() {
        Kind::String => (24, 1),
        Kind::Bytes => (32, 0),
        Kind::Message(entry) => (copies * size(&entry), 0),
        Kind::Double | Kind::Float => (0, 1),
        Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => (0, 8),
        _ => (0, 4),
    }
}

/// Returns the size of a message's type in memory, in bytes, rounded up.
fn size(message: &MessageDescriptor) -> usize {
    let field_size = |field: FieldDescriptor| match field.kind() {
        _ if field.is_map() => 48,
        _ if field.is_list() => 24,
        Kind::Message(nested) => 8 + size(&nested),
        Kind::Bytes => 32,
        Kind::String => 24,
        _ => 16,
    };
    message.fields().map(field_size).sum()
}
