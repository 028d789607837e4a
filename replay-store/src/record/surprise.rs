//! Weights of surprising positions (KataGo's surprise weighting).

/// Shares of a game's weight that are distributed to its positions in proportion to their surprise. The two shares are together at
/// most 1; the rest of the weight is distributed evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surprise {
    /// Share for policy surprise: the divergence of the visits from the network's priors (`policy_surprises` of a record).
    pub policy: f32,
    /// Share for value surprise: the distance between the result and the root value.
    pub value: f32,
}

impl Surprise {
    /// True if all positions of a game have the same weight.
    pub fn is_off(&self) -> bool {
        self.policy <= 0.0 && self.value <= 0.0
    }
}
