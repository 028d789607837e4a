//! Checks that a model of another program is one file: nothing in it names a second file for the runtime to open.

use prost::Message as _;

use crate::{
    file::OnnxError,
    proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto},
};

/// Largest depth of graphs in graphs, the bodies of `If`, `Loop` and `Scan`.
const MAX_DEPTH: usize = 8;
/// Name in the fifth to eighth byte of a file in the runtime's own format, which this check does not read.
const RUNTIME_FORMAT: &[u8] = b"ORTM";

/// Checks every tensor, attribute and node of a file: those of its graph, of graphs in it, of its functions and of its training.
///
/// # Errors
/// [`OnnxError`] that names the first part that lies in another file, or is too deep in other graphs; or the bytes are not an ONNX file.
pub fn check(file: &[u8]) -> Result<(), OnnxError> {
    if file.get(4..8) == Some(RUNTIME_FORMAT) {
        return Err(OnnxError::new(
            "the file has the format of onnx runtime, an onnx file is expected",
        ));
    }
    let model =
        ModelProto::decode(file).map_err(|error| OnnxError::new(format!("not an onnx file: {error}")))?;
    let training = model.training_info.iter();
    let training = training.flat_map(|info| info.initialization.iter().chain(&info.algorithm));
    model
        .graph
        .iter()
        .chain(training)
        .try_for_each(|body| graph(body, 0))?;
    model.functions.iter().try_for_each(|function| {
        attributes(&function.attribute_proto, 0)?;
        nodes(&function.node, 0)
    })
}

fn graph(graph: &GraphProto, depth: usize) -> Result<(), OnnxError> {
    if depth > MAX_DEPTH {
        let reason = format!("more than {MAX_DEPTH} graphs lie in one another");
        return Err(OnnxError::new(reason));
    }
    graph.initializer.iter().try_for_each(tensor)?;
    graph.sparse_initializer.iter().try_for_each(sparse)?;
    nodes(&graph.node, depth)
}

fn nodes(nodes: &[NodeProto], depth: usize) -> Result<(), OnnxError> {
    nodes.iter().try_for_each(|node| {
        // The attributes of an `EPContext` node name a file with a compiled model.
        if node.op_type() == "EPContext" {
            return Err(outside(node.name()));
        }
        attributes(&node.attribute, depth)
    })
}

fn attributes(attributes: &[AttributeProto], depth: usize) -> Result<(), OnnxError> {
    attributes.iter().try_for_each(|attribute| {
        let graphs = attribute.g.iter().chain(&attribute.graphs);
        let sparses = attribute.sparse_tensor.iter().chain(&attribute.sparse_tensors);
        attribute
            .t
            .iter()
            .chain(&attribute.tensors)
            .try_for_each(tensor)?;
        sparses.into_iter().try_for_each(sparse)?;
        graphs.into_iter().try_for_each(|body| graph(body, depth + 1))
    })
}

fn sparse(sparse: &SparseTensorProto) -> Result<(), OnnxError> {
    sparse.values.iter().chain(&sparse.indices).try_for_each(tensor)
}

fn tensor(tensor: &TensorProto) -> Result<(), OnnxError> {
    let is_inside = tensor.data_location.unwrap_or_default() == 0 && tensor.external_data.is_empty();
    is_inside.then_some(()).ok_or_else(|| outside(tensor.name()))
}

fn outside(name: &str) -> OnnxError {
    OnnxError::new(format!(
        "`{name}` lies in another file; a model must be one file: save it with its data inside"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{FunctionProto, StringStringEntryProto, TrainingInfoProto};

    fn holder(attribute: AttributeProto) -> GraphProto {
        GraphProto {
            node: vec![NodeProto {
                attribute: vec![attribute],
                ..NodeProto::default()
            }],
            ..GraphProto::default()
        }
    }

    fn inside(body: GraphProto) -> GraphProto {
        holder(AttributeProto {
            g: Some(body),
            ..AttributeProto::default()
        })
    }

    fn refused(model: ModelProto) -> String {
        check(&model.encode_to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn tensors_of_other_files_are_refused_wherever_they_are() {
        let location = StringStringEntryProto {
            key: Some("location".into()),
            value: Some("../../../etc/passwd".into()),
        };
        let by_data = TensorProto {
            name: Some("w".into()),
            external_data: vec![location],
            ..TensorProto::default()
        };
        let by_location = TensorProto {
            name: Some("w".into()),
            data_location: Some(1),
            ..TensorProto::default()
        };
        for outer in [by_data, by_location] {
            let sparse = SparseTensorProto {
                indices: Some(outer.clone()),
                ..SparseTensorProto::default()
            };
            let empty = AttributeProto::default;
            let graphs = [
                GraphProto {
                    initializer: vec![outer.clone()],
                    ..GraphProto::default()
                },
                GraphProto {
                    sparse_initializer: vec![sparse.clone()],
                    ..GraphProto::default()
                },
                holder(AttributeProto {
                    t: Some(outer.clone()),
                    ..empty()
                }),
                holder(AttributeProto {
                    tensors: vec![outer.clone()],
                    ..empty()
                }),
                holder(AttributeProto {
                    sparse_tensor: Some(sparse.clone()),
                    ..empty()
                }),
                holder(AttributeProto {
                    sparse_tensors: vec![sparse],
                    ..empty()
                }),
            ];
            for graph in graphs {
                let nested = holder(AttributeProto {
                    graphs: vec![inside(graph.clone())],
                    ..empty()
                });
                let function = FunctionProto {
                    node: graph.node.clone(),
                    attribute_proto: inside(graph.clone()).node.remove(0).attribute,
                    ..FunctionProto::default()
                };
                let training = TrainingInfoProto {
                    algorithm: Some(graph.clone()),
                    ..TrainingInfoProto::default()
                };
                let of = |graph| ModelProto {
                    graph: Some(graph),
                    ..ModelProto::default()
                };
                for model in [
                    of(graph),
                    of(nested),
                    ModelProto {
                        functions: vec![function],
                        ..ModelProto::default()
                    },
                    ModelProto {
                        training_info: vec![training],
                        ..ModelProto::default()
                    },
                ] {
                    let reason = refused(model);
                    assert!(reason.starts_with("`w` lies in another file"), "{reason}");
                }
            }
        }
    }

    #[test]
    fn other_formats_compiled_parts_and_graphs_that_are_too_deep_are_refused() {
        let mut model = ModelProto::default();
        let mut context = holder(AttributeProto::default());
        context.node[0].op_type = Some("EPContext".into());
        model.graph = Some(context);
        assert!(refused(model.clone()).contains("lies in another file"));
        let deep = |depth| (0..depth).fold(GraphProto::default(), |body, _| inside(body));
        model.graph = Some(deep(MAX_DEPTH));
        check(&model.encode_to_vec()).unwrap();
        model.graph = Some(deep(MAX_DEPTH + 1));
        assert!(refused(model).contains("more than 8 graphs"));
        assert!(
            check(b"....ORTM")
                .unwrap_err()
                .to_string()
                .contains("onnx runtime")
        );
        assert!(check(b"no onnx file").is_err());
    }
}
