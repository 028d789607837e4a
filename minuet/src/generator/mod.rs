//! Parts that the commands about the generator game share.
//!
//! | module | contents |
//! |---|---|
//! | [`paint`] | grids in colour |

pub mod paint;
