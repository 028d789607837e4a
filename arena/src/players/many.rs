//! Many positions searched at once, each by itself: what measurements of play need.

use games::Game;
use search::{Decision, GameKey, Search, Settings};

use super::PlayerError;
use crate::evaluator::Evaluator;

/// Searches in progress at once.
const AT_ONCE: usize = 64;

/// Searches every state by itself and gives what was found, in order. The draws of state `k` belong to `(seed, k)`.
///
/// # Errors
/// [`PlayerError`] where the network does not answer.
pub fn decide_all<G: Game>(
    states: &[G],
    settings: &Settings,
    seed: u64,
    evaluator: &mut Evaluator<G>,
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
                // Until it waits: what is known already needs no batch.
                while !searches[slot].is_decided() && !searches[slot].is_waiting() {
                    searches[slot].gather(|leaf| evaluator.ask(slot, &leaf));
                    evaluator
                        .hand_out_known(|slot, leaf, evaluation| searches[slot].apply(leaf, evaluation))?;
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
