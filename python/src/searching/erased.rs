//! A search without the type of its game.

use std::fmt::Debug;

use games::{
    Action, IllegalAction, MoverValue, Notation, Symmetry,
    erased::{AnyState, Typed},
    registry::{self, Visitor},
};
use search::{ApplyError, Decision, Evaluation, LeafId, Search};

/// A search of one game. The methods are those of [`Search`].
pub trait AnySearch: Send + Sync + Debug {
    /// Gathers leaves and hands on each leaf's state and symmetry.
    fn gather(&mut self, leaf: &mut dyn FnMut(Box<dyn AnyState>, Symmetry));
    /// Gives the leaves of the last gather their evaluations: priors back to back, and one value for each leaf.
    fn apply(&mut self, priors: &[f32], counts: &[u32], values: &[f32]) -> Result<(), ApplyError>;
    fn abandon(&mut self);
    fn is_decided(&self) -> bool;
    fn visits_done(&self) -> u32;
    fn set_visits(&mut self, visits: u32);
    fn state(&self) -> Box<dyn AnyState>;
    fn decision(&self) -> Decision;
    fn choose(&self, temperature: f32) -> Option<Action>;
    fn advance(&mut self, action: Action) -> Result<(), IllegalAction>;
    fn principal_variation(&self) -> Vec<Action>;
}

/// A search with its type.
#[derive(Debug)]
struct TypedSearch<G: Notation> {
    search: Search<G>,
    encoding: G::Encoding,
    /// Leaves of the last gather.
    leaves: Vec<LeafId>,
}

/// Begins the search of a state of the game called `game`; `None` if it is a state of another game.
pub fn begin(
    game: &str,
    state: &dyn AnyState,
    settings: search::Settings,
    key: search::GameKey,
) -> Option<Box<dyn AnySearch>> {
    struct Begin<'a>(&'a dyn AnyState, search::Settings, search::GameKey);

    impl Visitor for Begin<'_> {
        type Output = Option<Box<dyn AnySearch>>;

        fn visit<G: Notation>(self) -> Self::Output {
            let Self(state, mut settings, key) = self;
            let Typed { state, encoding } = Typed::<G>::find(state)?.clone();
            // An evaluator in Python gives its priors in ascending order of the actions, which is not that of a canonical image.
            settings.random_symmetry &= state.symmetries() > 1;
            Some(Box::new(TypedSearch {
                search: Search::new(state, settings, key),
                encoding,
                leaves: Vec::new(),
            }))
        }
    }

    registry::visit(game, Begin(state, settings, key)).ok()?
}

impl<G: Notation> AnySearch for TypedSearch<G> {
    fn gather(&mut self, leaf: &mut dyn FnMut(Box<dyn AnyState>, Symmetry)) {
        let Self {
            search,
            encoding,
            leaves,
        } = self;
        leaves.clear();
        search.gather(|request| {
            leaves.push(request.id);
            let state = request.state.clone();
            let encoding = *encoding;
            leaf(Box::new(Typed { state, encoding }), request.symmetry);
        });
    }

    fn apply(&mut self, priors: &[f32], counts: &[u32], values: &[f32]) -> Result<(), ApplyError> {
        let mut begin = 0;
        for ((&leaf, &count), &value) in self.leaves.iter().zip(counts).zip(values) {
            let end = begin + count as usize;
            let priors = priors.get(begin..end).unwrap_or_default();
            let value = MoverValue::new(value);
            self.search.apply(leaf, Evaluation { priors, value })?;
            begin = end;
        }
        self.leaves.clear();
        Ok(())
    }

    fn abandon(&mut self) {
        self.leaves.clear();
        self.search.abandon();
    }

    fn is_decided(&self) -> bool {
        self.search.is_decided()
    }

    fn visits_done(&self) -> u32 {
        self.search.visits_done()
    }

    fn set_visits(&mut self, visits: u32) {
        self.search.set_visits(visits);
    }

    fn state(&self) -> Box<dyn AnyState> {
        Box::new(Typed {
            state: self.search.state().clone(),
            encoding: self.encoding,
        })
    }

    fn decision(&self) -> Decision {
        self.search.decision()
    }

    fn choose(&self, temperature: f32) -> Option<Action> {
        self.search.choose(temperature)
    }

    fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.leaves.clear();
        self.search.advance(action)
    }

    fn principal_variation(&self) -> Vec<Action> {
        self.search.principal_variation(None)
    }
}
