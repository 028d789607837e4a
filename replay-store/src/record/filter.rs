//! Which games are meant: listed, exported or deleted by where they came from.

use bytes::Bytes;
use proto::v1::{Game, GameFilter};

/// A filter that is asked of every game's head.
#[derive(Clone, Debug, Default)]
pub struct Filter(GameFilter);

/// A filter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter.ids: an id has {0} bytes, 16 expected")]
pub struct FilterError(usize);

impl Filter {
    /// Takes a request's filter; none fits every game.
    ///
    /// # Errors
    /// [`FilterError`]
    pub fn new(filter: Option<GameFilter>) -> Result<Self, FilterError> {
        let mut filter = filter.unwrap_or_default();
        if let Some(id) = filter.ids.iter().find(|id| id.len() != 16) {
            return Err(FilterError(id.len()));
        }
        filter.ids.sort_unstable();
        Ok(Self(filter))
    }

    /// The ids it asks for; none where it does not ask for ids.
    pub fn ids(&self) -> &[Bytes] {
        &self.0.ids
    }

    /// Models of which one must have answered during the game; empty for any.
    pub fn models(&self) -> &[String] {
        &self.0.model_versions
    }

    /// Actors of which one must have played the game; empty for any.
    pub fn actors(&self) -> &[String] {
        &self.0.actors
    }

    /// Endings of which the game must have one; empty for any.
    pub fn endings(&self) -> &[String] {
        &self.0.endings
    }

    /// Smallest and largest number of positions.
    pub fn positions(&self) -> (u64, u64) {
        let most = match self.0.max_positions {
            0 => u64::MAX,
            most => most.into(),
        };
        (self.0.min_positions.into(), most)
    }

    /// First and last time of the end of the game, in milliseconds since the Unix epoch.
    pub fn finished(&self) -> (u64, u64) {
        let last = match self.0.finished_before_ms {
            0 => u64::MAX,
            before => before - 1,
        };
        (self.0.finished_from_ms, last)
    }

    /// True if the filter admits every game.
    pub fn is_empty(&self) -> bool {
        self.0 == GameFilter::default()
    }

    /// True if the filter admits a game. Only fields in the head of a record are compared.
    pub fn fits(&self, id: &[u8], positions: u32, game: &Game) -> bool {
        let Self(filter) = self;
        let among = |wanted: &[String], fits: &dyn Fn(&str) -> bool| {
            wanted.is_empty() || wanted.iter().any(|wanted| fits(wanted))
        };
        let (version, _) = game.build.split_once('+').unwrap_or((&game.build, ""));
        (filter.ids.is_empty()
            || filter
                .ids
                .binary_search_by(|wanted| wanted.as_ref().cmp(id))
                .is_ok())
            && among(&filter.model_versions, &|wanted| {
                game.model_versions.iter().any(|version| version == wanted)
            })
            && among(&filter.builds, &|wanted| {
                wanted == game.build || wanted == version
            })
            && among(&filter.actors, &|wanted| wanted == game.actor)
            && among(&filter.endings, &|wanted| wanted == game.ending)
            && within(self.positions(), positions.into())
            && within(self.finished(), game.finished_at_ms)
    }
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
