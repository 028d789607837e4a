//! The state of play: a clan, a problem, and the path so far.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    clan::Clan,
    codec::ClanRows,
    grammar::MAX_IMPS,
    grid::Grid,
    legal::Seen,
    moves::{MOVES, Move},
    problem::{Marked, Problem, StartText},
    recoloring::Recolorings,
    row, sample,
};
use crate::{
    game::{Action, Drawn, Game, IllegalAction, Outcome, Player, StartError, Symmetry},
    layout::{RowForm, RowLayout},
    symmetries::RowSymmetries,
};

/// What happens to moves that cannot be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Illegal {
    /// They are not offered (`strict`). A mark is always offered, whether it is right or not.
    #[default]
    Strict,
    /// The original rules (`oops`): what an imp's kind and role allow is offered, and what fails ends the game in
    /// the one position that every illegal move leads to, worth 0.
    Oops,
}

/// What happens to moves that lead back to a clan on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cycles {
    /// They are illegal.
    #[default]
    Forbid,
    /// They are moves like any other.
    Allow,
}

/// What the rules can be switched between. The default is what self-play uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// `strict` or `oops`.
    pub illegal: Illegal,
    /// `forbid` or `allow`.
    pub cycles: Cycles,
    /// Moves after which an unsolved problem is given up, worth 0. At least 1.
    pub move_limit: u32,
    /// Share of the problems drawn for self-play that are pairs, in percent.
    pub pairs: u8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            illegal: Illegal::Strict,
            cycles: Cycles::Forbid,
            move_limit: 64,
            pairs: 0,
        }
    }
}

impl Rules {
    /// The rules of the recorded cases: Oops as in the original, and cycles are nobody's business.
    pub fn compatibility() -> Self {
        Self {
            illegal: Illegal::Oops,
            cycles: Cycles::Allow,
            ..Self::default()
        }
    }
}

/// How play ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The problem is solved: 1.
    Solved,
    /// An illegal move was made: 0.
    Oops,
    /// Too many moves were made: 0.
    MoveLimit,
}

/// What stays the same all through an episode.
#[derive(Debug, PartialEq)]
struct Setting {
    rules: Rules,
    problem: Problem,
}

/// A state of the generator game.
#[derive(Debug, PartialEq)]
pub struct GeneratorGame {
    clan: Clan,
    hash: u64,
    setting: Arc<Setting>,
    step_marked: bool,
    plies: u32,
    end: Option<End>,
    seen: Seen,
}

impl Clone for GeneratorGame {
    fn clone(&self) -> Self {
        Self {
            setting: Arc::clone(&self.setting),
            seen: self.seen.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        // No search mixes problems: nearly always the same one.
        if !Arc::ptr_eq(&self.setting, &source.setting) {
            self.setting = Arc::clone(&source.setting);
        }
        self.seen.clone_from(&source.seen);
        self.clan = source.clan;
        self.hash = source.hash;
        self.step_marked = source.step_marked;
        self.plies = source.plies;
        self.end = source.end;
    }
}

/// What a marked step adds to the hash of a clan: the same clan before and after it are two positions.
const MARKED_SALT: u64 = 0x51ab_7d3e_9c04_f265;

impl GeneratorGame {
    /// A problem to be solved from the bare start clan.
    pub fn posed(rules: &Rules, problem: Problem) -> Self {
        Self::from_clan(rules, problem, Clan::start())
    }

    /// A problem to be solved from any clan.
    pub fn from_clan(rules: &Rules, problem: Problem, clan: Clan) -> Self {
        let mut state = Self {
            hash: clan.hash(),
            clan,
            setting: Arc::new(Setting {
                rules: rules.clone(),
                problem,
            }),
            step_marked: false,
            plies: 0,
            end: None,
            seen: Seen::default(),
        };
        state.note();
        state
    }

    /// The action of a move of an imp.
    pub const fn action(imp: usize, action: Move) -> Action {
        imp as Action * MOVES as Action + action.0 as Action
    }

    /// The imp and the move of an action below [`Game::ACTIONS`].
    pub const fn imp_and_move(action: Action) -> (usize, Move) {
        (action as usize / MOVES, Move((action as usize % MOVES) as u8))
    }

    /// The state of play. After an Oops: the clan before it.
    pub const fn clan(&self) -> &Clan {
        &self.clan
    }

    /// The problem that is to be solved.
    pub fn problem(&self) -> &Problem {
        &self.setting.problem
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.setting.rules
    }

    /// Whether the first grid of a pair is marked as a step.
    pub const fn step_marked(&self) -> bool {
        self.step_marked
    }

    /// Moves made so far.
    pub const fn plies(&self) -> u32 {
        self.plies
    }

    /// How play ended, if it has.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    fn salt(&self) -> u64 {
        if self.step_marked { MARKED_SALT } else { 0 }
    }

    fn key(&self) -> u64 {
        self.hash.wrapping_add(self.salt())
    }

    /// Puts the present position on the path.
    fn note(&mut self) {
        if self.setting.rules.cycles == Cycles::Forbid {
            self.seen.insert(self.key(), self.clan.len());
        }
    }

    fn act(&mut self, action: Action) {
        if self.end.is_some() {
            return;
        }
        self.plies = self.plies.saturating_add(1);
        let (imp, action) = Self::imp_and_move(action);
        self.end = if action == Move::MARK_STEP || action == Move::MARK_COMPLETE {
            self.mark(imp, action)
        } else {
            self.transform(imp, action)
        };
        if self.end.is_none() && self.plies >= self.setting.rules.move_limit {
            self.end = Some(End::MoveLimit);
        }
    }

    fn mark(&mut self, imp: usize, action: Move) -> Option<End> {
        let is_step = action == Move::MARK_STEP;
        let render = self.clan.render();
        let marked = self.setting.problem.mark(is_step, self.step_marked, &render);
        match marked {
            _ if imp != 0 => Some(End::Oops),
            Marked::Oops => Some(End::Oops),
            Marked::Solved => Some(End::Solved),
            Marked::Step => {
                self.step_marked = true;
                self.note();
                None
            }
        }
    }

    fn transform(&mut self, imp: usize, action: Move) -> Option<End> {
        let Some(clan) = self.clan.after(imp, action) else {
            return Some(End::Oops);
        };
        let hash = clan.hash();
        if self.setting.rules.cycles == Cycles::Forbid && self.seen.contains(hash.wrapping_add(self.salt())) {
            return Some(End::Oops);
        }
        (self.clan, self.hash) = (clan, hash);
        self.note();
        None
    }

    fn is_offered(&self, imp: usize, action: Move) -> bool {
        if self.clan.mask(imp) >> action.0 & 1 == 0 {
            return false;
        }
        let is_mark = action == Move::MARK_STEP || action == Move::MARK_COMPLETE;
        if is_mark || self.setting.rules.illegal == Illegal::Oops {
            return true;
        }
        self.clan.after(imp, action).is_some_and(|clan| {
            self.setting.rules.cycles == Cycles::Allow
                || !self.seen.contains(clan.hash().wrapping_add(self.salt()))
        })
    }

    fn parse(rules: &Rules, text: &str) -> Result<Self, String> {
        let text: StartText = serde_json::from_str(text).map_err(|error| {
            format!(r#"{error} (a start is JSON, e.g. {{"clan":[1,272,528,785],"target":[[1,1],[1,0]]}})"#)
        })?;
        let clan = match &text.clan {
            None => Clan::start(),
            Some(packed) => Clan::unpack(packed).map_err(|error| format!("`clan`: {error}"))?,
        };
        let mut state = Self::from_clan(rules, text.problem()?, clan);
        state.plies = text.plies;
        if text.marked {
            state.step_marked = true;
            state.note();
        }
        if state.plies >= rules.move_limit {
            state.end = Some(End::MoveLimit);
        }
        Ok(state)
    }
}

impl Game for GeneratorGame {
    type Rules = Rules;
    type Encoding = ();

    const NAME: &'static str = "generator";
    const PLAYERS: u8 = 1;
    const ACTIONS: u32 = (MAX_IMPS * MOVES) as u32;
    /// Turning a position changes how far it is from a solution (fresh shapes lie at the top left), so no turn is an
    /// equivalence; [`super::symmetry`] has those that are good enough to train on.
    const SYMMETRIES: u8 = 1;
    const LOWEST_VALUE: f32 = 0.0;
    const LEVELS: u32 = sample::MAX_DEPTH;

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        let fault = |reason: String| StartError {
            game: Self::NAME,
            reason,
        };
        if rules.move_limit == 0 {
            return Err(fault("move_limit must be at least 1".into()));
        }
        if rules.pairs > 100 {
            return Err(fault("pairs is a percentage, at most 100".into()));
        }
        match position {
            None => Ok(Self::posed(rules, Problem::Free)),
            Some(text) => Self::parse(rules, text).map_err(fault),
        }
    }

    fn encoding(options: u32) -> Result<(), StartError> {
        crate::game::single_encoding(Self::NAME, options)
    }

    fn layout((): ()) -> RowLayout {
        RowLayout {
            game: Self::NAME.into(),
            options: 0,
            form: RowForm::Clan(ClanRows::KNOWN),
            actions: Self::ACTIONS,
            mirrored_actions: false,
            policy_head: crate::PolicyHead::PerPart,
        }
    }

    fn row_symmetries((): ()) -> RowSymmetries {
        RowSymmetries::new(Recolorings::new())
    }

    fn to_move(&self) -> Player {
        Player::First
    }

    fn outcome(&self) -> Option<Outcome> {
        self.end.map(|end| match end {
            End::Solved => Outcome::Scored(1.0),
            End::Oops | End::MoveLimit => Outcome::Scored(0.0),
        })
    }

    fn ending(&self) -> Option<&'static str> {
        self.end.map(|end| match end {
            End::Solved => "solved",
            End::Oops => "oops",
            End::MoveLimit => "move-limit",
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.end.is_some() {
            return;
        }
        match self.setting.rules.illegal {
            Illegal::Strict => {
                let seen = (self.setting.rules.cycles == Cycles::Forbid).then_some(&self.seen);
                self.clan
                    .strict_moves(self.hash, 0b11, self.salt(), seen, actions);
            }
            Illegal::Oops => {
                for imp in 0..self.clan.len() {
                    let mut moves = self.clan.mask(imp);
                    while moves != 0 {
                        actions.push(Self::action(imp, Move(moves.trailing_zeros() as u8)));
                        moves &= moves - 1;
                    }
                }
            }
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        let (imp, made) = Self::imp_and_move(action);
        if self.end.is_some() {
            return fault("play is over");
        }
        if imp >= self.clan.len() {
            return fault("the clan has no such imp");
        }
        if !self.is_offered(imp, made) {
            return fault("that move is not possible for this imp");
        }
        self.act(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        self.act(action);
    }

    fn position(&self) -> String {
        let problem = &self.setting.problem;
        let text = StartText {
            clan: Some(self.clan.packed().collect()),
            target: problem.target().copied(),
            second_target: problem.second_target().copied(),
            marked: self.step_marked,
            plies: self.plies,
        };
        serde_json::to_string(&text).unwrap_or_default()
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry == Symmetry::IDENTITY
    }

    fn write_row(&self, (): (), _: Symmetry, row: &mut Vec<u32>) {
        row::write(&self.clan, &self.setting.problem, self.step_marked, row);
    }

    fn policy_index(&self, (): (), _: Symmetry, action: Action) -> u32 {
        action
    }

    fn least_actions_left(&self) -> u32 {
        match self.end {
            Some(End::Solved) => 0,
            Some(End::Oops | End::MoveLimit) => u32::MAX,
            None => self.setting.problem.least_moves(self.step_marked, &self.clan),
        }
    }

    fn draw_start(rules: &Rules, level: u32, draw: &mut dyn FnMut(usize) -> usize) -> Option<Drawn<Self>> {
        let walk = sample::problem(level, usize::from(rules.pairs), rules.move_limit, draw)?;
        Some(Drawn {
            start: Self::posed(rules, walk.problem),
            solution: walk.solution,
        })
    }

    fn in_hindsight(&self, actions: &[Action]) -> Option<Drawn<Self>> {
        let (grid, solution) = sample::in_hindsight(&self.clan, actions, self.setting.rules.move_limit)?;
        Some(Drawn {
            start: Self::from_clan(&self.setting.rules, Problem::Draw(grid), self.clan),
            solution,
        })
    }
}

/// The render of a state, for people and answers.
impl GeneratorGame {
    /// The grid that the present clan generates.
    pub fn render(&self) -> Grid {
        self.clan.render()
    }
}
