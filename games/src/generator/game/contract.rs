//! [`Game`] for [`GeneratorGame`]: rules, rows, policy, and problems drawn for play.

use super::{
    super::{
        canonical::{self, Recoloring, Recolorings},
        codec::{ClanRows, Encoding},
        grammar::MAX_IMPS,
        moves::MOVES,
        problem::Examples,
        row,
        rules::Rules,
        sample,
    },
    Episode, EpisodeEnd, GeneratorGame,
};
use crate::{
    game::{Action, Drawn, Game, IllegalAction, Outcome, ProblemKind, StartError},
    generator::problem::Problem,
    layout::{RowForm, RowLayout},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Permutation to the canonical colours of a state. No permutation for training has this number.
const CANONICAL: Symmetry = Symmetry(u8::MAX);

/// Number of action ids.
pub(crate) const ACTIONS: u32 = (MAX_IMPS * MOVES) as u32;

impl Game for GeneratorGame {
    type Rules = Rules;
    type Encoding = Encoding;

    const NAME: &'static str = "generator";
    const PLAYERS: u8 = 1;
    const LOWEST_VALUE: f32 = 0.0;
    const LEVELS: u32 = sample::MAX_DEPTH;
    const COMPARED_LEVELS: &'static [u32] = &[2, 4, 8];

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        let fault = |reason| Err(StartError::of::<Self>(reason));
        if rules.move_limit == 0 {
            return fault("move_limit must be at least 1");
        }
        if u32::from(rules.pairs) + u32::from(rules.tasks) > 100 {
            return fault("pairs and tasks are percentages, together at most 100");
        }
        if rules.drawings > 100 {
            return fault("drawings is a percentage, at most 100");
        }
        match position {
            None => Ok(Self::posed(rules, Problem::Free)),
            Some(text) => Self::parse(rules, text).map_err(StartError::of::<Self>),
        }
    }

    fn encoding(_: &Rules, options: u32) -> Result<Encoding, StartError> {
        Encoding::new(options)
    }

    fn check(rules: &Rules, encoding: Encoding) -> Result<(), StartError> {
        if rules.tasks == 0 || encoding == Encoding::Examples {
            return Ok(());
        }
        let reason = "rows of the representation 0 hold no examples, which problems of game.rules.tasks have: 1 is needed";
        Err(StartError::of::<Self>(reason))
    }

    fn layout(encoding: Encoding) -> RowLayout {
        RowLayout {
            game: Self::NAME.into(),
            options: encoding.options(),
            form: RowForm::Clan(ClanRows::of(encoding)),
            actions: ACTIONS,
            mirrored_actions: false,
            policy_head: crate::PolicyHead::PerPart,
        }
    }

    fn row_symmetries(_: Encoding) -> RowSymmetries {
        RowSymmetries::new(Recolorings::new())
    }

    fn actions(&self) -> u32 {
        ACTIONS
    }

    /// Returns the number of symmetries to draw from: the identity only. Colours are permuted by [`Game::canonical`]. A turn of the
    /// square changes the distance to a solution, because new shapes lie at the top left.
    fn symmetries(&self) -> u8 {
        1
    }

    fn to_move(&self) -> Player {
        Player::First
    }

    fn outcome(&self) -> Option<Outcome> {
        self.end.map(|end| match end {
            EpisodeEnd::Solved => Outcome::Scored(1.0),
            EpisodeEnd::Oops | EpisodeEnd::MoveLimit | EpisodeEnd::Proposed => Outcome::Scored(0.0),
        })
    }

    fn ending(&self) -> Option<&'static str> {
        self.end.map(|end| match end {
            EpisodeEnd::Solved => "solved",
            EpisodeEnd::Oops => "oops",
            EpisodeEnd::MoveLimit => "move-limit",
            EpisodeEnd::Proposed => "proposed",
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        self.write_offered(actions);
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        let (imp, made) = Self::imp_and_move(action);
        if self.end.is_some() {
            return fault("the game is over");
        }
        if imp >= self.clan.len() {
            return fault("the clan has no such imp");
        }
        if !self.is_offered(imp, made) {
            return fault("this imp cannot make this move");
        }
        self.act(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        self.act(action);
    }

    fn position(&self) -> String {
        self.as_start()
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry == Symmetry::IDENTITY || symmetry == CANONICAL
    }

    fn canonical(&self, legal: &[Action], order: &mut Vec<u32>) -> Option<Symmetry> {
        canonical::order(&self.canonical_colors(), legal, order);
        Some(CANONICAL)
    }

    /// Appends the row of the state. It has all examples of the state; layouts without examples refuse it then.
    fn write_row(&self, _: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        let start = row.len();
        let (problem, examples) = if self.is_oops() {
            (&Problem::Free, &Examples::NONE)
        } else {
            (&self.episode.problem, &self.episode.examples)
        };
        row::write(&self.clan, problem, examples, self.step_marked, row);
        if symmetry == CANONICAL {
            canonical::recolor(&self.canonical_colors(), &mut row[start..]);
        }
    }

    fn policy_index(&self, _: Encoding, symmetry: Symmetry, action: Action) -> u32 {
        if symmetry == CANONICAL && canonical::sets_color(action) {
            canonical::entry(&self.canonical_colors(), action)
        } else {
            action
        }
    }

    fn least_actions_left(&self) -> u32 {
        match self.end {
            Some(EpisodeEnd::Solved) => 0,
            Some(EpisodeEnd::Oops | EpisodeEnd::MoveLimit | EpisodeEnd::Proposed) => u32::MAX,
            None => self.episode.problem.least_moves(self.step_marked, &self.clan),
        }
    }

    fn draw_start(rules: &Rules, level: u32, draw: &mut dyn FnMut(usize) -> usize) -> Option<Drawn<Self>> {
        sample::problem(rules, level, false, draw)
    }

    /// Draws one of the problems that are held out by [`Problem::is_held_out`]. There may be none of level 1.
    fn draw_held_out(rules: &Rules, level: u32, draw: &mut dyn FnMut(usize) -> usize) -> Option<Drawn<Self>> {
        sample::problem(rules, level, true, draw)
    }

    fn problem_kinds(rules: &Rules) -> Vec<ProblemKind<Rules>> {
        let kind = |name, share: u8, pairs, tasks| ProblemKind {
            name,
            share: share.into(),
            rules: Rules {
                pairs,
                tasks,
                ..rules.clone()
            },
        };
        let others = rules.pairs.saturating_add(rules.tasks);
        vec![
            kind("draw", 100_u8.saturating_sub(others), 0, 0),
            kind("pair", rules.pairs, 100, 0),
            kind("task", rules.tasks, 0, 100),
        ]
    }

    fn in_hindsight(&self, actions: &[Action]) -> Option<Drawn<Self>> {
        let Episode { rules, problem, .. } = &*self.episode;
        sample::in_hindsight(&self.clan, rules, problem, actions)
    }
}

impl GeneratorGame {
    fn canonical_colors(&self) -> Recoloring {
        self.episode.colors.with_clan(&self.clan)
    }
}
