//! Every switch of the search: [`Settings`].
//!
//! # The formula
//! At an active node the search takes the action that maximises
//!
//! ```text
//! V = Q + U,   Q = (F + W) / (1 + N),   U = c · P · √ΣN / (1 + N)
//! ```
//!
//! as the player to act there sees it. `N` counts the traversals through the edge, `W` sums their
//! values, `P` is the prior (at the decision node: with noise), and `ΣN` adds up `N` over the node's
//! own edges, so nothing that was counted before a re-root leaks into it.
//!
//! `F` is the first-play value ([`FirstPlay`]): `W` starts from it, as from nothing else, so an
//! action without visits has exactly `Q = F`, and the `1` in the denominator is the weight that `F` keeps
//! afterwards. (With `F` for the unvisited only, the first visit of an action worth exactly as much as
//! its parent would halve its `Q`: a player who is winning would try everything once before anything
//! twice.) It applies to every edge from the moment its node becomes active, and again after a re-root.
//! With `F = 0` this is `W/(1+N) + c·P·√ΣN/(1+N)` to the letter.
//!
//! In one-player games the best of the traversals through an edge can have a share λ in this: `W` is
//! `(1 - λ)·W + λ·N·max` then, because nobody else's choice can spoil what was found ([`Settings::max_share`]).
//!
//! Leaves that are out count as lost by whoever chose the edge: with `L` of them below an edge,
//! `W - L` and `N + L` stand for `W` and `N` everywhere above, `ΣN` included. (In a game whose values cannot be
//! less than 0, `W` and `N + L`; see [`Game::LOWEST_VALUE`](games::Game::LOWEST_VALUE).) They are counted
//! apart and never mixed into `W`, so nothing of them can be left behind by rounding.
//!
//! Of equal `V` the greater prior wins (at a node whose edges have no visits `U` is 0 for all:
//! this is the formula's limit), and the seeded generator draws among what is still equal.

/// How a search searches. [`Settings::default`] is what self-play uses on a small machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Traversals for each decision, at least 1. Every one ends below the decision node, so they are
    /// the sum of its actions' visits; its own evaluation, when it has none yet, is not counted.
    pub traversals: u32,
    /// The exploration constant `c`, not negative.
    pub exploration: f32,
    /// First-play value `F`.
    pub first_play: FirstPlay,
    /// Leaves that one gather hands out at most, 1 to [`Settings::MAX_LEAVES`]. 1 is serial UCT.
    pub leaves: u32,
    /// Dirichlet noise in the decision node's priors.
    pub noise: Option<Noise>,
    /// Evaluate each leaf in a symmetry drawn among those that its state allows.
    pub random_symmetry: bool,
    /// What becomes of the subtree below the action played.
    pub reuse: Reuse,
    /// Discount for each action, above 0 and at most 1. Only one-player games are discounted.
    pub discount: f32,
    /// The share λ, 0 to 1, of the best traversal in an action's value. Only one-player games have it.
    pub max_share: f32,
    /// In one-player games: whether a decision ends once the shortest solution is proven, and play follows the shortest
    /// solution that is known. A solution is a way to an outcome worth 1; it is proven shortest where the game's own
    /// [bound](games::Game::least_actions_left), or the tree, rules out every shorter way.
    pub stop_when_solved: bool,
    /// Largest size of the tree in bytes. A leaf that finds no room is evaluated and backed up but
    /// not kept, and [`Counters::unstored`](crate::Counters::unstored) counts it.
    pub tree_bytes: usize,
}

/// The value an action without visits is believed to have, for the player to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstPlay {
    /// The parent's own evaluation (the default of the specification).
    Parent,
    /// 0, a draw.
    Zero,
    /// The parent's own evaluation, less this times √(sum of the priors of the actions that have visits)
    /// as long as the action has none. Its first visit lifts the reduction.
    Reduction(f32),
}

/// What becomes of the subtree below the action played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Its nodes turn gray: they keep their evaluation and lose their statistics.
    Gray,
    /// Its nodes keep both.
    Keep,
    /// It is dropped.
    Drop,
}

/// Dirichlet noise: priors become `(1 - fraction) · P + fraction · η`, drawn anew for each decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Share of noise, 0 to 1.
    pub fraction: f32,
    /// The distribution's parameter.
    pub alpha: Alpha,
}

/// The parameter of the symmetric Dirichlet distribution, positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// α for each action, whatever their number (AlphaZero's rule).
    Each(f32),
    /// α is this divided by the number of legal actions (KataGo's rule; 10.83 there).
    Total(f32),
}

/// A setting outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("search setting {setting} {must}")]
pub struct SettingsError {
    /// The field.
    pub setting: &'static str,
    /// What it must be.
    pub must: &'static str,
}

impl Settings {
    /// The most leaves one gather can hand out.
    pub const MAX_LEAVES: u32 = crate::tree::MOST_OUT;
    /// The most traversals of one decision: beyond, sums of values in single precision grow coarse.
    pub const MAX_TRAVERSALS: u32 = 1 << 22;

    /// Checks every range. [`Search::new`](crate::Search::new) takes what it is given; call this where settings come in.
    ///
    /// # Errors
    /// [`SettingsError`] naming the first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let require = |holds, setting, must| {
            if holds {
                Ok(())
            } else {
                Err(SettingsError { setting, must })
            }
        };
        let not_negative = |number: f32| number >= 0.0 && number.is_finite();
        require(
            (1..=Self::MAX_TRAVERSALS).contains(&self.traversals),
            "traversals",
            "must be 1 to 4194304",
        )?;
        require(
            not_negative(self.exploration),
            "exploration",
            "must not be negative",
        )?;
        if let FirstPlay::Reduction(reduction) = self.first_play {
            require(
                not_negative(reduction),
                "first_play",
                "must not have a negative reduction",
            )?;
        }
        require(
            (1..=Self::MAX_LEAVES).contains(&self.leaves),
            "leaves",
            "must be 1 to 4095",
        )?;
        if let Some(noise) = self.noise {
            let (Alpha::Each(alpha) | Alpha::Total(alpha)) = noise.alpha;
            require(
                (0.0..=1.0).contains(&noise.fraction),
                "noise.fraction",
                "must be 0 to 1",
            )?;
            require(
                alpha > 0.0 && alpha.is_finite(),
                "noise.alpha",
                "must be positive",
            )?;
        }
        require(
            self.discount > 0.0 && self.discount <= 1.0,
            "discount",
            "must be above 0 and at most 1",
        )?;
        require(
            (0.0..=1.0).contains(&self.max_share),
            "max_share",
            "must be 0 to 1",
        )
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            traversals: 100,
            exploration: 1.25,
            first_play: FirstPlay::Parent,
            leaves: 4,
            noise: Some(Noise {
                fraction: 0.25,
                alpha: Alpha::Total(10.83),
            }),
            random_symmetry: true,
            reuse: Reuse::Gray,
            discount: 1.0,
            max_share: 0.0,
            stop_when_solved: false,
            tree_bytes: 256 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_in_range() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn names_the_setting_that_is_out_of_range() {
        let wrong = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().map_err(|error| error.setting)
        };
        assert_eq!(wrong(|s| s.traversals = 0), Err("traversals"));
        assert_eq!(wrong(|s| s.exploration = f32::NAN), Err("exploration"));
        assert_eq!(
            wrong(|s| s.first_play = FirstPlay::Reduction(-0.1)),
            Err("first_play")
        );
        assert_eq!(wrong(|s| s.leaves = 0), Err("leaves"));
        assert_eq!(wrong(|s| s.leaves = 4096), Err("leaves"));
        let noise = |fraction, alpha| {
            Some(Noise {
                fraction,
                alpha: Alpha::Each(alpha),
            })
        };
        let check_noise = |noise| {
            Settings {
                noise,
                ..Settings::default()
            }
            .check()
            .map_err(|error| error.setting)
        };
        assert_eq!(check_noise(noise(1.5, 0.3)), Err("noise.fraction"));
        assert_eq!(check_noise(noise(0.5, 0.0)), Err("noise.alpha"));
        assert_eq!(wrong(|s| s.discount = 0.0), Err("discount"));
        assert_eq!(wrong(|s| s.max_share = 1.5), Err("max_share"));
    }
}
