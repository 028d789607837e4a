//! Formats in which games leave a store, described in `docs/reference/formats.md`.
//!
//! | module | contents |
//! |---|---|
//! | [`archive`] | an archive file: whole games, compressed, checksummed, versioned |
//! | [`archive_store`] | the folder or bucket of archived volumes |
//! | [`numpy`] | games as NumPy arrays with a JSON description |

pub mod archive;
pub mod archive_store;
pub mod numpy;
