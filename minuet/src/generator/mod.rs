//! What the commands about the generator game share.
//!
//! | module | what it is for |
//! |---|---|
//! | [`solver`] | many problems solved side by side with one evaluator |

pub mod solver;
