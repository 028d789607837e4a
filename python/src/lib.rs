//! The native part of the Python package `minuet`. The package's own modules are in `python/minuet`.
//!
//! | module | content |
//! |---|---|
//! | [`rules`] | games, states and batches of states, for every game of the registry |
//! | [`searching`] | searches, with any Python callable as evaluator |
//! | [`client`] | the inference server, the replay store and the analysis service over gRPC |
//! | [`own`] | a game of the user's own, with rules in Python |
//! | [`command`] | the command line in this interpreter |
//! | [`publishing`] | checkpoints: fetching and publishing |
//! | [`error`] | the exceptions |

mod client;
mod command;
mod error;
mod own;
mod publishing;
mod rules;
mod searching;

use pyo3::prelude::*;

/// Rules, searches and clients of Minuet in native code.
#[pymodule]
fn _minuet(module: &Bound<'_, PyModule>) -> PyResult<()> {
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::add(module)?;
    module.add_class::<rules::Game>()?;
    module.add_class::<rules::State>()?;
    module.add_class::<rules::Batch>()?;
    module.add_function(wrap_pyfunction!(rules::game_names, module)?)?;
    module.add_function(wrap_pyfunction!(own::add_own_game, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_class::<searching::Search>()?;
    module.add_function(wrap_pyfunction!(searching::run_searches, module)?)?;
    module.add_class::<client::EvaluatorClient>()?;
    module.add_class::<client::Pending>()?;
    module.add_class::<client::AnalysisClient>()?;
    module.add_class::<client::StoreClient>()?;
    module.add_class::<client::BatchStream>()?;
    module.add_class::<client::GameStream>()?;
    module.add_function(wrap_pyfunction!(publishing::publish, module)?)?;
    module.add_function(wrap_pyfunction!(publishing::fetch, module)?)
}
