//! [`GeneratorGame`]: the state of play with a clan, a problem, and the path so far.

use std::sync::Arc;

use super::{
    clan::Clan,
    codec::ClanRows,
    grammar::MAX_IMPS,
    grid::Grid,
    legal::Visited,
    moves::{self, MOVES, Move},
    problem::{MarkResult, Problem, StartText},
    recoloring::Recolorings,
    row,
    rules::{Cycles, Illegal, Rules},
    sample::{self, Part},
};
use crate::{
    form::RowForm,
    game::{Action, Drawn, Game, IllegalAction, Outcome, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// End of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The problem was solved. The value is 1.
    Solved,
    /// A move failed. The value is 0, and the state is the one position "Oops".
    Oops,
    /// The move limit was reached. The value is 0.
    MoveLimit,
    /// Without a problem, a grid or a pair was proposed. The value is 0.
    Proposed,
}

/// Parts of the state that do not change within an episode.
#[derive(Debug, PartialEq)]
struct Episode {
    rules: Rules,
    problem: Problem,
}

/// State of the generator game.
///
/// Every move that fails leads to one distinguished position, "Oops": whatever came before, the states are equal, have one
/// [`GeneratorGame::key`], one row, one text and an empty render.
///
/// ```
/// use games::{
///     Game, Outcome,
///     generator::{GeneratorGame, Move},
/// };
///
/// // Draw a black grid of 8×7. The clan at the start draws 8×8; imp 2 is its height.
/// let target = vec![vec![0; 8]; 7];
/// let start = serde_json::json!({ "target": target }).to_string();
/// let mut state = GeneratorGame::start(&Default::default(), Some(&start))?;
/// let decrement = (0..38).map(Move).find(|action| action.name() == "DEC").ok_or("no such move")?;
/// state.play(GeneratorGame::action(2, decrement))?;
/// state.play(GeneratorGame::action(0, Move::MARK_COMPLETE))?;
/// assert_eq!(state.outcome(), Some(Outcome::Scored(1.0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GeneratorGame {
    clan: Clan,
    /// Hash of the clan. [`OOPS_HASH`] after an Oops.
    hash: u64,
    episode: Arc<Episode>,
    step_marked: bool,
    /// Number of moves so far.
    plies: u32,
    end: Option<End>,
    /// Positions of the episode so far. Empty if cycles are allowed.
    visited: Visited,
}

impl PartialEq for GeneratorGame {
    /// True if the positions are equal, with their histories. All Oops positions are equal.
    fn eq(&self, other: &Self) -> bool {
        if self.is_oops() || other.is_oops() {
            return self.is_oops() && other.is_oops();
        }
        self.clan == other.clan
            && self.step_marked == other.step_marked
            && self.plies == other.plies
            && self.end == other.end
            && self.visited == other.visited
            && self.episode == other.episode
    }
}

impl Clone for GeneratorGame {
    fn clone(&self) -> Self {
        Self {
            episode: Arc::clone(&self.episode),
            visited: self.visited.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        // States of one search have the same problem, so this is seldom needed.
        if !Arc::ptr_eq(&self.episode, &source.episode) {
            self.episode = Arc::clone(&source.episode);
        }
        self.visited.clone_from(&source.visited);
        self.clan = source.clan;
        self.hash = source.hash;
        self.step_marked = source.step_marked;
        self.plies = source.plies;
        self.end = source.end;
    }
}

/// Number added to the hash of a clan after the step was marked, so that one clan before and after it is two positions.
const MARKED_SALT: u64 = 0x51ab_7d3e_9c04_f265;
/// Stands for the hash of the clan in the position "Oops". No clan is known to have this hash.
const OOPS_HASH: u64 = 0xd6e8_feb8_6659_fd93;

impl GeneratorGame {
    /// State at the start of an episode, with the usual start clan.
    pub fn posed(rules: &Rules, problem: Problem) -> Self {
        Self::from_clan(rules, problem, Clan::start())
    }

    /// State at the start of an episode, with any clan.
    pub fn from_clan(rules: &Rules, problem: Problem, clan: Clan) -> Self {
        let mut state = Self {
            hash: clan.hash(),
            clan,
            episode: Arc::new(Episode {
                rules: rules.clone(),
                problem,
            }),
            step_marked: false,
            plies: 0,
            end: None,
            visited: Visited::default(),
        };
        state.record_visit();
        state
    }

    /// Action of a move of an imp.
    pub const fn action(imp: usize, action: Move) -> Action {
        moves::action(imp, action)
    }

    /// Imp and move of an action below [`Game::ACTIONS`].
    pub const fn imp_and_move(action: Action) -> (usize, Move) {
        moves::imp_and_move(action)
    }

    /// Present clan. After an Oops, the start clan.
    pub const fn clan(&self) -> &Clan {
        &self.clan
    }

    /// Problem of the episode. After an Oops it is no part of the position any more, so that rows and comparisons leave it
    /// out, but people can still be shown what was to be drawn.
    pub fn problem(&self) -> &Problem {
        &self.episode.problem
    }

    /// Rules of the episode.
    pub fn rules(&self) -> &Rules {
        &self.episode.rules
    }

    /// True if the first grid of a pair, or of a proposal, was marked as a step.
    pub const fn step_marked(&self) -> bool {
        self.step_marked
    }

    /// Number of moves so far. 0 after an Oops.
    pub const fn plies(&self) -> u32 {
        self.plies
    }

    /// End of the episode. `None` while it runs.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Number added to the hash of a clan to get its key in `visited`.
    fn salt(&self) -> u64 {
        if self.step_marked { MARKED_SALT } else { 0 }
    }

    /// True if the last move failed.
    fn is_oops(&self) -> bool {
        self.end == Some(End::Oops)
    }

    /// Makes this the position "Oops", which holds nothing of what came before.
    fn become_oops(&mut self) {
        self.clan = Clan::start();
        self.hash = OOPS_HASH;
        self.step_marked = false;
        self.plies = 0;
        self.visited.clear();
        self.end = Some(End::Oops);
    }

    /// Hash of the clan and the mark, by which positions of one episode are told apart. All Oops positions have one key,
    /// which no other position has.
    pub fn key(&self) -> u64 {
        self.hash.wrapping_add(self.salt())
    }

    /// Adds the present position to those visited, if cycles are forbidden.
    fn record_visit(&mut self) {
        if self.episode.rules.cycles == Cycles::Forbid {
            self.visited.insert(self.key(), self.clan.len());
        }
    }

    /// Makes a move, which need not succeed.
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
        match self.end {
            Some(End::Oops) => self.become_oops(),
            None if self.plies >= self.episode.rules.move_limit => self.end = Some(End::MoveLimit),
            Some(End::Solved | End::MoveLimit | End::Proposed) | None => {}
        }
    }

    /// Marks the render as the step or as complete. Returns the end of the episode, if the mark ends it.
    fn mark(&mut self, imp: usize, action: Move) -> Option<End> {
        let is_step = action == Move::MARK_STEP;
        let render = self.clan.render();
        let marked = self.episode.problem.mark(is_step, self.step_marked, &render);
        match marked {
            _ if imp != 0 => Some(End::Oops),
            MarkResult::Oops => Some(End::Oops),
            MarkResult::Solved => Some(End::Solved),
            MarkResult::Proposed => Some(End::Proposed),
            MarkResult::Step => {
                self.step_marked = true;
                self.record_visit();
                None
            }
        }
    }

    /// Transforms the clan. Returns the end of the episode, if the move fails.
    fn transform(&mut self, imp: usize, action: Move) -> Option<End> {
        let Some(clan) = self.clan.after(imp, action) else {
            return Some(End::Oops);
        };
        let hash = clan.hash();
        if self.episode.rules.cycles == Cycles::Forbid
            && self.visited.contains(hash.wrapping_add(self.salt()))
        {
            return Some(End::Oops);
        }
        (self.clan, self.hash) = (clan, hash);
        self.record_visit();
        None
    }

    /// True if the rules offer this move.
    fn is_offered(&self, imp: usize, action: Move) -> bool {
        if self.clan.mask(imp) >> action.0 & 1 == 0 {
            return false;
        }
        let is_mark = action == Move::MARK_STEP || action == Move::MARK_COMPLETE;
        if is_mark || self.episode.rules.illegal == Illegal::Oops {
            return true;
        }
        self.clan.after(imp, action).is_some_and(|clan| {
            self.episode.rules.cycles == Cycles::Allow
                || !self.visited.contains(clan.hash().wrapping_add(self.salt()))
        })
    }

    /// Reads a start in JSON.
    fn parse(rules: &Rules, text: &str) -> Result<Self, String> {
        let text: StartText = serde_json::from_str(text).map_err(|error| {
            format!(r#"{error} (a start is JSON, e.g. {{"clan":[1,272,528,785],"target":[[1,1],[1,0]]}})"#)
        })?;
        let clan = match &text.clan {
            None => Clan::start(),
            Some(packed) => Clan::unpack(packed).map_err(|error| format!("`clan`: {error}"))?,
        };
        let mut state = Self::from_clan(rules, text.problem()?, clan);
        if text.oops {
            state.become_oops();
            return Ok(state);
        }
        state.plies = text.plies;
        if text.marked {
            state.step_marked = true;
            state.record_visit();
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
    /// Number of symmetries: the identity only. A turn of the square changes the distance to a solution, because new shapes
    /// lie at the top left. [`super::symmetry`] has turns that are approximate, for training.
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
            End::Oops | End::MoveLimit | End::Proposed => Outcome::Scored(0.0),
        })
    }

    fn ending(&self) -> Option<&'static str> {
        self.end.map(|end| match end {
            End::Solved => "solved",
            End::Oops => "oops",
            End::MoveLimit => "move-limit",
            End::Proposed => "proposed",
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.end.is_some() {
            return;
        }
        match self.episode.rules.illegal {
            Illegal::Strict => {
                let visited = (self.episode.rules.cycles == Cycles::Forbid).then_some(&self.visited);
                self.clan
                    .strict_moves(self.hash, 0b11, self.salt(), visited, actions);
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
        let problem = &self.episode.problem;
        let text = match self.end {
            Some(End::Oops) => StartText {
                oops: true,
                ..StartText::default()
            },
            Some(End::Solved | End::MoveLimit | End::Proposed) | None => StartText {
                clan: Some(self.clan.packed().collect()),
                target: problem.target().copied(),
                second_target: problem.second_target().copied(),
                marked: self.step_marked,
                plies: self.plies,
                oops: false,
            },
        };
        serde_json::to_string(&text).unwrap_or_default()
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry == Symmetry::IDENTITY
    }

    fn write_row(&self, (): (), _: Symmetry, row: &mut Vec<u32>) {
        let problem = if self.is_oops() {
            &Problem::Free
        } else {
            &self.episode.problem
        };
        row::write(&self.clan, problem, self.step_marked, row);
    }

    fn policy_index(&self, (): (), _: Symmetry, action: Action) -> u32 {
        action
    }

    fn least_actions_left(&self) -> u32 {
        match self.end {
            Some(End::Solved) => 0,
            Some(End::Oops | End::MoveLimit | End::Proposed) => u32::MAX,
            None => self.episode.problem.least_moves(self.step_marked, &self.clan),
        }
    }

    fn draw_start(rules: &Rules, level: u32, draw: &mut dyn FnMut(usize) -> usize) -> Option<Drawn<Self>> {
        Self::drawn(rules, level, Part::Training, draw)
    }

    fn problem_kinds(rules: &Rules) -> Vec<(u32, Rules)> {
        let pairs = u32::from(rules.pairs);
        let only = |pairs| Rules {
            pairs,
            ..rules.clone()
        };
        vec![(100_u32.saturating_sub(pairs), only(0)), (pairs, only(100))]
    }

    fn in_hindsight(&self, actions: &[Action]) -> Option<Drawn<Self>> {
        let rules = &self.episode.rules;
        let solved = sample::in_hindsight(&self.clan, &self.episode.problem, actions, rules.move_limit)?;
        Some(Drawn {
            start: Self::from_clan(rules, solved.problem, self.clan),
            solution: solved.solution,
        })
    }
}

impl GeneratorGame {
    /// Draws a problem as [`Game::draw_start`] does, but one of those that are held out of self-play
    /// ([`Problem::is_held_out`]). There may be none of level 1.
    pub fn draw_held_out(
        rules: &Rules,
        level: u32,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Self>> {
        Self::drawn(rules, level, Part::HeldOut, draw)
    }

    fn drawn(
        rules: &Rules,
        level: u32,
        part: Part,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Self>> {
        let walk = sample::problem(level, usize::from(rules.pairs), rules.move_limit, part, draw)?;
        Some(Drawn {
            start: Self::posed(rules, walk.problem),
            solution: walk.solution,
        })
    }

    /// Grid that the present clan draws. After an Oops all cells are absent.
    pub fn render(&self) -> Grid {
        if self.is_oops() {
            Grid::ABSENT
        } else {
            self.clan.render()
        }
    }
}
