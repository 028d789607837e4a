//! Evaluations by exact position and model, shared by all clients. Requests are looked up before they are queued, and
//! computed positions are stored when their batch is answered.
//!
//! The key is the row, the legal actions, and the identity of the model: its file, its layout, and how its outputs are
//! read. Keys are compared whole, so a new version never gets answers of an old one, and a model that is loaded again
//! finds its own entries. Logits are too large to be stored; equal positions in one batch still share a place.

use games::MoverValue;
use network::{
    cache::{Cache, CacheContents, CacheKey},
    model::Model,
};

use crate::{
    batching::job::{Job, JobSlice},
    requests::request::Wants,
};

/// The server's cache of evaluations.
#[derive(Debug)]
pub struct EvaluationCache {
    cache: Cache,
}

impl EvaluationCache {
    /// Makes a cache of at most `bytes` bytes. `None` if `bytes` is too small to be of use.
    pub fn new(bytes: usize) -> Option<Self> {
        Cache::new(bytes).map(|cache| Self { cache })
    }

    /// Fills in the positions of a job that the cache knows. Returns the number of hits and of misses.
    ///
    /// A job that wants logits is hashed only, so that equal positions can share a place in a batch.
    pub fn look_up(&self, job: &mut Job) -> (u64, u64) {
        let positions = job.request_positions();
        let mut hashes = Vec::with_capacity(positions);
        if job.wants() == Wants::Logits {
            let hash = |position| {
                let (row, legal) = job.position(position);
                CacheKey::new(row, legal).hash()
            };
            hashes.extend((0..positions).map(hash));
            job.set_looked_up(hashes, Vec::new());
            return (0, 0);
        }
        let (mut priors, mut unknown, mut hits) = (Vec::new(), Vec::new(), 0);
        let id = job.validated_by().info.id;
        for position in 0..positions {
            let (row, legal) = job.position(position);
            let key = CacheKey::new(row, legal);
            hashes.push(key.hash());
            priors.clear();
            if let Some(cached) = self.cache.find(&key, id, &mut priors) {
                if hits == 0 {
                    unknown.extend(0..position as u32);
                }
                hits += 1;
                job.fill(position, cached.value.get(), &priors);
            } else if hits > 0 {
                unknown.push(position as u32);
            }
        }
        job.set_looked_up(hashes, unknown);
        (hits, positions as u64 - hits)
    }

    /// Stores the evaluation of one position by `model`, unless its job wants logits or was not looked up.
    pub fn insert(&self, model: &Model, slice: &JobSlice, position: usize, value: f32, priors: &[f32]) {
        if slice.job.wants() == Wants::Logits {
            return;
        }
        if let Some(hash) = slice.hash(position) {
            let key = CacheKey::hashed(slice.row(position), slice.legal(position), hash);
            self.cache
                .insert(&key, model.info.id, priors, MoverValue::new(value));
        }
    }

    /// Returns the number and size of the entries.
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
        models::table::ResolvedModel,
        requests::{
            request::{ClientId, EvaluationRequest},
            response::{ReplyTo, ResponsePolicy, StreamReply},
        },
        testing::{model, request},
    };

    type Replies = mpsc::UnboundedReceiver<StreamReply>;

    fn job_of(model: &Arc<Model>, request: EvaluationRequest) -> (Job, Replies) {
        let (sender, replies) = mpsc::unbounded_channel();
        let model = ResolvedModel {
            model: model.clone(),
            slot: None,
        };
        let job = Job::new(model, request, ClientId(1), ReplyTo::stream(7, sender, None));
        (job, replies)
    }

    fn job(model: &Arc<Model>, marks: &[u32]) -> (Job, Replies) {
        let mut request = request(marks.len(), 0);
        request.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
        job_of(model, request)
    }

    fn whole(job: Job) -> JobSlice {
        let (job, first) = (Arc::new(job), 0);
        let count = job.positions();
        JobSlice { job, first, count }
    }

    #[test]
    fn stored_positions_are_filled_in_and_the_others_are_computed() {
        let cache = EvaluationCache::new(1 << 20).unwrap();
        let (one, other) = (model("1", 8), model("2", 8));
        let (mut first, _replies) = job(&one, &[5, 6]);
        assert_eq!(cache.look_up(&mut first), (0, 2));
        assert_eq!(first.answer_if_complete(), None);
        let slice = whole(first);
        cache.insert(&one, &slice, 0, 0.5, &[0.25, 0.75]);
        cache.insert(&one, &slice, 1, -0.5, &[0.5, 0.5]);

        let (mut all, mut replies) = job(&one, &[6, 5, 6]);
        assert_eq!(cache.look_up(&mut all), (3, 0));
        assert_eq!(all.answer_if_complete(), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(
            (answer.version.as_str(), answer.values.as_slice()),
            ("1", [-0.5, 0.5, -0.5].as_slice())
        );

        // Another model has no entries.
        assert_eq!(cache.look_up(&mut job(&other, &[5]).0), (0, 1));

        // Only the positions that the cache does not know are computed.
        let (mut part, mut replies) = job(&one, &[7, 5, 8]);
        assert_eq!(cache.look_up(&mut part), (1, 2));
        assert_eq!((part.answer_if_complete(), part.positions()), (None, 2));
        let slice = whole(part);
        assert_eq!(slice.positions().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(slice.answer("1", &[0.1, 0.2], &[1.0, 0.0, 0.0, 1.0], 5), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(answer.values, [0.1, 0.5, 0.2]);
        let ResponsePolicy::HalfPriors(bytes) = &answer.policy else {
            panic!("{answer:?}")
        };
        let mut priors = Vec::new();
        proto::priors::decode(bytes, 6, &mut priors).unwrap();
        assert_eq!(priors, [1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
    }

    #[test]
    fn logits_are_hashed_but_neither_stored_nor_looked_up() {
        let cache = EvaluationCache::new(1 << 20).unwrap();
        let one = model("1", 8);
        let mut request = request(2, 5);
        (request.wants, request.legal_counts) = (Wants::Logits, vec![0; 2]);
        request.legal_actions.clear();
        let (mut logits, _replies) = job_of(&one, request);
        assert_eq!(cache.look_up(&mut logits), (0, 0));
        let slice = whole(logits);
        assert!(slice.hash(0).is_some() && slice.hash(0) == slice.hash(1));
        cache.insert(&one, &slice, 0, 0.5, &[0.0; 5]);
        assert_eq!(cache.contents().entries, 0);
    }
}
