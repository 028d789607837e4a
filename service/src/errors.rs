//! Errors: [`chain`] displays one with all its sources, [`contain`] makes one of a panic, [`end_if_output_fails`] ends a command.
//!
//! A panic ends the process of a role ([`crate::role`]), because the loss of a thread could stay unnoticed. A library that
//! panics instead of returning an error is called in [`contain`]: the panic is logged, and the caller gets its message.

use std::{
    any::Any,
    cell::Cell,
    error::Error,
    fmt,
    io::{self, Write as _},
    panic::{self, AssertUnwindSafe, catch_unwind},
    process,
};

/// Displays an error and all its sources, separated by colons. An error's own message does not contain its source.
///
/// # Examples
///
/// ```
/// let error = std::io::Error::other("no space left");
/// assert_eq!(service::chain(&error).to_string(), "no space left");
/// ```
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    fmt::from_fn(move |out| {
        write!(out, "{error}")?;
        let mut source = error.source();
        while let Some(error) = source {
            write!(out, ": {error}")?;
            source = error.source();
        }
        Ok(())
    })
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `call` and converts a panic on this thread into an error.
///
/// After a panic, values that `call` was changing may be inconsistent, so the caller should drop them.
///
/// # Errors
/// The message of the panic.
pub fn contain<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|panic| message(&*panic))
}

/// True if the current thread runs inside [`contain`].
pub fn is_contained() -> bool {
    DEPTH.get() > 0
}

/// Makes a write to standard output that fails end the process with one line on standard error and exit code 1. Without this, `print!`
/// panics with a backtrace. `program` is the beginning of the line.
pub fn end_if_output_fails(program: &'static str) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        let message = message(what.payload());
        let Some(reason) = message.strip_prefix("failed printing to stdout: ") else {
            return before(what);
        };
        // Standard error may be full too.
        let _ = writeln!(
            io::stderr(),
            "{program}: cannot write to standard output: {reason}"
        );
        #[expect(clippy::disallowed_methods, reason = "the output is the command's purpose")]
        process::exit(1)
    }));
}

fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Fault {
        #[error("cannot read the file")]
        Read(#[source] std::io::Error),
        #[error(transparent)]
        Same(#[from] Box<Fault>),
    }

    #[test]
    fn every_message_appears_once() {
        let error = Fault::from(Box::new(Fault::Read(std::io::Error::other("no space left"))));
        assert_eq!(chain(&error).to_string(), "cannot read the file: no space left");
    }

    #[test]
    fn a_panic_becomes_its_message_and_only_inside() {
        assert!(!is_contained());
        let seen = contain(|| {
            let inner = contain(|| panic!("no page {}", 7));
            (is_contained(), inner)
        });
        assert_eq!(seen, Ok((true, Err::<(), _>("no page 7".to_owned()))));
        assert!(!is_contained());
    }
}
