//! Which right each call of the server's services needs.

use service::security::tokens::Right;

/// The right that a call of `path` needs. Changing what is loaded is for administrators; all else of both protocols is what
/// evaluating takes; what is unknown is for administrators too.
pub fn right(path: &str) -> Option<Right> {
    let evaluates = match path.strip_prefix("/inference.GRPCInferenceService/") {
        Some(method) => !matches!(method, "RepositoryModelLoad" | "RepositoryModelUnload"),
        None => path.starts_with("/minuet.v1.Evaluator/"),
    };
    Some(if evaluates {
        Right::Evaluate
    } else {
        Right::Administer
    })
}
