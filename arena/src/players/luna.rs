//! Values of a reference player of Paco Ŝako that searches without a network.

use std::any::Any;

use games::{Game, MoverValue, paco_sako::PacoSako};

/// Returns the value of a position by wins within a turn alone ([`PacoSako::threat_value`]); 0 in other games.
pub fn value<G: Game>(state: &G) -> MoverValue {
    let state: &dyn Any = state;
    state
        .downcast_ref::<PacoSako>()
        .map_or(MoverValue::new(0.0), PacoSako::threat_value)
}
