//! Searches many positions at once, each independently, for measurements of play.

use games::Game;
use network::batched::BatchedEvaluator;
use search::{Decision, GameKey, Search, Settings};

use super::PlayerError;

/// Number of searches in progress at once.
const AT_ONCE: usize = 64;

/// Searches every state independently and returns the decisions in order. The random draws of state `k` depend on `(seed, k)`.
///
/// # Errors
/// [`PlayerError`] if the network returns no evaluations.
pub fn decide_all<G: Game>(
    states: &[G],
    settings: &Settings,
    seed: u64,
    evaluator: &mut BatchedEvaluator<G>,
) -> Result<Vec<Decision>, PlayerError> {
    let mut decisions = Vec::with_capacity(states.len());
    for (block, states) in states.chunks(AT_ONCE).enumerate() {
        let key = |number: usize| GameKey {
            run_seed: seed,
            game: (block * AT_ONCE + number) as u64,
        };
        let mut searches: Vec<Search<G>> = states
            .iter()
            .enumerate()
            .map(|(number, state)| Search::new(state.clone(), settings.clone(), key(number)))
            .collect();
        loop {
            for slot in 0..searches.len() {
                // Evaluations from the cache need no batch, so the search continues until it waits for the network.
                while !searches[slot].is_decided() && !searches[slot].is_waiting() {
                    searches[slot].gather(|leaf| evaluator.add(slot, &leaf));
                    evaluator.take_known(|slot, leaf, evaluation| searches[slot].apply(leaf, evaluation))?;
                }
            }
            if searches.iter().all(Search::is_decided) {
                break;
            }
            evaluator.flush(|slot, leaf, evaluation| {
                searches[slot].apply(leaf, evaluation).map_err(PlayerError::from)
            })?;
        }
        decisions.extend(searches.iter().map(Search::decision));
    }
    Ok(decisions)
}
