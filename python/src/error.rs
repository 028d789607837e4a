//! The exceptions. Each message is a sentence; `minuet.Error` is the base of all of them.

use pyo3::{create_exception, exceptions::PyException, prelude::*};

/// Defines exceptions, each with its base and its documentation, and [`add`], which adds all of them to the module.
macro_rules! exceptions {
    ($($name:ident: $base:ident = $text:literal,)*) => {
        $(create_exception!(minuet, $name, $base, $text);)*

        /// Adds all exceptions to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            py.get_type::<ServerError>().setattr("code", "UNKNOWN")
        }
    };
}

exceptions! {
    Error: PyException = "Base of all exceptions of Minuet.",
    UnknownGameError: Error = "No game has this name.",
    PositionError: Error = "A game cannot begin from this position or with these rules.",
    IllegalActionError: Error = "The action is not legal in this state, or the text is not a turn.",
    RowError: Error = "A row, or an array of rows, logits or symmetries, is not valid for the game.",
    EvaluationError: Error = "The answer of an evaluator does not fit its batch.",
    SettingsError: Error = "A setting is unknown or out of range.",
    ServerError: Error = "A server refused a call or cannot be reached. `code` is the gRPC code's name, e.g. UNAVAILABLE.",
    ModelError: Error = "A network is for another game, or has rows or layers that this version of Minuet does not know.",
    CheckpointError: Error = "A checkpoint cannot be found, is damaged, or was not published.",
}

/// Exception for a failed call, with the code's name in its attribute `code`.
pub fn server(py: Python<'_>, address: &str, status: &tonic::Status) -> PyErr {
    let code = format!("{:?}", status.code());
    let mut name = String::new();
    for letter in code.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    let reason = match status.message() {
        "" => name.to_lowercase().replace('_', " "),
        message => message.to_owned(),
    };
    let error = ServerError::new_err(format!("server {address}: {reason}"));
    match error.value(py).setattr("code", name) {
        Ok(()) => error,
        Err(other) => other,
    }
}
