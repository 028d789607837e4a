//! Rules for the calls of each method of the server: the right that a token needs, and the size of a request.

use service::security::{methods::Method, tokens::Right};

/// Returns the rules of the method at `path`. Loading and unloading models needs the right `administer`, as do unknown methods;
/// all other methods of both protocols need `evaluate`. `inference.max_message_mib` limits the requests that carry positions.
pub fn method(path: &str) -> Method {
    let with_positions = Method::needs(Right::Evaluate).with_max_message(usize::MAX);
    if let Some(name) = path.strip_prefix("/inference.GRPCInferenceService/") {
        return match name {
            "RepositoryModelLoad" | "RepositoryModelUnload" => Method::needs(Right::Administer),
            "ModelInfer" => with_positions,
            "ModelStreamInfer" => with_positions.with_request_stream(),
            _ => Method::needs(Right::Evaluate),
        };
    }
    match path.strip_prefix("/minuet.v1.Evaluator/") {
        Some("Evaluate") => with_positions,
        Some("EvaluateStream") => with_positions.with_request_stream(),
        Some(_) => Method::needs(Right::Evaluate),
        None => Method::needs(Right::Administer),
    }
}
