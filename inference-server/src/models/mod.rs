//! The models that are served: their names, where they come from, how they are loaded and replaced.
//!
//! | module | contents |
//! |---|---|
//! | [`names`] | how requests name models |
//! | [`table`] | the served names, and the model that each one points at |
//! | [`library`] | loads the model of each served name, and each later one of its label |
//! | [`source`] | the stores and files that models are read from |

pub mod library;
pub mod names;
pub mod source;
pub mod table;
