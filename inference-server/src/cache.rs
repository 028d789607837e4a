//! What models said before, shared by all clients: consulted before a request is queued, filled when it is answered.
//!
//! The key is the row, the legal actions and the digest of the model's file, compared whole, so a new version is never
//! answered by an old one, and a model that is loaded again still knows what it said.

use std::collections::VecDeque;

use evaluation_cache::{Cache, Contents, Question, VersionId};
use games::MoverValue;
use parking_lot::Mutex;

use crate::{
    job::{Draft, Piece, Wants},
    model::Model,
};

/// Models whose numbers are remembered. One that is forgotten gets a new number when it is loaded again.
const REMEMBERED: usize = 1024;

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
        if draft.wants() == Wants::Logits {
            return (0, 0);
        }
        let (mut priors, mut hits) = (Vec::new(), 0);
        let id = draft.model().info.id;
        let mut hashes = Vec::with_capacity(draft.positions());
        for position in 0..draft.positions() {
            let (row, legal) = draft.question(position);
            let question = Question::new(row, legal);
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

    /// Keeps what `model` said about a position of a request that was looked up.
    pub fn keep(&self, model: &Model, piece: &Piece, position: usize, value: f32, priors: &[f32]) {
        if let Some(hash) = piece.hash(position) {
            let question = Question::hashed(piece.row(position), piece.legal(position), hash);
            self.cache
                .insert(&question, model.info.id, priors, MoverValue::new(value));
        }
    }

    /// What it holds.
    pub fn contents(&self) -> Contents {
        self.cache.contents()
    }
}

/// Gives models their numbers.
#[derive(Debug, Default)]
pub struct Numbers {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u32,
    digests: VecDeque<(String, VersionId)>,
}

impl Numbers {
    /// The number of the model whose file has this digest.
    pub fn of(&self, digest: &str) -> VersionId {
        let mut known = self.known.lock();
        if let Some((_, id)) = known.digests.iter().find(|(there, _)| there == digest) {
            return *id;
        }
        let id = VersionId(known.next);
        known.next = known.next.wrapping_add(1);
        if known.digests.len() >= REMEMBERED {
            known.digests.pop_front();
        }
        known.digests.push_back((digest.to_owned(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        job::{ClientId, ReplyTo},
        models::Named,
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
        let job = Arc::new(asked.into_job(ClientId(1), ReplyTo::Stream(7, sender)));
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
        // Another model knows nothing of it.
        assert_eq!(cache.look_up(&mut draft(&other, &[5])), (0, 1));

        // Of a request that is known in part only the rest is computed, and put where it belongs.
        let mut part = draft(&one, &[7, 5, 8]);
        assert_eq!(cache.look_up(&mut part), (1, 2));
        let (sender, mut parts) = mpsc::unbounded_channel();
        let job = Arc::new(part.into_job(ClientId(1), ReplyTo::Stream(8, sender)));
        assert_eq!(job.positions(), 2);
        let piece = Piece {
            job,
            first: 0,
            count: 2,
        };
        assert_eq!(piece.positions().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(piece.answer("1", &[0.1, 0.2], &[1.0, 0.0, 0.0, 1.0], 5), Some(3));
        let (_, answer) = parts.try_recv().unwrap();
        let answer = answer.unwrap();
        assert_eq!(answer.values, [0.1, 0.5, 0.2]);
        let crate::job::Policy::HalfPriors(bytes) = &answer.policy else {
            panic!("{answer:?}")
        };
        let mut priors = Vec::new();
        proto::priors::decode(bytes, 6, &mut priors).unwrap();
        assert_eq!(priors, [1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
        assert!(answers.try_recv().is_err());
    }

    #[test]
    fn equal_digests_have_equal_numbers_until_they_are_forgotten() {
        let numbers = Numbers::default();
        let first = numbers.of("first");
        assert_eq!(numbers.of("first"), first);
        for number in 0..REMEMBERED {
            assert_ne!(numbers.of(&number.to_string()), first);
        }
        assert_ne!(numbers.of("first"), first);
    }
}
