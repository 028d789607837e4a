//! Games on their way out of a store, and into another: `FORMAT.md` is the description for others.
//!
//! | module | what it is for |
//! |---|---|
//! | [`archive`] | an archive file: whole games, compressed, checksummed, versioned |
//! | [`numpy`] | arrays that NumPy maps into memory, with a description in JSON |
//! | [`npy`] | one such array, written as it comes |

pub mod archive;
pub mod npy;
pub mod numpy;
pub mod vault;
