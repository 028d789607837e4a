//! The inference server, the replay store and the analysis service over gRPC, with the GIL released while a call waits.
//!
//! | module | content |
//! |---|---|
//! | [`link`] | addresses, `[security]`, deadlines, repeated calls, the runtime |
//! | [`evaluator`] | the class `EvaluatorClient` |
//! | [`analysis`] | the class `AnalysisClient` |
//! | [`store`] | the class `StoreClient` |
//! | [`streams`] | streams of batches and of games |
//! | [`arrays`] | messages as dictionaries of arrays |

mod analysis;
mod arrays;
mod evaluator;
pub mod link;
mod store;
mod streams;

pub use analysis::AnalysisClient;
pub use evaluator::{EvaluatorClient, Pending};
pub use store::StoreClient;
pub use streams::{BatchStream, GameStream};
