//! A game whose tree is drawn from a seed: uneven branching, players who act several times in a row, early ends.

use games::{
    Action, Game, IllegalAction, KnownOutcome, MoverValue, Outcome, PlaneStack, Player, RowForm, RowLayout,
    StartError, Symmetry,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Evaluation, LeafId, LeafRequest, Search, Settings};

/// Parameters of a random tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub seed: u64,
    /// Maximum number of actions of a state.
    pub branching: u32,
    /// Number of actions after which every game is over.
    pub depth: u32,
    /// Percentage of states where the game is over.
    pub ends: u32,
    /// Percentage of actions after which the same player acts again.
    pub again: u32,
}

/// A state. Each state of a tree has its own `identity`.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeGame<const PLAYERS: u8> {
    pub shape: Shape,
    pub identity: u64,
    pub depth: u32,
    pub mover: Player,
}

/// Scrambles the bits of a number (the finaliser of SplitMix64).
pub fn spread(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Maps a number to `[0, 1)`.
fn unit(number: u64) -> f32 {
    (spread(number) >> 40) as f32 / (1u64 << 24) as f32
}

impl<const PLAYERS: u8> TreeGame<PLAYERS> {
    pub fn of(shape: &Shape) -> Self {
        Self {
            identity: spread(shape.seed),
            shape: shape.clone(),
            depth: 0,
            mover: Player::First,
        }
    }

    fn property(&self, which: u64) -> u64 {
        spread(self.identity ^ which.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    fn ends_early(&self) -> bool {
        self.depth > 0 && self.property(1) % 100 < u64::from(self.shape.ends)
    }

    /// Returns true for one early end in eight, which has no action and no outcome by the rules.
    fn is_dead_end(&self) -> bool {
        self.property(4).is_multiple_of(8)
    }

    /// Returns the outcome with best play and the length of that play, by trying every action.
    pub fn solved(&self) -> KnownOutcome {
        let legal = legal(self);
        if legal.is_empty() {
            return KnownOutcome::over(self.outcome().unwrap_or(Outcome::Draw));
        }
        let after = |action| {
            let mut next = self.clone();
            next.play_legal(action);
            let below = next.solved();
            let value = below.outcome.value().seen_by(self.mover).get();
            let length = below.actions as f32 + 1.0;
            // Short wins are good, short losses are bad.
            (value, if value > 0.0 { -length } else { length }, below)
        };
        let results = legal.into_iter().map(after);
        let best = results.reduce(|best, other| {
            if (other.0, other.1) > (best.0, best.1) {
                other
            } else {
                best
            }
        });
        best.map_or(KnownOutcome::over(Outcome::Draw), |(.., below)| KnownOutcome {
            actions: below.actions + 1,
            ..below
        })
    }

    /// Returns the priors and the value of the state, coarse like half-precision priors, so that ties occur.
    pub fn evaluation(&self) -> (Vec<f32>, MoverValue) {
        let weights: Vec<f32> = legal(self)
            .into_iter()
            .map(|action| 1.0 + (unit(self.property(u64::from(action) + 1000)) * 4.0).floor())
            .collect();
        let sum: f32 = weights.iter().sum();
        let value = (unit(self.property(7)) * 2.0 - 1.0) * 0.99;
        let priors = weights.iter().map(|weight| weight / sum).collect();
        (priors, MoverValue::new(value))
    }

    /// Returns true if a search with these settings asks for what is known of a leaf.
    pub fn is_asked(settings: &Settings) -> bool {
        PLAYERS == 2 && (settings.exact_leaves || settings.solver)
    }

    /// Returns the value that a search with these settings takes from [`TreeGame::evaluation`].
    pub fn searched_value(&self, settings: &Settings) -> MoverValue {
        let (_, value) = self.evaluation();
        if Self::is_asked(settings) && self.can_draw() {
            MoverValue::new(value.get().max(0.0))
        } else {
            value
        }
    }
}

/// Evaluates a leaf of a [`TreeGame`].
pub fn evaluate<const PLAYERS: u8>(
    request: &LeafRequest<'_, TreeGame<PLAYERS>>,
    priors: &mut Vec<f32>,
) -> MoverValue {
    let (own, value) = request.state.evaluation();
    priors.extend(own);
    value
}

/// Evaluates a leaf of any game: all actions are equally good, and the value is 0.
pub fn uniform<G: Game>(request: &LeafRequest<'_, G>, priors: &mut Vec<f32>) -> MoverValue {
    priors.extend(request.legal.iter().map(|_| 1.0 / request.legal.len() as f32));
    MoverValue::new(0.0)
}

/// Returns the legal actions of a state.
pub fn legal(state: &impl Game) -> Vec<Action> {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    legal
}

/// Evaluations of the leaves of a gather: id, priors, value.
pub type Answers = Vec<(LeafId, Vec<f32>, MoverValue)>;

/// Gathers leaves and evaluates them.
pub fn gather<const PLAYERS: u8>(search: &mut Search<TreeGame<PLAYERS>>) -> Answers {
    let mut answers = Vec::new();
    search.gather(|request| {
        let mut priors = Vec::new();
        let value = evaluate(&request, &mut priors);
        answers.push((request.id, priors, value));
    });
    answers
}

/// Applies evaluations in their order.
pub fn answer<const PLAYERS: u8>(search: &mut Search<TreeGame<PLAYERS>>, answers: Answers) {
    for (id, priors, value) in answers {
        let priors = &priors;
        search.apply(id, Evaluation { priors, value }).unwrap();
    }
}

impl<const PLAYERS: u8> Game for TreeGame<PLAYERS> {
    type Rules = Shape;
    type Encoding = ();
    const NAME: &'static str = "tree";
    const PLAYERS: u8 = PLAYERS;

    fn start(rules: &Shape, _: Option<&str>) -> Result<Self, StartError> {
        Ok(Self::of(rules))
    }

    fn layout((): ()) -> RowLayout {
        RowLayout {
            game: Self::NAME.into(),
            options: 0,
            form: RowForm::Planes(PlaneStack {
                height: 8,
                width: 8,
                entries: 1,
                planes: 1,
                sparse: vec![0],
                constants: Vec::new(),
                ones: Vec::new(),
            }),
            actions: 64,
            mirrored_actions: false,
            policy_head: games::PolicyHead::Dense,
        }
    }

    fn actions(&self) -> u32 {
        64
    }

    fn symmetries(&self) -> u8 {
        4
    }

    fn to_move(&self) -> Player {
        self.mover
    }

    fn outcome(&self) -> Option<Outcome> {
        let early = self.ends_early() && !self.is_dead_end();
        (early || self.depth >= self.shape.depth).then(|| {
            if PLAYERS == 1 {
                return Outcome::Scored(unit(self.property(2)) * 2.0 - 1.0);
            }
            match self.property(2) % 3 {
                0 => Outcome::Won(Player::First),
                1 => Outcome::Won(Player::Second),
                _ => Outcome::Draw,
            }
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.ends_early() || self.depth >= self.shape.depth {
            return;
        }
        let count = 1 + self.property(3) % u64::from(self.shape.branching);
        let mut action = 0;
        for index in 0..count {
            action += 1 + (self.property(100 + index) % 3) as u32;
            actions.push(action);
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        if !legal(self).contains(&action) {
            return Err(IllegalAction {
                action,
                reason: "not an edge of the tree",
            });
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        if PLAYERS == 2 && self.property(500 + u64::from(action)) % 100 >= u64::from(self.shape.again) {
            self.mover = self.mover.other();
        }
        self.identity = spread(
            self.identity
                .wrapping_add(u64::from(action).wrapping_mul(0xd6e8_feb8_6659_fd93)),
        );
        self.depth += 1;
    }

    /// Returns the outcome for half of the states in the last two layers, and for every win by one action; in every other tree,
    /// for all states of these layers.
    fn known(&self) -> Option<KnownOutcome> {
        let is_late = self.depth + 2 >= self.shape.depth;
        let is_known = self.shape.seed.is_multiple_of(2) || self.property(8).is_multiple_of(2);
        if PLAYERS == 2 && is_late && is_known && !legal(self).is_empty() {
            return Some(self.solved());
        }
        let outcome = Outcome::Won(self.mover);
        let wins = |action| {
            let mut next = self.clone();
            next.play_legal(action);
            next.outcome() == Some(outcome)
        };
        let is_won = legal(self).into_iter().any(wins);
        is_won.then_some(KnownOutcome { outcome, actions: 1 })
    }

    /// Returns a fault for the ends without an outcome.
    fn fault(&self) -> Option<&str> {
        (self.outcome().is_none() && legal(self).is_empty()).then_some("a dead end")
    }

    fn can_draw(&self) -> bool {
        legal(self).into_iter().any(|action| {
            let mut next = self.clone();
            next.play_legal(action);
            next.outcome() == Some(Outcome::Draw)
        })
    }

    fn position(&self) -> String {
        format!("{:016x}", self.identity)
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry == Symmetry::IDENTITY || self.property(5) >> symmetry.0 & 1 == 1
    }

    fn write_row(&self, (): (), _: Symmetry, row: &mut Vec<u32>) {
        row.push((self.identity % 64) as u32);
    }

    fn policy_index(&self, (): (), _: Symmetry, action: Action) -> u32 {
        action
    }
}

prop_compose! {
    pub fn any_shape()(
        seed: u64,
        branching in 1u32..8,
        depth in 1u32..14,
        ends in 0u32..40,
        again in 0u32..=100,
    ) -> Shape {
        Shape { seed, branching, depth, ends, again }
    }
}

/// Returns one of a fixed series of small trees.
pub fn small(seed: u64) -> Shape {
    Shape {
        seed,
        branching: 3,
        depth: 3 + (seed % 3) as u32,
        ends: (seed % 4 * 10) as u32,
        again: (seed % 5 * 25) as u32,
    }
}
