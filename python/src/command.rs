//! The command line of Minuet in this interpreter, which knows the rules of a game of the user's own.

use std::{ffi::OsString, process::ExitCode};

use pyo3::prelude::*;

/// Runs a command and returns its exit code. The first argument is the name of the program; `interpreter` starts another interpreter with
/// the same rules. Ends the process if the arguments cannot be read.
#[pyfunction]
pub fn run_command(py: Python<'_>, interpreter: Vec<String>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| minuet::run_in_python(interpreter, arguments));
    // An exit code does not tell its number.
    let number = (0..=u8::MAX).find(|&number| ExitCode::from(number) == code);
    number.unwrap_or(1)
}
