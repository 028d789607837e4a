//! Players, matches between them, and what the results say of their strength.
//!
//! A *player* is whoever can choose an action in a state of a game: a checkpoint that searches, uniform UCT, a random mover, a
//! UCI engine, a perfect Connect Four solver. Engines, games at the terminal and matches are all built on these.
//!
//! | module | what it is for |
//! |---|---|
//! | [`model_name`] | how a person names a network: a file, a checkpoint's folder, a run, a server |
//! | [`model_file`] | finds and verifies what a name stands for |
//! | [`network`] | a network that answers: in this process, or through an inference server |
//! | [`evaluator`] | the leaves of many searches travel together; what is known already is not asked |
//! | [`many`] | many positions searched at once, each by itself |
//! | [`thinker`] | one search that can be stopped, prolonged and looked into at any time |
//! | [`spec`] | how a person writes a player |
//! | [`player`] | players, opened and ready to choose |
//! | [`matches`] | games between players, at once, counted in pairs, kept as they end |
//! | [`statistics`] | what results say of strength |
//! | [`solver`] | problems of the generator game, solved side by side |
//! | [`rating`] | the rating role: new checkpoints against the best one |

pub mod evaluator;
pub mod many;
pub mod matches;
pub mod model_file;
pub mod model_name;
pub mod network;
pub mod player;
pub mod rating;
pub mod solver;
pub mod spec;
pub mod statistics;
pub mod thinker;

pub use evaluator::Evaluator;
pub use model_file::{ModelError, ModelFile};
pub use model_name::ModelName;
pub use network::{LocalNetwork, Network, NetworkError, RemoteNetwork};
pub use player::{Player, PlayerError, Seat};
pub use spec::{SearchSpec, Spec, SpecError};
pub use thinker::{Limits, Thinker};
