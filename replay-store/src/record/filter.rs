//! Filters that select the games to list, export or delete.

use bytes::Bytes;
use proto::v1::{Game, GameFilter};

use crate::window::catalog::{Labels, Listed, Texts};

/// A filter, which is applied to the head of every game.
#[derive(Clone, Debug, Default)]
pub struct Filter(GameFilter);

/// Error: a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter.ids: an id has {0} bytes, 16 expected")]
pub struct FilterError(usize);

impl Filter {
    /// Checks a request's filter. `None` selects every game.
    ///
    /// # Errors
    /// [`FilterError`] if an id does not have 16 bytes.
    pub fn new(filter: Option<GameFilter>) -> Result<Self, FilterError> {
        let mut filter = filter.unwrap_or_default();
        if let Some(id) = filter.ids.iter().find(|id| id.len() != 16) {
            return Err(FilterError(id.len()));
        }
        filter.ids.sort_unstable();
        Ok(Self(filter))
    }

    /// Returns the ids of the selected games, ascending; empty if the filter does not select by id.
    pub fn ids(&self) -> &[Bytes] {
        &self.0.ids
    }

    fn positions(&self) -> (u64, u64) {
        let most = match self.0.max_positions {
            0 => u64::MAX,
            most => most.into(),
        };
        (self.0.min_positions.into(), most)
    }

    /// Returns the earliest and the latest time at which the game may have ended, in milliseconds since the Unix epoch.
    fn finished(&self) -> (u64, u64) {
        let last = match self.0.finished_before_ms {
            0 => u64::MAX,
            before => before - 1,
        };
        (self.0.finished_from_ms, last)
    }

    /// True if the filter may select a game with these values. Ids and builds are not compared.
    pub fn fits_listed(&self, listed: &Listed) -> bool {
        let Self(filter) = self;
        let Texts {
            models,
            actor,
            ending,
        } = &*listed.texts;
        among(&filter.model_versions, |wanted| models.contains(wanted))
            && among(&filter.actors, |wanted| wanted == actor)
            && among(&filter.endings, |wanted| wanted == ending)
            && within(self.positions(), listed.positions.into())
            && within(self.finished(), listed.finished_at_ms)
    }

    /// True if the filter selects every game.
    pub fn is_empty(&self) -> bool {
        self.0 == GameFilter::default()
    }

    /// True if the filter selects this game. Only fields in the head of a record are compared.
    pub fn fits(&self, id: &[u8], positions: u32, game: &Game) -> bool {
        let Self(filter) = self;
        let (version, _) = game.build.split_once('+').unwrap_or((&game.build, ""));
        let ids = &filter.ids;
        (ids.is_empty() || ids.binary_search_by(|wanted| wanted.as_ref().cmp(id)).is_ok())
            && among(&filter.builds, |wanted| {
                *wanted == game.build || wanted == version
            })
            && self.fits_listed(&Labels::default().listed(game, positions))
    }
}

fn among(wanted: &[String], fits: impl Fn(&String) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(fits)
}

fn within((low, high): (u64, u64), value: u64) -> bool {
    (low..=high).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_must_fit() {
        let game = Game {
            model_versions: vec!["a".into(), "b".into()],
            build: "0.1.0+77".into(),
            actor: "actor-1".into(),
            finished_at_ms: 1_000,
            ending: "paco".into(),
            ..Game::default()
        };
        let fits = |change: &dyn Fn(&mut GameFilter)| {
            let mut filter = GameFilter::default();
            change(&mut filter);
            Filter::new(Some(filter)).unwrap().fits(&[1; 16], 40, &game)
        };
        assert!(fits(&|_| ()));
        assert!(fits(
            &|filter| filter.ids = vec![vec![2; 16].into(), vec![1; 16].into()]
        ));
        assert!(!fits(&|filter| filter.ids = vec![vec![2; 16].into()]));
        assert!(fits(
            &|filter| filter.model_versions = vec!["x".into(), "b".into()]
        ));
        assert!(!fits(&|filter| filter.model_versions = vec!["x".into()]));
        assert!(fits(&|filter| filter.builds = vec!["0.1.0".into()]));
        assert!(fits(&|filter| filter.builds = vec!["0.1.0+77".into()]));
        assert!(!fits(&|filter| filter.builds = vec!["0.1.0+78".into()]));
        assert!(!fits(&|filter| filter.actors = vec!["actor-2".into()]));
        assert!(fits(&|filter| filter.finished_from_ms = 1_000));
        assert!(!fits(&|filter| filter.finished_before_ms = 1_000));
        assert!(fits(&|filter| filter.endings = vec!["draw".into(), "paco".into()]));
        assert!(!fits(&|filter| filter.endings = vec!["draw".into()]));
        assert!(fits(
            &|filter| (filter.min_positions, filter.max_positions) = (40, 40)
        ));
        assert!(!fits(&|filter| filter.min_positions = 41));
        assert!(!fits(&|filter| filter.max_positions = 39));
        assert!(!fits(&|filter| {
            filter.model_versions = vec!["a".into()];
            filter.actors = vec!["actor-2".into()];
        }));
        let short = GameFilter {
            ids: vec![vec![1; 3].into()],
            ..GameFilter::default()
        };
        assert_eq!(Filter::new(Some(short)).unwrap_err(), FilterError(3));
        assert!(Filter::new(None).unwrap().is_empty());
    }
}
