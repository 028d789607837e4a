//! Searches, with any Python callable as evaluator.
//!
//! | module | content |
//! |---|---|
//! | [`erased`] | a search without the type of its game |
//! | [`class`] | the class `Search` |
//! | [`run`] | many searches, driven to their decisions with one evaluator |

mod class;
mod erased;
mod run;

pub use class::Search;
pub use run::run_searches;
