//! [`VERSION`] of `run.toml`.

/// Version of the keys that this build writes. A key that is added or removed takes a new number, and removed keys stay in
/// [`crate::removed`].
pub const VERSION: u32 = 1;
