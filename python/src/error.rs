//! The exceptions. Each message is a sentence; `minuet.Error` is the base of all of them.

use pyo3::{create_exception, exceptions::PyException, prelude::*, types::PyType};

create_exception!(minuet, Error, PyException, "Base of all exceptions of Minuet.");
create_exception!(minuet, UnknownGameError, Error, "No game has this name.");
create_exception!(
    minuet,
    PositionError,
    Error,
    "A game cannot begin from this position or with these rules."
);
create_exception!(
    minuet,
    IllegalActionError,
    Error,
    "The action is not legal in this state, or the text is no turn."
);
create_exception!(
    minuet,
    RowError,
    Error,
    "A row, or an array of rows, logits or symmetries, is not valid for the game."
);
create_exception!(
    minuet,
    EvaluationError,
    Error,
    "The answer of an evaluator does not fit its batch."
);
create_exception!(
    minuet,
    SettingsError,
    Error,
    "A setting is unknown or out of range."
);
create_exception!(
    minuet,
    ServerError,
    Error,
    "A server refused a call or cannot be reached. `code` is the gRPC code's name, e.g. UNAVAILABLE."
);
create_exception!(
    minuet,
    ModelError,
    Error,
    "A network is for another game, or has rows or layers that this version of Minuet does not know."
);
create_exception!(
    minuet,
    CheckpointError,
    Error,
    "A checkpoint cannot be found, is damaged, or was not published."
);

/// Adds all exceptions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.get_type::<ServerError>().setattr("code", "UNKNOWN")?;
    let all: [Bound<'_, PyType>; 10] = [
        py.get_type::<Error>(),
        py.get_type::<UnknownGameError>(),
        py.get_type::<PositionError>(),
        py.get_type::<IllegalActionError>(),
        py.get_type::<RowError>(),
        py.get_type::<EvaluationError>(),
        py.get_type::<SettingsError>(),
        py.get_type::<ServerError>(),
        py.get_type::<ModelError>(),
        py.get_type::<CheckpointError>(),
    ];
    all.into_iter()
        .try_for_each(|kind| module.add(kind.name()?.to_str()?, kind.clone()))
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
