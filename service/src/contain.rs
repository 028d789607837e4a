//! Panics of others' code that are expected, and answered.
//!
//! A role ends its process on a panic ([`crate::role`]): a thread that is gone would be missed too late. A
//! library that panics where it should return an error is called in [`contain`] instead; such a panic is logged, and the
//! caller gets its message.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `call`; a panic on this thread inside it becomes its message.
///
/// What `call` left half done stays so: the caller must not use it again without care.
///
/// # Errors
/// The panic's message.
pub fn contain<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|panic| message(&*panic))
}

/// Whether a panic on this thread, now, would be contained.
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
