//! What models said before, shared by all clients: consulted before a request is queued, filled when it is answered.
//!
//! The key is the row, the legal actions and the identity of the model (its file, its layout, how its outputs are read),
//! compared whole, so a new version is never answered by an old one, and a model that is loaded again still knows what it said.
//! Logits are too large to be kept; equal positions of a batch share them even so.

use crate::{
    batching::{draft::Draft, job::Piece},
    requests::request::Wants,
};
use games::MoverValue;
use network::{
    cache::{Cache, CacheContents, CacheKey},
    model::Model,
};

/// The server's cache.
#[derive(Debug)]
pub struct Evaluations {
    cache: Cache,
}

impl Evaluations {
    /// A cache of at most `bytes` bytes; `None` for 0, or too few to be of use.
    pub fn new(bytes: usize) -> Option<Self> {
        Cache::new(bytes).map(|cache| Self { cache })
    }

    /// Answers those positions of a request that are known. Gives how many were and how many were not.
    pub fn look_up(&self, draft: &mut Draft) -> (u64, u64) {
        let mut hashes = Vec::with_capacity(draft.positions());
        if draft.wants() == Wants::Logits {
            let hash = |position| {
                let (row, legal) = draft.question(position);
                CacheKey::new(row, legal).hash()
            };
            hashes.extend((0..draft.positions()).map(hash));
            draft.set_hashes(hashes);
            return (0, 0);
        }
        let (mut priors, mut hits) = (Vec::new(), 0);
        let id = draft.model().info.id;
        for position in 0..draft.positions() {
            let (row, legal) = draft.question(position);
            let question = CacheKey::new(row, legal);
            hashes.push(question.hash());
            priors.clear();
            if let Some(known) = self.cache.find(&question, id, &mut priors) {
                draft.know(position, known.value.get(), &priors);
                hits += 1;
            }
        }
        draft.set_hashes(hashes);
        (hits, draft.positions() as u64 - hits)
    }

    /// Keeps what `model` said about a position of a request that was looked up, unless that is logits.
    pub fn keep(&self, model: &Model, piece: &Piece, position: usize, value: f32, priors: &[f32]) {
        if piece.job.wants() == Wants::Logits {
            return;
        }
        if let Some(hash) = piece.hash(position) {
            let question = CacheKey::hashed(piece.row(position), piece.legal(position), hash);
            self.cache
                .insert(&question, model.info.id, priors, MoverValue::new(value));
        }
    }

    /// What it holds.
    pub fn contents(&self) -> CacheContents {
        self.cache.contents()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        models::table::Named,
        requests::{request::ClientId, response::ReplyTo},
        testing::{asked, model},
    };

    fn draft(model: &Arc<Model>, marks: &[u32]) -> Draft {
        let mut asked = asked(marks.len(), 0);
        asked.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
        let named = Named {
            model: model.clone(),
            slot: None,
        };
        Draft::new(named, asked)
    }

    #[test]
    fn what_was_kept_is_known_and_the_rest_is_computed() {
        let cache = Evaluations::new(1 << 20).unwrap();
        let (one, other) = (model("1", 8), model("2", 8));
        let mut asked = draft(&one, &[5, 6]);
        assert_eq!(cache.look_up(&mut asked), (0, 2));
        let (sender, mut answers) = mpsc::unbounded_channel();
        let job = Arc::new(asked.into_job(ClientId(1), ReplyTo::stream(7, sender, None)));
        let piece = Piece {
            job,
            first: 0,
            count: 2,
        };
        cache.keep(&one, &piece, 0, 0.5, &[0.25, 0.75]);
        cache.keep(&one, &piece, 1, -0.5, &[0.5, 0.5]);

        let mut all = draft(&one, &[6, 5, 6]);
        assert_eq!(cache.look_up(&mut all), (3, 0));
        assert!(all.is_known());
        let answer = all.into_answer();
        assert_eq!(
            (answer.version.as_str(), answer.values.as_slice()),
            ("1", [-0.5, 0.5, -0.5].as_slice())
        );
        // Who wants logits is told nothing, and what it is told is not kept; but its positions can be compared with others.
        let logits = || {
            let mut asked = crate::testing::asked(2, 5);
            (asked.wants, asked.legal_counts) = (Wants::Logits, vec![0; 2]);
            asked.legal_actions.clear();
            let named = Named {
                model: one.clone(),
                slot: None,
            };
            Draft::new(named, asked)
        };
        let mut asked = logits();
        assert_eq!(cache.look_up(&mut asked), (0, 0));
        let (sender, _answers) = mpsc::unbounded_channel();
        let entries = cache.contents().entries;
        let piece = Piece {
            job: Arc::new(asked.into_job(ClientId(1), ReplyTo::stream(9, sender, None))),
            first: 0,
            count: 2,
        };
        assert!(piece.hash(0).is_some() && piece.hash(0) == piece.hash(1));
        cache.keep(&one, &piece, 0, 0.5, &[0.0; 5]);
        assert_eq!(cache.contents().entries, entries);

        // Another model knows nothing of it.
        assert_eq!(cache.look_up(&mut draft(&other, &[5])), (0, 1));

        // Of a request that is known in part only the rest is computed, and put where it belongs.
        let mut part = draft(&one, &[7, 5, 8]);
        assert_eq!(cache.look_up(&mut part), (1, 2));
        let (sender, mut parts) = mpsc::unbounded_channel();
        let job = Arc::new(part.into_job(ClientId(1), ReplyTo::stream(8, sender, None)));
        assert_eq!(job.positions(), 2);
        let piece = Piece {
            job,
            first: 0,
            count: 2,
        };
        assert_eq!(piece.positions().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(piece.answer("1", &[0.1, 0.2], &[1.0, 0.0, 0.0, 1.0], 5), Some(3));
        let answer = parts.try_recv().unwrap().answer.unwrap();
        assert_eq!(answer.values, [0.1, 0.5, 0.2]);
        let crate::requests::response::Policy::HalfPriors(bytes) = &answer.policy else {
            panic!("{answer:?}")
        };
        let mut priors = Vec::new();
        proto::priors::decode(bytes, 6, &mut priors).unwrap();
        assert_eq!(priors, [1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
        assert!(answers.try_recv().is_err());
    }
}
