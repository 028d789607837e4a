//! Checks every game before it is stored: a stored game can be decoded, sampled and trained on.

use games::{RowLayout, codec::Expander, erased::AnyGame, registry};
use proto::{
    columns::{ColumnError, Lengths},
    v1::{Game, GameResult},
};

use crate::{
    error::OpenError,
    record::{MAX_POSITIONS, MAX_VALUES, allowance::Allowance, decisions, rules::Referee},
    window::catalog::{Labels, Listed},
};

/// Maximum length of the short texts (name, ending, actor, build, one model version) in bytes.
const MAX_TEXT: usize = 1024;
/// Maximum length of the long texts (rules, search settings, start position) in bytes.
const MAX_LONG_TEXT: usize = 64 * 1024;
/// Maximum number of model versions of a game.
const MAX_VERSIONS: usize = 4096;
/// Latest time at which a game may have ended, in milliseconds since the Unix epoch: the end of the year 9999. Clocks of actors may
/// differ, so earlier times are not compared with the clock of this machine.
const LATEST_END_MS: u64 = 253_402_300_799_999;
/// Amount by which rounding may move a value out of its range. The learner accepts it too.
pub(super) const VALUE_SLACK: f32 = 1e-3;

/// Error: a game is refused permanently, so that sending it again does not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}{problem}", .ply.map_or_else(String::new, |ply| format!("position {ply}: ")))]
pub struct Refusal {
    /// Name of the message's field.
    pub field: &'static str,
    /// Number of the position, from 0, if the fault is that of one.
    pub ply: Option<u32>,
    /// Description of the fault.
    pub problem: String,
}

/// Properties of a valid game.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Id of the game.
    pub id: [u8; 16],
    /// Number of positions with visit counts, which are the ones that can be sampled.
    pub trainable: u32,
    /// False if there was no time left to replay the game by its rules.
    pub is_replayed: bool,
    /// Values by which the game is listed.
    pub listed: Listed,
}

/// The game and representation of a store, against which games are checked.
#[derive(Debug)]
pub struct Validator {
    layout: RowLayout,
    game: &'static AnyGame,
    referee: Referee,
    /// Processor time for the referee.
    replays: Allowance,
}

impl Validator {
    /// Returns the validator of a game's representation.
    ///
    /// # Errors
    /// [`OpenError::Refused`] if this build has no such game or representation.
    pub fn new(name: &str, options: u32) -> Result<Self, OpenError> {
        let refused =
            |error: &dyn std::fmt::Display| OpenError::Refused(format!("games cannot be checked: {error}"));
        let game = registry::find(name).map_err(|error| refused(&error))?;
        let variant = game.variant(&game.rules(), Some(options));
        Ok(Self {
            layout: variant.map_err(|error| refused(&error))?.layout(),
            game,
            referee: Referee::new(game, options),
            replays: Allowance::default(),
        })
    }

    /// Returns the name of the game.
    pub fn game(&self) -> &'static str {
        self.game.name
    }

    /// Checks that a game is consistent and fits the representation, and that it follows the rules unless the allowance is used up.
    ///
    /// # Errors
    /// [`Refusal`] naming the first field that is wrong.
    pub fn check(&self, game: &Game) -> Result<Checked, Refusal> {
        let RowLayout {
            game: name, options, ..
        } = &self.layout;
        let wrong_id = |_| Refusal::new("id", format!("{} bytes, 16 expected", game.id.len()));
        let id = game.id.as_ref().try_into().map_err(wrong_id)?;
        require(game.game == *name, "game", || {
            format!("`{:.40}`, this store is for `{name}`", game.game)
        })?;
        require(game.options == *options, "options", || {
            format!(
                "{}, this store is for representation options {options}",
                game.options
            )
        })?;
        texts(game)?;
        self.referee.rules(&game.rules_json)?;
        self.bounds(game)?;
        let positions = lengths(game)?;
        row_lengths(game, positions, self.layout.row_len())?;
        let trainable = self.positions(game)?;
        values(game, self.game.players, self.layout.codec().lowest_value())?;
        self.territory(game)?;
        let replayed = self.replays.spend(|| self.referee.replay(game));
        let is_replayed = replayed.transpose()?.is_some();
        Ok(Checked {
            id,
            trainable,
            is_replayed,
            listed: Labels::default().listed(game, positions as u32),
        })
    }

    /// Checks that there are such actions, and the time of the end.
    fn bounds(&self, game: &Game) -> Result<(), Refusal> {
        let most = self.layout.actions;
        if let Some(action) = game.actions.iter().find(|&&action| action >= most) {
            let problem = format!(
                "{action} is not an action of {}, which has {most}",
                self.game.name
            );
            return Err(Refusal::new("actions", problem));
        }
        require(game.finished_at_ms <= LATEST_END_MS, "finished_at_ms", || {
            format!("{} is after the year 9999", game.finished_at_ms)
        })
    }

    /// Checks the owners of the squares and the score. A game may have none.
    fn territory(&self, game: &Game) -> Result<(), Refusal> {
        let (owners, score) = (&game.territory, game.territory_score);
        let field = "territory_score";
        require(score.is_finite(), field, || format!("{score}"))?;
        if owners.is_empty() {
            return require(score == 0.0, field, || {
                format!("{score} in a game without a territory")
            });
        }
        let squares = match self.game.has_territory {
            true => self.layout.stack().map_or(0, games::PlaneStack::squares),
            false => 0,
        };
        equal("territory", owners.len(), squares)?;
        let are_owners = owners.iter().all(|owner| (-1..=1).contains(&owner.cast_signed()));
        require(are_owners, "territory", || "-1, 0 and 1 are possible".into())
    }

    /// Checks the rows and the visits, and counts the positions that have visits.
    fn positions(&self, game: &Game) -> Result<u32, Refusal> {
        let entries = Lengths::Varying(&game.visit_counts).total(game.actions.len());
        within_limit("visit_counts", entries)?;
        let mut searches = column(game.decision_columns())?;
        let unvisited = game.decisions.as_ref().map(|found| &found.unvisited_actions);
        within_limit(
            "decisions.unvisited_actions",
            unvisited.map_or(0, Vec::len) as u64,
        )?;
        let rows = column(game.row_columns())?;
        let policies = column(game.policy_columns())?;
        let (codec, actions) = (self.layout.codec(), self.layout.actions);
        // Rows of one length share the actions of the layout. If rows differ in length, each has its own actions.
        let mut expander = self.layout.row_len().is_none().then(|| codec.expander());
        // Marks each policy index with the last position that named it.
        let mut named = vec![0u32; actions as usize];
        let mut trainable = 0;
        for (ply, (row, (visit_actions, visits))) in (0u32..).zip(rows.zip(policies)) {
            match &mut expander {
                None => codec.validate(row),
                Some(expander) => {
                    expander.clear();
                    expander.push(row)
                }
            }
            .map_err(|error| Refusal::new("rows", format!("position {ply}: {error}")))?;
            let search = searches.as_mut().and_then(Iterator::next);
            let unvisited = search.as_ref().map_or(&[][..], |search| search.unvisited);
            let has_actions = !visit_actions.is_empty() || !unvisited.is_empty();
            let candidates = expander
                .as_deref()
                .filter(|_| has_actions)
                .and_then(Expander::candidates);
            let visited = visit_actions.iter().map(|action| ("visit_actions", action));
            let others = unvisited
                .iter()
                .map(|action| ("decisions.unvisited_actions", action));
            for (field, &action) in visited.chain(others) {
                let is_possible = candidates
                    .as_ref()
                    .is_none_or(|candidates| candidates.place(action).is_some());
                let problem = match named.get_mut(action as usize).filter(|_| is_possible) {
                    None => format!("position {ply} has no policy index {action}"),
                    Some(mark) if *mark == ply + 1 => {
                        format!("duplicate policy index {action} at position {ply}")
                    }
                    Some(mark) => {
                        *mark = ply + 1;
                        continue;
                    }
                };
                return Err(Refusal::new(field, problem));
            }
            if let Some(search) = &search {
                let checked = decisions::check(search, visit_actions.len(), codec.lowest_value());
                checked
                    .map_err(|(field, problem)| Refusal::new(field, format!("position {ply} {problem}")))?;
            }
            if visit_actions.is_empty() {
                continue;
            }
            trainable += 1;
            let sum: u64 = visits.iter().map(|&visits| u64::from(visits)).sum();
            require(sum > 0 && sum <= u64::from(u32::MAX), "visits", || {
                format!("position {ply} has {sum} visits in all")
            })?;
        }
        Ok(trainable)
    }
}

impl Refusal {
    pub(super) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self {
            field,
            ply: None,
            problem: problem.into(),
        }
    }
}

pub(super) fn require(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    match holds {
        true => Ok(()),
        false => Err(Refusal::new(field, problem())),
    }
}

fn equal(field: &'static str, found: usize, expected: usize) -> Result<(), Refusal> {
    require(found == expected, field, || {
        format!("{found} entries, {expected} expected")
    })
}

fn within_limit(field: &'static str, values: u64) -> Result<(), Refusal> {
    require(values <= MAX_VALUES as u64, field, || {
        format!("{values} values, at most {MAX_VALUES} are taken")
    })
}

/// Turns the error of a view of the game's columns into a refusal.
pub(super) fn column<T>(view: Result<T, ColumnError>) -> Result<T, Refusal> {
    view.map_err(|error| {
        let problem = format!("{} entries, {} expected", error.found, error.expected);
        Refusal::new(error.column, problem)
    })
}

fn texts(game: &Game) -> Result<(), Refusal> {
    for (field, text, limit) in [
        ("rules_json", &game.rules_json, MAX_LONG_TEXT),
        ("start", &game.start, MAX_LONG_TEXT),
        ("search_json", &game.search_json, MAX_LONG_TEXT),
        ("ending", &game.ending, MAX_TEXT),
        ("actor", &game.actor, MAX_TEXT),
        ("build", &game.build, MAX_TEXT),
        ("provenance", &game.provenance, MAX_TEXT),
    ] {
        require(text.len() <= limit, field, || {
            format!("{} bytes, at most {limit} are taken", text.len())
        })?;
    }
    for (field, texts) in [
        ("model_providers", &game.model_providers),
        ("model_versions", &game.model_versions),
    ] {
        let are_short = texts.iter().all(|text| text.len() <= MAX_TEXT);
        require(texts.len() <= MAX_VERSIONS && are_short, field, || {
            format!("more than {MAX_VERSIONS}, or one of more than {MAX_TEXT} bytes")
        })?;
    }
    Ok(())
}

/// Checks the columns with one entry for each position, and those that name models. Returns the number of positions.
fn lengths(game: &Game) -> Result<usize, Refusal> {
    let positions = game.actions.len();
    require((1..=MAX_POSITIONS).contains(&positions), "actions", || {
        format!("{positions} positions, 1 to {MAX_POSITIONS} are possible")
    })?;
    let models = game.model_versions.len();
    let optional = |found: usize, expected: usize| if found == 0 { 0 } else { expected };
    for (field, found, expected) in [
        ("movers", game.movers.len(), positions),
        ("visit_counts", game.visit_counts.len(), positions),
        ("root_values", game.root_values.len(), positions),
        (
            "model_of_position",
            game.model_of_position.len(),
            optional(models + game.model_of_position.len(), positions),
        ),
        (
            "model_providers",
            game.model_providers.len(),
            optional(game.model_providers.len(), models),
        ),
        (
            "evaluation_counts",
            game.evaluation_counts.len(),
            game.evaluation_models.len(),
        ),
        (
            "policy_surprises",
            game.policy_surprises.len(),
            optional(game.policy_surprises.len(), positions),
        ),
    ] {
        equal(field, found, expected)?;
    }
    require(game.movers.iter().all(|&mover| mover <= 1), "movers", || {
        "0 and 1 are possible".into()
    })?;
    for (field, column) in [
        ("model_of_position", &game.model_of_position),
        ("evaluation_models", &game.evaluation_models),
    ] {
        let are_known = column.iter().all(|&model| (model as usize) < models);
        require(are_known, field, || {
            format!("a model beyond the {models} in model_versions")
        })?;
    }
    let mut surprises = game.policy_surprises.iter();
    let are_surprises = surprises.all(|&surprise| surprise >= 0.0 && surprise.is_finite());
    require(are_surprises, "policy_surprises", || {
        "a number that is negative or not finite".into()
    })?;
    Ok(positions)
}

/// Checks the lengths of the rows. `length` is the length of every row; `None` if rows differ in length.
fn row_lengths(game: &Game, positions: usize, length: Option<usize>) -> Result<(), Refusal> {
    let values = game.rows.len();
    within_limit("rows", values as u64)?;
    let Some(length) = length else {
        equal("row_lengths", game.row_lengths.len(), positions)?;
        let have_values = game.row_lengths.iter().all(|&length| length > 0);
        return require(have_values, "row_lengths", || "an empty row".into());
    };
    require(game.row_lengths.is_empty(), "row_lengths", || {
        format!("none are expected, since every row has {length} values")
    })?;
    require(values == positions * length, "rows", || {
        format!("{values} values, {positions} rows of {length} values are expected")
    })
}

/// Checks the values and the result. `least` is the lowest value that a position can have.
fn values(game: &Game, players: u8, least: f32) -> Result<(), Refusal> {
    let is_value = |value: f32| (least - VALUE_SLACK..=1.0 + VALUE_SLACK).contains(&value);
    if let Some(ply) = game.root_values.iter().position(|&value| !is_value(value)) {
        let problem = format!("position {ply} has no value in [{least}, 1]");
        return Err(Refusal::new("root_values", problem));
    }
    require(is_value(game.score), "score", || {
        format!("{} is not in [{least}, 1]", game.score)
    })?;
    require((0.0..=1.0).contains(&game.discount), "discount", || {
        format!("{}, a discount is above 0 and at most 1", game.discount)
    })?;
    let decided = match GameResult::try_from(game.result) {
        Ok(GameResult::FirstWon) => Some(1.0),
        Ok(GameResult::SecondWon) => Some(-1.0),
        Ok(GameResult::Draw) => Some(0.0),
        Ok(GameResult::Scored) => None,
        Ok(GameResult::Unspecified) | Err(_) => {
            return Err(Refusal::new("result", "not set, or unknown to this build"));
        }
    };
    require(decided.is_none() == (players == 1), "result", || {
        "games of one player are scored, games of two players are won, lost or drawn".into()
    })?;
    match decided {
        Some(score) => require(game.score == score, "score", || {
            format!("{} does not fit the result, {score} would", game.score)
        }),
        None => require(game.movers.iter().all(|&mover| mover == 0), "movers", || {
            "a scored game has one player".into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use proto::{
        decisions::{DecisionEntry, Recorder},
        v1::{DecisionKind, Decisions},
    };

    use super::*;
    use crate::synthetic;

    fn validator() -> Validator {
        Validator::new("paco-sako", 1).unwrap()
    }

    #[test]
    fn positions_without_visits_are_no_training_targets() {
        let mut game = synthetic::game(1, 10);
        let checked = validator().check(&game).unwrap();
        assert_eq!((checked.listed.positions, checked.trainable), (10, 10));
        let first = game.visit_counts[0] as usize;
        game.visit_counts[0] = 0;
        game.visit_actions.drain(..first);
        game.visits.drain(..first);
        assert_eq!(validator().check(&game).unwrap().trainable, 9);
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        type Change = fn(&mut Game);
        let cases: &[(&str, &[Change])] = &[
            ("id", &[|game| game.id = vec![1; 15].into()]),
            ("game", &[|game| game.game = "chess".into()]),
            ("options", &[|game| game.options = 2]),
            ("rules_json", &[|game| game.rules_json = "x".repeat(70_000)]),
            ("actor", &[|game| game.actor = "x".repeat(2_000)]),
            (
                "actions",
                &[|game| game.actions.clear(), |game| game.actions[3] = 1_000_000],
            ),
            ("start", &[|game| game.start = "no position".into()]),
            ("finished_at_ms", &[|game| game.finished_at_ms = u64::MAX]),
            (
                "movers",
                &[
                    |game| game.movers = vec![0; 9].into(),
                    |game| game.movers = vec![2; 10].into(),
                ],
            ),
            (
                "rows",
                &[
                    |game| game.rows.truncate(379),
                    |game| game.rows.truncate(10 * 37),
                    |game| game.rows.clear(),
                    // An index of a plane that is not sparse, one beyond all planes, and a constant above its largest value.
                    |game| game.rows[40] = 25 * 64,
                    |game| game.rows[40] = 4_000_000_000,
                    |game| *game.rows.last_mut().unwrap() = 101,
                ],
            ),
            (
                "row_lengths",
                &[
                    |game| game.row_lengths = vec![38; 9],
                    |game| game.row_lengths = vec![38; 10],
                ],
            ),
            (
                "visit_counts",
                &[
                    |game| game.visit_counts.truncate(9),
                    |game| game.visit_counts[0] = u32::MAX,
                ],
            ),
            (
                "visit_actions",
                &[
                    |game| game.visit_counts[0] += 1,
                    |game| game.visit_actions[0] = u32::MAX,
                    |game| game.visit_actions[0] = 132,
                    |game| game.visit_actions[1] = game.visit_actions[0],
                ],
            ),
            (
                "visits",
                &[|game| game.visits.push(1), |game| game.visits.fill(0)],
            ),
            (
                "root_values",
                &[
                    |game| game.root_values.truncate(9),
                    |game| game.root_values[3] = f32::NAN,
                    |game| game.root_values[3] = 1.5,
                    |game| game.root_values[0] = -1.5,
                ],
            ),
            (
                "score",
                &[|game| game.score = f32::INFINITY, |game| game.score = 0.5],
            ),
            (
                "discount",
                &[|game| game.discount = 1.5, |game| game.discount = f32::NAN],
            ),
            (
                "result",
                &[
                    |game| game.result = 0,
                    |game| game.result = 77,
                    |game| game.result = GameResult::Scored.into(),
                ],
            ),
            (
                "model_of_position",
                &[
                    |game| game.model_of_position[4] = 2,
                    |game| game.model_versions.clear(),
                ],
            ),
            ("evaluation_counts", &[|game| game.evaluation_models = vec![0]]),
            (
                "evaluation_models",
                &[|game| {
                    game.evaluation_models = vec![2];
                    game.evaluation_counts = vec![5];
                }],
            ),
            (
                "model_providers",
                &[|game| game.model_providers = vec!["cpu".into()]],
            ),
            (
                "policy_surprises",
                &[
                    |game| game.policy_surprises = vec![0.5; 9],
                    |game| game.policy_surprises = vec![-0.5; 10],
                ],
            ),
        ];
        for (field, changes) in cases {
            for (number, change) in changes.iter().enumerate() {
                let mut game = synthetic::game(1, 10);
                change(&mut game);
                let found = validator().check(&game).unwrap_err().field;
                assert_eq!(found, *field, "change {number}");
            }
        }
        let mut rounded = synthetic::game(1, 10);
        rounded.root_values[0] = 1.000_001;
        validator().check(&rounded).unwrap();
        let error = Validator::new("gomok", 0).unwrap_err().to_string();
        assert!(error.contains("did you mean gomoku"), "{error}");
        assert!(Validator::new("paco-sako", 8).is_err());
    }

    /// Changes the first number of a column of halves.
    fn first(column: &mut bytes::Bytes, value: f32) {
        let mut numbers = column.to_vec();
        numbers[..2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes());
        *column = numbers.into();
    }

    fn kind(columns: &mut Decisions, kind: u8) {
        let mut kinds = columns.kinds.to_vec();
        kinds[0] = kind;
        columns.kinds = kinds.into();
    }

    #[test]
    fn search_results_are_checked() {
        let whole = synthetic::with_decisions(synthetic::game(1, 10));
        let found = validator().check(&whole).unwrap();
        assert_eq!((found.listed.positions, found.trainable), (10, 10));
        let columns = whole.decisions.as_ref().unwrap();
        assert!(
            columns.unvisited_counts[0] > 0,
            "the first position has unvisited actions"
        );
        let visited = whole.visit_actions[0];
        let refused = |change: &dyn Fn(&mut Decisions)| {
            let mut game = whole.clone();
            change(game.decisions.as_mut().unwrap());
            validator().check(&game).unwrap_err().field
        };
        type Change<'a> = &'a dyn Fn(&mut Decisions);
        let cases: [(&str, Change<'_>); 10] = [
            ("played", &|columns| columns.played.truncate(9)),
            ("played", &|columns| columns.played[0] = 1_000),
            ("kinds", &|columns| kind(columns, 3)),
            // Unvisited actions where nothing is recorded.
            ("unvisited_actions", &|columns| kind(columns, 0)),
            ("unvisited_actions", &|columns| columns.unvisited_actions[0] = 132),
            ("unvisited_actions", &|columns| {
                columns.unvisited_actions[0] = visited
            }),
            ("unvisited_actions", &|columns| columns.unvisited_counts[0] += 1),
            ("values", &|columns| columns.values = columns.values.slice(2..)),
            // Each prior is a probability, but their sum is above 1.
            ("visited_priors", &|columns| {
                first(&mut columns.unvisited_priors, 0.9)
            }),
            ("values", &|columns| first(&mut columns.values, f32::INFINITY)),
        ];
        for (number, (column, change)) in cases.into_iter().enumerate() {
            assert_eq!(refused(change), format!("decisions.{column}"), "case {number}");
        }
        type Column = fn(&mut Decisions) -> &mut bytes::Bytes;
        let numbers: [(&str, Column, f32); 4] = [
            ("visited_priors", |columns| &mut columns.visited_priors, -0.5),
            ("unvisited_priors", |columns| &mut columns.unvisited_priors, -0.5),
            ("values", |columns| &mut columns.values, -1.5),
            ("evaluations", |columns| &mut columns.evaluations, -1.5),
        ];
        for (name, column, too_low) in numbers {
            for value in [f32::NAN, 1.5, too_low] {
                let found = refused(&|columns| first(column(columns), value));
                assert_eq!(found, format!("decisions.{name}"), "{value}");
            }
        }
        // A refuted action has the prior 0.
        let mut game = whole.clone();
        first(&mut game.decisions.as_mut().unwrap().unvisited_priors, 0.0);
        validator().check(&game).unwrap();
        game.visit_counts[0] += 1;
        assert_eq!(
            validator().check(&game).unwrap_err().field,
            "decisions.visited_priors"
        );
        let one_player = Validator::new("generator", 0).unwrap();
        let mut game = generator();
        let visited = game.visit_actions.len();
        game.decisions = Some(generator_decisions(-0.5, visited));
        let error = one_player.check(&game).unwrap_err();
        assert_eq!(
            error.field, "decisions.values",
            "values of one player are in [0, 1]"
        );
        game.decisions = Some(generator_decisions(0.5, visited));
        one_player.check(&game).unwrap();
    }

    fn generator_decisions(value: f32, visited: usize) -> Decisions {
        let mut recorder = Recorder::default();
        recorder.push(&DecisionEntry {
            kind: DecisionKind::Searched,
            visited: &vec![(0.01, value); visited],
            unvisited: &[],
            evaluation: 0.25,
            played: 0,
        });
        recorder.finish()
    }

    /// Returns a game with one player and rows of varying length: one move, cut off after it.
    fn generator() -> Game {
        synthetic::random::<games::generator::GeneratorGame>(&Default::default(), 0, "", 1, 1)
    }

    /// Rows with examples belong to a store of the representation that holds them. A game of rows without any may be there too.
    #[test]
    fn rows_with_examples_need_their_representation() {
        use games::generator::GeneratorGame;

        let start = r#"{"target":[[1]],"second_target":[[2]],"examples":[{"input":[[2]],"output":[[1]]}]}"#;
        let plain = generator();
        let with = synthetic::random::<GeneratorGame>(&Default::default(), 0, start, 1, 1);
        for (options, game, is_valid) in [
            (0, plain.clone(), true),
            (0, with.clone(), false),
            (1, plain, true),
            (1, with, true),
        ] {
            let game = Game { options, ..game };
            let checked = Validator::new("generator", options).unwrap().check(&game);
            assert_eq!(checked.is_ok(), is_valid, "{checked:?}");
            let Err(refusal) = checked else { continue };
            assert_eq!(refusal.field, "rows");
            assert!(refusal.to_string().contains("1 examples"), "{refusal}");
        }
    }

    #[test]
    fn a_territory_has_an_owner_for_each_square() {
        let validator = Validator::new("go:3", 0).unwrap();
        let game = synthetic::go(1);
        validator.check(&game).unwrap();
        let none = Game {
            territory: Default::default(),
            territory_score: 0.0,
            ..game.clone()
        };
        validator.check(&none).unwrap();
        let refused = |change: fn(&mut Game)| {
            let mut game = game.clone();
            change(&mut game);
            validator.check(&game).unwrap_err().field
        };
        assert_eq!(refused(|game| game.territory = vec![0; 8].into()), "territory");
        assert_eq!(refused(|game| game.territory = vec![0; 10].into()), "territory");
        assert_eq!(refused(|game| game.territory = vec![2; 9].into()), "territory");
        assert_eq!(
            refused(|game| game.territory_score = f32::INFINITY),
            "territory_score"
        );
        assert_eq!(
            refused(|game| (game.territory, game.territory_score) = (Default::default(), 0.5)),
            "territory_score"
        );
        let mut other = synthetic::game(1, 10);
        other.territory = vec![0; 64].into();
        let error = super::tests::validator().check(&other).unwrap_err();
        assert_eq!(error.field, "territory", "in Paco Ŝako nobody owns squares");
    }

    #[test]
    fn games_of_one_player_and_of_varying_rows_are_checked() {
        let validator = Validator::new("generator", 0).unwrap();
        assert_eq!(validator.check(&generator()).unwrap().trainable, 1);
        let refused = |change: &dyn Fn(&mut Game)| {
            let mut game = generator();
            change(&mut game);
            validator.check(&game).unwrap_err().field
        };
        assert_eq!(refused(&|game| game.row_lengths.clear()), "row_lengths");
        assert_eq!(refused(&|game| game.rows[1] = u32::MAX), "rows");
        // The index is below the layout's number of actions, but it is not a move of an imp of this position.
        assert_eq!(
            refused(&|game| game.visit_actions[0] = validator.layout.actions - 1),
            "visit_actions"
        );
        assert_eq!(refused(&|game| game.score = -0.5), "score");
        assert_eq!(refused(&|game| game.root_values[0] = -0.5), "root_values");
        assert_eq!(refused(&|game| game.movers = vec![1].into()), "movers");
        assert_eq!(
            refused(&|game| (game.result, game.score) = (GameResult::FirstWon.into(), 1.0)),
            "result"
        );
    }
}
