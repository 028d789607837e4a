//! The models that are served: their names, where they come from, how they are loaded and replaced.
//!
//! | module | contents |
//! |---|---|
//! | [`names`] | how requests name models |
//! | [`table`] | the served names and the model each points at |
//! | [`slot`] | one served name |
//! | [`library`] | loads and unloads models within a memory budget, and follows labels |
//! | [`source`] | the stores and files that models are read from |

pub mod library;
pub mod names;
pub mod slot;
pub mod source;
pub mod table;
