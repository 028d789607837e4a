//! Converts panics of third-party code into errors.
//!
//! A panic ends the process of a role ([`crate::role`]), because the loss of a thread could stay unnoticed. A library that
//! panics instead of returning an error is called in [`contain`]: the panic is logged, and the caller gets its message.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

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
