//! A whole decision in one call, for evaluators that answer at once: tools, benchmarks and tests.

use games::{Game, MoverValue};

use crate::{
    apply::ApplyError,
    leaf::{Evaluation, LeafRequest},
    search::Search,
};

impl<G: Game> Search<G> {
    /// Completes the decision. `evaluate` is called in gather order; it appends one prior for each legal action to the empty
    /// list and returns the value for the player to act.
    ///
    /// # Errors
    /// [`ApplyError`] for the first evaluation that does not fit; the pending leaves are then abandoned.
    pub fn decide(
        &mut self,
        mut evaluate: impl FnMut(&LeafRequest<'_, G>, &mut Vec<f32>) -> MoverValue,
    ) -> Result<(), ApplyError> {
        let mut priors = Vec::new();
        let mut own = Vec::new();
        let mut answers = Vec::new();
        self.abandon();
        while !self.is_decided() {
            priors.clear();
            answers.clear();
            self.gather(|request| {
                own.clear();
                let value = evaluate(&request, &mut own);
                priors.extend_from_slice(&own);
                answers.push((request.id, priors.len(), value));
            });
            let mut begin = 0;
            for &(id, end, value) in &answers {
                let priors = &priors[begin..end];
                begin = end;
                if let Err(error) = self.apply(id, Evaluation { priors, value }) {
                    self.abandon();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
