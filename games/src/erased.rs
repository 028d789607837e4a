//! Games and states without their type, for tools, pages and Python: one set of types serves every game of the registry.
//!
//! | type | content |
//! |---|---|
//! | [`AnyGame`] | what a game says about itself: names, numbers, texts, layouts |
//! | [`Variant`] | a game with its rules and the representation of its rows |
//! | [`AnyState`] | a state |
//!
//! Each call goes through a pointer, and each copy allocates memory. Code where speed matters is generic over [`Game`](crate::Game)
//! instead ([`crate::registry::visit`]).
//!
//! ```
//! let game = games::registry::find("chess")?;
//! assert_eq!(game.players, 2);
//! let variant = game.variant(&game.people_rules(), None)?;
//! let mut state = variant.start(None)?;
//! for action in state.read_turn("e4")? {
//!     state.play(action)?;
//! }
//! assert_eq!(game.player_name(state.to_move()), "Black");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    any::Any,
    fmt::Debug,
    sync::{Arc, atomic::AtomicBool},
};

use serde_json::{Map, Value};

use crate::{
    Action, Course, Drawn, Game as _, IllegalAction, KnownOutcome, Notation, Outcome, Player, ProblemKind,
    RowLayout, RowSymmetries, Sizes, StartError, Symmetry, Territory,
    go::sgf::SgfError,
    notation::{JsonFields, Lesson, SgfGame},
    outside::Outside,
    perft::perft,
    probes::Probe,
    registry,
    scene::{Clicks, Scene},
    terminal::Style,
};

/// A game of the registry without its type. The fields and methods are those of [`Game`](crate::Game) and [`Notation`].
#[derive(Clone, Debug)]
pub struct AnyGame {
    /// Name in configurations, records and metadata, e.g. `paco-sako`.
    pub name: &'static str,
    /// Number of players, 1 or 2.
    pub players: u8,
    /// Names of the first and the second player.
    pub player_names: [&'static str; 2],
    /// Sizes of the board that the rules allow; `None` if the board has one size.
    pub sizes: Option<Sizes>,
    /// True if every game that is over tells who owns the squares.
    pub has_territory: bool,
    /// Highest level of difficulty; 0 if all games begin at the usual start.
    pub levels: u32,
    /// Levels of the problems on which players are compared.
    pub compared_levels: &'static [u32],
    /// Random actions that an opening usually has.
    pub opening_plies: u32,
    /// Explanation of how turns are entered.
    pub help: &'static str,
    /// Rules for people who have never seen the game.
    pub lessons: &'static [Lesson],
    /// True if [`AnyState::solve_actions`] finds exact values.
    pub has_solver: bool,
    /// True if games are recorded as PGN.
    pub has_pgn: bool,
    /// True if the game has SGF files.
    pub has_sgf: bool,
    /// Settings of a new run in which the game differs from other games, in the form of a `run.toml`.
    pub run_settings: &'static str,
    /// Names of the fields, besides `start`, that say where a game in JSON begins.
    pub start_fields: &'static [&'static str],
    /// Number of the usual representation.
    pub options: u32,
    size: Option<u32>,
    option_names: &'static [&'static str],
    rule_comment: fn(&str) -> Option<&'static str>,
    player_named: fn(&str) -> Option<Player>,
    rules: [fn() -> Value; 3],
    variant: Make,
    read_sgf: ReadSgf,
}

/// Reads a game from an SGF text.
type ReadSgf = fn(&str) -> Result<SgfGame<Arc<dyn Variant>>, SgfError>;

/// Makes a variant of a game from its rules and its options.
type Make = fn(&Value, Option<u32>) -> Result<Arc<dyn Variant>, VariantError>;

/// Error: a game has no such rules or representation.
#[derive(Debug, thiserror::Error)]
pub enum VariantError {
    /// The rules are not rules of the game.
    #[error("{game} has no such rules")]
    Rules {
        /// Name of the game.
        game: &'static str,
        /// Key or value at fault.
        source: serde_json::Error,
    },
    /// The game has no such representation.
    #[error(transparent)]
    Options(#[from] StartError),
}

/// Error: a representation of a game has no such option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{game} has no option {name:?}; {}", there_are(.names))]
pub struct UnknownOption {
    /// Name of the game.
    pub game: &'static str,
    /// Name that no option has.
    pub name: String,
    /// Names of the options that there are.
    pub names: &'static [&'static str],
}

fn there_are(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.is_empty() {
        true => "it has none".into(),
        false => format!("there are {}", quoted.join(", ")),
    }
}

impl AnyGame {
    /// Returns the game `G` without its type.
    pub(crate) const fn of<G: Notation>() -> Self {
        Self {
            name: G::NAME,
            players: G::PLAYERS,
            player_names: G::PLAYER_NAMES,
            sizes: G::SIZES,
            has_territory: G::HAS_TERRITORY,
            levels: G::LEVELS,
            compared_levels: G::COMPARED_LEVELS,
            opening_plies: G::OPENING_PLIES,
            help: G::HELP,
            lessons: G::LESSONS,
            has_solver: G::HAS_SOLVER,
            has_pgn: G::HAS_PGN,
            has_sgf: G::SGF.is_some(),
            run_settings: G::RUN_SETTINGS,
            start_fields: G::START_FIELDS,
            size: None,
            options: G::OPTIONS,
            option_names: G::OPTION_NAMES,
            rule_comment: G::rule_comment,
            player_named: G::player_named,
            rules: [
                || json(G::Rules::default()),
                || json(G::people_rules()),
                || json(G::json_rules()),
            ],
            variant: |rules, options| {
                let rules = serde_json::from_value(rules.clone());
                let rules = rules.map_err(|source| VariantError::Rules {
                    game: G::name(),
                    source,
                })?;
                let encoding = G::encoding(&rules, options.unwrap_or(G::OPTIONS))?;
                Ok(Arc::new(TypedVariant::<G> { rules, encoding }))
            },
            read_sgf: read_sgf::<G>,
        }
    }

    /// Returns the game from outside.
    pub(crate) fn outside() -> Self {
        Self {
            name: Outside::name(),
            players: Outside::players(),
            player_names: Outside::player_names(),
            ..Self::of::<Outside>()
        }
    }

    /// Returns the text about a key of the rules, for a `run.toml`. `None` if the rules have no such key.
    pub fn rule_comment(&self, key: &str) -> Option<&'static str> {
        (self.rule_comment)(key)
    }

    /// Returns the game with a board of this size.
    pub(crate) fn with_size(&self, size: u32) -> Self {
        Self {
            size: Some(size),
            ..self.clone()
        }
    }

    /// Returns the game with a board of the size that these rules name; as it is if they name none that it has.
    #[must_use]
    pub fn with_rules(&'static self, rules: &Map<String, Value>) -> &'static Self {
        let size = rules
            .get("size")
            .and_then(Value::as_u64)
            .and_then(|size| u32::try_from(size).ok());
        size.and_then(|size| registry::of_size(self, size))
            .unwrap_or(self)
    }

    /// Returns the size of the board; `None` if the board has one size.
    pub fn size(&self) -> Option<u32> {
        self.size.or(self.sizes.map(|sizes| sizes.usual))
    }

    /// Returns what a person names the game by: its name, with the size of the board if there are several (`gomoku:15`).
    pub fn title(&self) -> String {
        match self.size() {
            Some(size) => format!("{}:{size}", self.name),
            None => self.name.into(),
        }
    }

    /// True if `other` is this game, with a board of the same size if this game was named with one.
    pub fn includes(&self, other: &Self) -> bool {
        self.name == other.name && self.size.is_none_or(|size| other.size() == Some(size))
    }

    /// Returns rules, a JSON object, with the size of this game's board.
    fn sized(&self, rules: Value) -> Value {
        let size = self.size.map(|size| ("size".to_owned(), size.into()));
        changed(rules, size)
    }

    /// Returns the name of a player, e.g. `White`.
    pub fn player_name(&self, player: Player) -> &'static str {
        self.player_names[player.index()]
    }

    /// Returns the player called `name`, in any case: as the game calls it, or `first` or `second`.
    pub fn player_named(&self, name: &str) -> Option<Player> {
        (self.player_named)(name)
    }

    /// Returns the rules of self-play as a JSON object.
    pub fn rules(&self) -> Value {
        self.sized((self.rules[0])())
    }

    /// Returns the rules that people play by as a JSON object.
    pub fn people_rules(&self) -> Value {
        self.sized((self.rules[1])())
    }

    /// Returns the rules of a game in JSON that switches none, as a JSON object.
    pub fn json_rules(&self) -> Value {
        self.sized((self.rules[2])())
    }

    /// Returns the game with these rules, a JSON object in which missing keys have their defaults, and the representation with the
    /// number `options`; by default [`Notation::OPTIONS`].
    ///
    /// # Errors
    /// [`VariantError`] if there are no such rules, or no such representation.
    pub fn variant(&self, rules: &Value, options: Option<u32>) -> Result<Arc<dyn Variant>, VariantError> {
        (self.variant)(rules, options)
    }

    /// Returns the number of the representation with these options.
    ///
    /// # Errors
    /// [`UnknownOption`] with the first name that no option has.
    pub fn options_named(&self, names: &[String]) -> Result<u32, UnknownOption> {
        names.iter().try_fold(0, |options, name| {
            let bit = self.option_names.iter().position(|known| known == name);
            bit.map(|bit| options | 1 << bit).ok_or_else(|| UnknownOption {
                game: self.name,
                name: name.clone(),
                names: self.option_names,
            })
        })
    }

    /// Returns the names of the options of the representation with the number `options`; `None` if one has no name.
    pub fn options_of(&self, options: u32) -> Option<Vec<&'static str>> {
        let named = |&(bit, _): &(usize, &&str)| options >> bit & 1 == 1;
        let names = self.option_names.iter().enumerate().filter(named);
        (options >> self.option_names.len() == 0).then(|| names.map(|(_, &name)| name).collect())
    }

    /// Reads the first game of an SGF text. The size of the board is that of the text.
    ///
    /// # Errors
    /// [`SgfError`] with the first fault.
    pub fn read_sgf(&self, text: &str) -> Result<SgfGame<Arc<dyn Variant>>, SgfError> {
        (self.read_sgf)(text)
    }
}

fn read_sgf<G: Notation>(text: &str) -> Result<SgfGame<Arc<dyn Variant>>, SgfError> {
    let sgf = G::SGF.ok_or(SgfError::NoFiles(G::name()))?;
    let game = (sgf.read)(text)?;
    let encoding = G::encoding(&game.rules, G::OPTIONS)?;
    let rules = game.rules;
    Ok(SgfGame {
        rules: Arc::new(TypedVariant::<G> { rules, encoding }),
        position: game.position,
        actions: game.actions,
        names: game.names,
        ranks: game.ranks,
        result: game.result,
    })
}

impl SgfGame<Arc<dyn Variant>> {
    /// Plays the game.
    ///
    /// # Errors
    /// Sentence that says why its start or an action is not possible, which only another reader than those of this crate can cause.
    pub fn course(&self) -> Result<Course, String> {
        let start = self.rules.start(self.position.as_deref());
        let mut course = Course::new(start.map_err(|error| error.to_string())?);
        for &action in &self.actions {
            course.play(action).map_err(|error| error.to_string())?;
        }
        Ok(course)
    }
}

/// Returns rules, a JSON object, with some of them replaced.
#[must_use]
pub fn changed(mut rules: Value, changes: impl IntoIterator<Item = (String, Value)>) -> Value {
    if let Value::Object(fields) = &mut rules {
        fields.extend(changes);
    }
    rules
}

/// Returns rules as JSON; `null` if they have no such form.
fn json(rules: impl serde::Serialize) -> Value {
    serde_json::to_value(rules).unwrap_or_default()
}

/// A game with its rules and the representation of its rows. The methods are those of [`Game`](crate::Game) and
/// [`Notation`].
pub trait Variant: Debug + Send + Sync {
    /// Returns the game.
    fn game(&self) -> &'static AnyGame;
    /// Returns all rules as a JSON object.
    fn rules(&self) -> Value;
    /// Returns the layout of the rows.
    fn layout(&self) -> RowLayout;
    /// Returns the symmetries as maps of rows and policy entries.
    fn row_symmetries(&self) -> RowSymmetries;
    /// Checks that games under these rules can be written in this representation.
    ///
    /// # Errors
    /// [`StartError`] that names the rule.
    fn check(&self) -> Result<(), StartError>;
    /// Returns the usual start, or the position that a text describes.
    ///
    /// # Errors
    /// [`StartError`] if the text is not a position of this game, or the rules are not possible.
    fn start(&self, position: Option<&str>) -> Result<Box<dyn AnyState>, StartError>;
    /// Returns the state that a game in JSON begins in.
    ///
    /// # Errors
    /// Message that says why there is no such state.
    fn start_from_json(
        &self,
        start: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Box<dyn AnyState>, String>;
    /// Draws the start of a problem of this level, with a solution; if `is_held_out`, one that self-play never draws.
    fn draw_start(
        &self,
        level: u32,
        is_held_out: bool,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Box<dyn AnyState>>>;
    /// Returns the kinds of problems that are drawn, each with the variant that draws only this kind.
    fn problem_kinds(&self) -> Vec<ProblemKind<Arc<dyn Variant>>>;
    /// Returns the positions on which networks are compared. `draw(n)` gives a random number below `n`.
    fn probes(&self, draw: &mut dyn FnMut(usize) -> usize) -> Vec<Probe<Box<dyn AnyState>>>;
    /// Counts the action sequences of each length from 1 to `depth`, without a call through a pointer for each action.
    ///
    /// # Errors
    /// As [`Variant::start`].
    fn perft(&self, position: Option<&str>, depth: usize) -> Result<Vec<u64>, StartError>;
}

/// A game with its type, its rules and the representation of its rows.
#[derive(Debug)]
struct TypedVariant<G: Notation> {
    rules: G::Rules,
    encoding: G::Encoding,
}

impl<G: Notation> TypedVariant<G> {
    fn erased(&self, state: G) -> Box<dyn AnyState> {
        Box::new(Typed {
            state,
            encoding: self.encoding,
        })
    }
}

/// Returns the game, with the size of the board that rows of this representation show.
fn game_of<G: Notation>(encoding: G::Encoding) -> &'static AnyGame {
    let game = registry::find(G::name()).unwrap_or(const { &AnyGame::of::<G>() });
    let size = G::SIZES.and_then(|_| Some(G::layout(encoding).stack().ok()?.width));
    size.and_then(|size| registry::of_size(game, size))
        .unwrap_or(game)
}

impl<G: Notation> Variant for TypedVariant<G> {
    fn game(&self) -> &'static AnyGame {
        game_of::<G>(self.encoding)
    }

    fn rules(&self) -> Value {
        json(&self.rules)
    }

    fn layout(&self) -> RowLayout {
        G::layout(self.encoding)
    }

    fn row_symmetries(&self) -> RowSymmetries {
        G::row_symmetries(self.encoding)
    }

    fn check(&self) -> Result<(), StartError> {
        G::check(&self.rules, self.encoding)
    }

    fn start(&self, position: Option<&str>) -> Result<Box<dyn AnyState>, StartError> {
        Ok(self.erased(G::start(&self.rules, position)?))
    }

    fn start_from_json(
        &self,
        start: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Box<dyn AnyState>, String> {
        Ok(self.erased(G::start_from_json(&self.rules, start, fields)?))
    }

    fn draw_start(
        &self,
        level: u32,
        is_held_out: bool,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Box<dyn AnyState>>> {
        let drawn = match is_held_out {
            true => G::draw_held_out(&self.rules, level, draw),
            false => G::draw_start(&self.rules, level, draw),
        }?;
        Some(Drawn {
            start: self.erased(drawn.start),
            solution: drawn.solution,
        })
    }

    fn problem_kinds(&self) -> Vec<ProblemKind<Arc<dyn Variant>>> {
        let encoding = self.encoding;
        let kinds = G::problem_kinds(&self.rules).into_iter();
        let erased = kinds.map(|kind| ProblemKind::<Arc<dyn Variant>> {
            name: kind.name,
            share: kind.share,
            rules: Arc::new(Self {
                rules: kind.rules,
                encoding,
            }),
        });
        erased.collect()
    }

    fn probes(&self, draw: &mut dyn FnMut(usize) -> usize) -> Vec<Probe<Box<dyn AnyState>>> {
        let probes = Probe::<G>::all(&self.rules, draw).into_iter();
        let erased = probes.map(|probe| Probe {
            name: probe.name,
            state: self.erased(probe.state),
            last_turn: probe.last_turn,
        });
        erased.collect()
    }

    fn perft(&self, position: Option<&str>, depth: usize) -> Result<Vec<u64>, StartError> {
        Ok(perft(&G::start(&self.rules, position)?, depth))
    }
}

/// A state with its type. Generic code finds it in an [`AnyState`] by [`Typed::find`].
#[derive(Clone, Debug)]
pub struct Typed<G: Notation> {
    /// The state.
    pub state: G,
    /// Representation of its row.
    pub encoding: G::Encoding,
}

impl<G: Notation> Typed<G> {
    /// Returns the state with its type; `None` if it is of another game.
    pub fn find(state: &dyn AnyState) -> Option<&Self> {
        (state as &dyn Any).downcast_ref()
    }
}

impl Clone for Box<dyn AnyState> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// Defines [`AnyState`], and implements it for the states of every game. The listed methods pass the call on to the state.
macro_rules! any_state {
    ($(fn $name:ident(&$self:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        /// A state of a game, with the representation of its row. The methods are those of [`Game`](crate::Game) and [`Notation`].
        #[expect(
            missing_docs,
            clippy::missing_errors_doc,
            reason = "`Game` and `Notation` describe the methods"
        )]
        pub trait AnyState: Any + Debug + Send + Sync {
            fn game(&self) -> &'static AnyGame;
            fn copy(&self) -> Box<dyn AnyState>;
            fn play(&mut self, action: Action) -> Result<(), IllegalAction>;
            fn play_legal(&mut self, action: Action);
            fn allows(&self, symmetry: Symmetry) -> bool;
            fn write_row(&self, symmetry: Symmetry, row: &mut Vec<u32>);
            fn policy_index(&self, symmetry: Symmetry, action: Action) -> u32;
            fn json_fields(&self) -> JsonFields;
            fn write_sgf(&self, actions: &[Action], names: [&str; 2]) -> Option<Result<String, IllegalAction>>;
            $(fn $name(&$self $(, $argument: $type)*) $(-> $result)?;)*
        }

        impl<G: Notation> AnyState for Typed<G> {
            fn game(&self) -> &'static AnyGame {
                game_of::<G>(self.encoding)
            }

            fn copy(&self) -> Box<dyn AnyState> {
                Box::new(self.clone())
            }

            fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
                self.state.play(action)
            }

            fn play_legal(&mut self, action: Action) {
                self.state.play_legal(action);
            }

            fn allows(&self, symmetry: Symmetry) -> bool {
                symmetry.0 < self.state.symmetries() && self.state.allows(symmetry)
            }

            fn write_row(&self, symmetry: Symmetry, row: &mut Vec<u32>) {
                self.state.write_row(self.encoding, symmetry, row);
            }

            fn policy_index(&self, symmetry: Symmetry, action: Action) -> u32 {
                self.state.policy_index(self.encoding, symmetry, action)
            }

            fn json_fields(&self) -> JsonFields {
                self.state.json_fields(self.encoding)
            }

            /// `None` if the game has no SGF files.
            fn write_sgf(&self, actions: &[Action], names: [&str; 2]) -> Option<Result<String, IllegalAction>> {
                Some((G::SGF?.write)(&self.state, actions, names))
            }

            $(fn $name(&$self $(, $argument: $type)*) $(-> $result)? {
                $self.state.$name($($argument),*)
            })*
        }
    };
}

any_state! {
    fn fault(&self) -> Option<&str>;
    fn actions(&self) -> u32;
    fn symmetries(&self) -> u8;
    fn to_move(&self) -> Player;
    fn outcome(&self) -> Option<Outcome>;
    fn known(&self) -> Option<KnownOutcome>;
    fn ending(&self) -> Option<&'static str>;
    fn territory(&self) -> Option<Territory>;
    fn legal_actions(&self, actions: &mut Vec<Action>);
    fn position(&self) -> String;
    fn is_mid_turn(&self) -> bool;
    fn scene(&self, last_turn: &[Action]) -> Scene;
    fn clicks(&self, action: Action) -> Clicks;
    fn draw(&self, style: Style) -> String;
    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String>;
    fn write_turn(&self, actions: &[Action]) -> String;
    fn legal_text(&self) -> String;
    fn result_text(&self) -> Option<String>;
    fn outcome_name(&self) -> Option<&'static str>;
    fn action_from_json(&self, value: &Value) -> Result<Action, String>;
    fn action_to_json(&self, action: Action) -> Value;
    fn solve_actions(&self, stop: &Arc<AtomicBool>, found: &mut dyn FnMut(Action, i8));
}
