//! Checks every game before it is stored: a stored game can be decoded, sampled and trained on.

use games::{RowLayout, codec::Expander, registry};
use proto::{
    columns::{ColumnError, Lengths},
    v1::{Game, GameResult},
};

use crate::{
    error::UnknownLayout,
    record::{MAX_POSITIONS, MAX_VALUES, decisions},
    window::catalog::{Labels, Listed},
};

/// Maximum length of the short texts (name, ending, actor, build, one model version) in bytes.
const MAX_TEXT: usize = 1024;
/// Maximum length of the long texts (rules, search settings, start position) in bytes.
const MAX_LONG_TEXT: usize = 64 * 1024;
/// Maximum number of model versions of a game.
const MAX_VERSIONS: usize = 4096;
/// Amount by which rounding may move a value out of its range. The learner accepts it too.
pub(super) const VALUE_SLACK: f32 = 1e-3;

/// Error: a game is refused permanently, so that sending it again does not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Refusal {
    /// Name of the message's field.
    pub field: &'static str,
    /// Description of the fault.
    pub problem: String,
}

/// Properties of a valid game.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Id of the game.
    pub id: [u8; 16],
    /// Number of positions.
    pub positions: u32,
    /// Number of positions with visit counts, which are the ones that can be sampled.
    pub trainable: u32,
    /// Id of the game that this one replaces, if any.
    pub replaces: Option<[u8; 16]>,
    /// Values by which the game is listed.
    pub listed: Listed,
}

/// The game and representation of a store, against which games are checked.
#[derive(Clone, Debug)]
pub struct Validator {
    layout: RowLayout,
    /// Number of players, 1 or 2.
    players: u8,
}

impl Validator {
    /// Returns the validator of a game's representation.
    ///
    /// # Errors
    /// [`UnknownLayout`] if this build has no such game or representation.
    pub fn new(name: &str, options: u32) -> Result<Self, UnknownLayout> {
        let game = registry::find(name).map_err(|error| UnknownLayout(error.to_string()))?;
        let layout = game.layout(options);
        Ok(Self {
            layout: layout.map_err(|error| UnknownLayout(error.to_string()))?,
            players: game.players,
        })
    }

    /// Checks that a game is consistent and fits the representation.
    ///
    /// # Errors
    /// [`Refusal`] naming the first field that is wrong.
    pub fn check(&self, game: &Game) -> Result<Checked, Refusal> {
        let RowLayout {
            game: name, options, ..
        } = &self.layout;
        let id = id("id", &game.id)?;
        let replaces = match game.replaces.as_ref() {
            [] => None,
            replaces => Some(self::id("replaces", replaces)?),
        };
        require(replaces != Some(id), "replaces", || {
            "a game cannot replace itself".into()
        })?;
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
        let positions = lengths(game)?;
        row_lengths(game, positions, self.layout.row_len())?;
        let trainable = self.positions(game)?;
        values(game, self.players, self.layout.codec().lowest_value())?;
        Ok(Checked {
            id,
            positions: positions as u32,
            trainable,
            replaces,
            listed: Labels::default().listed(game, positions as u32),
        })
    }

    /// Checks the rows and the visits, and counts the positions that have visits.
    fn positions(&self, game: &Game) -> Result<u32, Refusal> {
        let entries = Lengths::Varying(&game.visit_counts).total(game.actions.len());
        require(entries <= MAX_VALUES as u64, "visit_counts", || {
            format!("{entries} entries, at most {MAX_VALUES} are taken")
        })?;
        let mut searches = column(game.decision_columns())?;
        let unvisited = game
            .decisions
            .as_ref()
            .map_or(0, |found| found.unvisited_actions.len());
        require(unvisited <= MAX_VALUES, "decisions.unvisited_actions", || {
            format!("{unvisited} entries, at most {MAX_VALUES} are taken")
        })?;
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
            .map_err(|error| Refusal {
                field: "rows",
                problem: format!("position {ply}: {error}"),
            })?;
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
                match named.get_mut(action as usize).filter(|_| is_possible) {
                    None => {
                        return Err(Refusal {
                            field,
                            problem: format!("position {ply} has no policy index {action}"),
                        });
                    }
                    Some(mark) if *mark == ply + 1 => {
                        return Err(Refusal {
                            field,
                            problem: format!("duplicate policy index {action} at position {ply}"),
                        });
                    }
                    Some(mark) => *mark = ply + 1,
                }
            }
            if let Some(search) = &search {
                decisions::check(ply, search, visit_actions.len(), codec.lowest_value())?;
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

fn id(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], Refusal> {
    bytes.try_into().map_err(|_| Refusal {
        field,
        problem: format!("{} bytes, 16 expected", bytes.len()),
    })
}

fn require(holds: bool, field: &'static str, problem: impl FnOnce() -> String) -> Result<(), Refusal> {
    if holds {
        Ok(())
    } else {
        Err(Refusal {
            field,
            problem: problem(),
        })
    }
}

fn equal(field: &'static str, found: usize, expected: usize) -> Result<(), Refusal> {
    require(found == expected, field, || {
        format!("{found} entries, {expected} expected")
    })
}

/// Turns the error of a view of the game's columns into a refusal.
fn column<T>(view: Result<T, ColumnError>) -> Result<T, Refusal> {
    view.map_err(|error| Refusal {
        field: error.column,
        problem: format!("{} entries, {} expected", error.found, error.expected),
    })
}

fn texts(game: &Game) -> Result<(), Refusal> {
    let limited = [
        ("rules_json", &game.rules_json, MAX_LONG_TEXT),
        ("start", &game.start, MAX_LONG_TEXT),
        ("search_json", &game.search_json, MAX_LONG_TEXT),
        ("ending", &game.ending, MAX_TEXT),
        ("actor", &game.actor, MAX_TEXT),
        ("build", &game.build, MAX_TEXT),
        ("provenance", &game.provenance, MAX_TEXT),
    ];
    for (field, text, limit) in limited {
        require(text.len() <= limit, field, || {
            format!("{} bytes, at most {limit} are taken", text.len())
        })?;
    }
    require(
        game.model_providers
            .iter()
            .all(|provider| provider.len() <= MAX_TEXT),
        "model_providers",
        || format!("one of more than {MAX_TEXT} bytes"),
    )?;
    require(
        game.model_versions.len() <= MAX_VERSIONS
            && game
                .model_versions
                .iter()
                .all(|version| version.len() <= MAX_TEXT),
        "model_versions",
        || format!("more than {MAX_VERSIONS}, or one of more than {MAX_TEXT} bytes"),
    )
}

/// Checks the columns with one entry for each position. Returns the number of positions.
fn lengths(game: &Game) -> Result<usize, Refusal> {
    let positions = game.actions.len();
    require((1..=MAX_POSITIONS).contains(&positions), "actions", || {
        format!("{positions} positions, 1 to {MAX_POSITIONS} are possible")
    })?;
    equal("movers", game.movers.len(), positions)?;
    require(game.movers.iter().all(|&mover| mover <= 1), "movers", || {
        "0 and 1 are possible".into()
    })?;
    equal("visit_counts", game.visit_counts.len(), positions)?;
    equal("root_values", game.root_values.len(), positions)?;
    if !game.model_versions.is_empty() || !game.model_of_position.is_empty() {
        equal("model_of_position", game.model_of_position.len(), positions)?;
        let known = game.model_versions.len();
        require(
            game.model_of_position
                .iter()
                .all(|&model| (model as usize) < known),
            "model_of_position",
            || format!("a model beyond the {known} in model_versions"),
        )?;
    }
    let providers = game.model_providers.len();
    if providers > 0 {
        equal("model_providers", providers, game.model_versions.len())?;
    }
    let runs = game.evaluation_models.len();
    equal("evaluation_counts", game.evaluation_counts.len(), runs)?;
    let known = game.model_versions.len();
    require(
        game.evaluation_models
            .iter()
            .all(|&model| (model as usize) < known),
        "evaluation_models",
        || format!("a model beyond the {known} in model_versions"),
    )?;
    let surprises = game.policy_surprises.len();
    if surprises > 0 {
        equal("policy_surprises", surprises, positions)?;
    }
    let is_surprise = |surprise: f32| surprise >= 0.0 && surprise.is_finite();
    require(
        game.policy_surprises
            .iter()
            .all(|&surprise| is_surprise(surprise)),
        "policy_surprises",
        || "a number that is negative or not finite".into(),
    )?;
    Ok(positions)
}

/// Checks the lengths of the rows. `length` is the length of every row; `None` if rows differ in length.
fn row_lengths(game: &Game, positions: usize, length: Option<usize>) -> Result<(), Refusal> {
    let values = game.rows.len();
    require(values <= MAX_VALUES, "rows", || {
        format!("{values} values, at most {MAX_VALUES} are taken")
    })?;
    match length {
        Some(length) => {
            require(game.row_lengths.is_empty(), "row_lengths", || {
                format!("none are expected, since every row has {length} values")
            })?;
            require(values == positions * length, "rows", || {
                format!("{values} values, {positions} rows of {length} values are expected")
            })
        }
        None => {
            equal("row_lengths", game.row_lengths.len(), positions)?;
            require(
                game.row_lengths.iter().all(|&length| length > 0),
                "row_lengths",
                || "an empty row".into(),
            )
        }
    }
}

/// Checks the values and the result. `least` is the lowest value that a position can have.
fn values(game: &Game, players: u8, least: f32) -> Result<(), Refusal> {
    let is_value = |value: f32| (least - VALUE_SLACK..=1.0 + VALUE_SLACK).contains(&value);
    if let Some(ply) = game.root_values.iter().position(|&value| !is_value(value)) {
        return Err(Refusal {
            field: "root_values",
            problem: format!("position {ply} has no value in [{least}, 1]"),
        });
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
            return Err(Refusal {
                field: "result",
                problem: "not set, or unknown to this build".into(),
            });
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
        decisions::{Entry, Recorder},
        v1::{DecisionKind, Decisions},
    };

    use super::*;
    use crate::synthetic;

    fn validator() -> Validator {
        Validator::new("paco-sako", 1).unwrap()
    }

    fn refused(change: impl FnOnce(&mut Game)) -> &'static str {
        let mut game = synthetic::game(1, 10);
        change(&mut game);
        validator().check(&game).unwrap_err().field
    }

    #[test]
    fn a_good_game_passes() {
        let checked = validator().check(&synthetic::game(1, 10)).unwrap();
        assert_eq!(checked.positions, 10);
        assert_eq!(checked.trainable, 10);
    }

    #[test]
    fn positions_without_visits_are_no_training_targets() {
        let mut game = synthetic::game(1, 10);
        let first = game.visit_counts[0] as usize;
        game.visit_counts[0] = 0;
        game.visit_actions.drain(..first);
        game.visits.drain(..first);
        assert_eq!(validator().check(&game).unwrap().trainable, 9);
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        assert_eq!(refused(|game| game.id = vec![1; 15].into()), "id");
        assert_eq!(refused(|game| game.game = "chess".into()), "game");
        assert_eq!(refused(|game| game.options = 2), "options");
        assert_eq!(refused(|game| game.rules_json = "x".repeat(70_000)), "rules_json");
        assert_eq!(refused(|game| game.actor = "x".repeat(2_000)), "actor");
        assert_eq!(refused(|game| game.actions.clear()), "actions");
        assert_eq!(refused(|game| game.movers = vec![0; 9].into()), "movers");
        assert_eq!(refused(|game| game.movers = vec![2; 10].into()), "movers");
        assert_eq!(refused(|game| game.rows.truncate(379)), "rows");
        assert_eq!(refused(|game| game.rows.clear()), "rows");
        assert_eq!(refused(|game| game.row_lengths = vec![38; 9]), "row_lengths");
        assert_eq!(refused(|game| game.row_lengths = vec![38; 10]), "row_lengths");
        assert_eq!(refused(|game| game.visit_counts.truncate(9)), "visit_counts");
        assert_eq!(refused(|game| game.visit_counts[0] = u32::MAX), "visit_counts");
        assert_eq!(refused(|game| game.visit_counts[0] += 1), "visit_actions");
        assert_eq!(refused(|game| game.visit_actions[0] = u32::MAX), "visit_actions");
        assert_eq!(
            refused(|game| game.visit_actions[1] = game.visit_actions[0]),
            "visit_actions"
        );
        assert_eq!(refused(|game| game.visits.push(1)), "visits");
        assert_eq!(refused(|game| game.visits.fill(0)), "visits");
        assert_eq!(refused(|game| game.root_values.truncate(9)), "root_values");
        assert_eq!(refused(|game| game.root_values[3] = f32::NAN), "root_values");
        assert_eq!(refused(|game| game.root_values[3] = 1.5), "root_values");
        assert_eq!(refused(|game| game.score = f32::INFINITY), "score");
        assert_eq!(refused(|game| game.score = 0.5), "score");
        assert_eq!(refused(|game| game.discount = 1.5), "discount");
        assert_eq!(refused(|game| game.discount = f32::NAN), "discount");
        assert_eq!(refused(|game| game.result = 0), "result");
        assert_eq!(refused(|game| game.result = 77), "result");
        assert_eq!(refused(|game| game.result = GameResult::Scored.into()), "result");
        assert_eq!(refused(|game| game.model_of_position[4] = 2), "model_of_position");
        assert_eq!(refused(|game| game.model_versions.clear()), "model_of_position");
        assert_eq!(
            refused(|game| game.evaluation_models = vec![0]),
            "evaluation_counts"
        );
        let with_models = |game: &mut Game| {
            game.evaluation_models = vec![2];
            game.evaluation_counts = vec![5];
        };
        assert_eq!(refused(with_models), "evaluation_models");
        assert_eq!(
            refused(|game| game.model_providers = vec!["cpu".into()]),
            "model_providers"
        );
        assert_eq!(
            refused(|game| game.policy_surprises = vec![0.5; 9]),
            "policy_surprises"
        );
        assert_eq!(
            refused(|game| game.policy_surprises = vec![-0.5; 10]),
            "policy_surprises"
        );
    }

    #[test]
    fn search_results_are_checked() {
        let whole = || synthetic::with_decisions(synthetic::game(1, 10));
        let found = validator().check(&whole()).unwrap();
        assert_eq!((found.positions, found.trainable), (10, 10));
        let refused = |change: &dyn Fn(&mut Game)| {
            let mut game = whole();
            change(&mut game);
            validator().check(&game).unwrap_err()
        };
        let columns = |change: &dyn Fn(&mut Decisions)| {
            refused(&|game| change(game.decisions.as_mut().unwrap()))
                .field
                .strip_prefix("decisions.")
                .unwrap()
                .to_owned()
        };
        let first = |column: &mut bytes::Bytes, value: f32| {
            let mut numbers = column.to_vec();
            numbers[..2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes());
            *column = numbers.into();
        };
        let kind = |columns: &mut Decisions, kind| {
            let mut kinds = columns.kinds.to_vec();
            kinds[0] = kind;
            columns.kinds = kinds.into();
        };
        assert_eq!(columns(&|columns| columns.played.truncate(9)), "played");
        assert_eq!(columns(&|columns| columns.played[0] = 1_000), "played");
        assert_eq!(columns(&|columns| kind(columns, 3)), "kinds");
        // Unvisited actions where nothing is recorded.
        let named = whole().decisions.unwrap().unvisited_counts[0] > 0;
        assert!(named, "the first position has unvisited actions");
        assert_eq!(columns(&|columns| kind(columns, 0)), "unvisited_actions");
        assert_eq!(
            columns(&|columns| columns.unvisited_actions[0] = 132),
            "unvisited_actions"
        );
        let visited = whole().visit_actions[0];
        assert_eq!(
            columns(&|columns| columns.unvisited_actions[0] = visited),
            "unvisited_actions"
        );
        assert_eq!(
            columns(&|columns| columns.unvisited_counts[0] += 1),
            "unvisited_actions"
        );
        for value in [f32::NAN, 1.5, -0.5] {
            assert_eq!(
                columns(&|columns| first(&mut columns.visited_priors, value)),
                "visited_priors"
            );
            assert_eq!(
                columns(&|columns| first(&mut columns.unvisited_priors, value)),
                "unvisited_priors"
            );
        }
        // Each prior is a probability, but their sum is above 1.
        assert_eq!(
            columns(&|columns| first(&mut columns.unvisited_priors, 0.9)),
            "visited_priors"
        );
        // A refuted action has the prior 0.
        let mut game = whole();
        let columns_of = game.decisions.as_mut().unwrap();
        first(&mut columns_of.unvisited_priors, 0.0);
        validator().check(&game).unwrap();
        for value in [f32::NAN, 1.5, -1.5, f32::INFINITY] {
            assert_eq!(columns(&|columns| first(&mut columns.values, value)), "values");
            assert_eq!(
                columns(&|columns| first(&mut columns.evaluations, value)),
                "evaluations"
            );
        }
        assert_eq!(
            columns(&|columns| columns.values = columns.values.slice(2..)),
            "values"
        );
        assert_eq!(
            refused(&|game| game.visit_counts[0] += 1).field,
            "decisions.visited_priors"
        );
        let mut generator = generator();
        generator.decisions = Some(generator_decisions(-0.5));
        let error = Validator::new("generator", 0)
            .unwrap()
            .check(&generator)
            .unwrap_err();
        assert_eq!(
            error.field, "decisions.values",
            "values of one player are in [0, 1]"
        );
        generator.decisions = Some(generator_decisions(0.5));
        Validator::new("generator", 0).unwrap().check(&generator).unwrap();
    }

    fn generator_decisions(value: f32) -> Decisions {
        let mut recorder = Recorder::default();
        recorder.push(&Entry {
            kind: DecisionKind::Searched,
            visited: &[(1.0, value)],
            unvisited: &[],
            evaluation: 0.25,
            played: 0,
        });
        recorder.finish()
    }

    #[test]
    fn what_a_learner_cannot_train_on_is_refused() {
        let last = |game: &Game| game.rows.len() - 1;
        // The indices are: one of a plane that is not sparse, and one beyond all planes. The constant is above its largest value.
        assert_eq!(refused(|game| game.rows[40] = 25 * 64), "rows");
        assert_eq!(refused(|game| game.rows[40] = 4_000_000_000), "rows");
        assert_eq!(
            refused(|game| {
                let at = last(game);
                game.rows[at] = 101;
            }),
            "rows"
        );
        assert_eq!(refused(|game| game.rows.truncate(10 * 37)), "rows");
        assert_eq!(refused(|game| game.visit_actions[0] = 132), "visit_actions");
        assert_eq!(refused(|game| game.visit_actions[0] = 1_000_000), "visit_actions");
        assert_eq!(refused(|game| game.root_values[0] = -1.5), "root_values");
        let mut rounded = synthetic::game(1, 10);
        rounded.root_values[0] = 1.000_001;
        validator().check(&rounded).unwrap();
        let error = Validator::new("gomok", 0).unwrap_err().to_string();
        assert!(error.contains("did you mean gomoku"), "{error}");
        assert!(Validator::new("paco-sako", 8).is_err());
    }

    /// Returns a game with one player and rows of varying length.
    fn generator() -> Game {
        use games::{
            Game as _, Symmetry,
            generator::{Encoding, GeneratorGame},
        };

        let state = GeneratorGame::start(&Default::default(), None).unwrap();
        let mut game = synthetic::game(1, 1);
        game.game = GeneratorGame::NAME.into();
        game.options = 0;
        game.rows.clear();
        state.write_row(Encoding::Plain, Symmetry::IDENTITY, &mut game.rows);
        game.row_lengths = vec![game.rows.len() as u32];
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        game.visit_actions = vec![state.policy_index(Encoding::Plain, Symmetry::IDENTITY, legal[0])];
        game.visits = vec![3];
        game.visit_counts = vec![1];
        game.movers = vec![0].into();
        game.root_values = vec![0.5];
        game.model_of_position = vec![0];
        (game.result, game.score) = (GameResult::Scored.into(), 0.25);
        game
    }

    /// Rows with examples belong to a store of the representation that holds them. A game of rows without any may be there too.
    #[test]
    fn rows_with_examples_need_their_representation() {
        use games::generator::{ClanPosition, Example, Examples, Grid, Problem};

        let plain = generator();
        let mut position = ClanPosition::read(&plain.rows).unwrap();
        let [one, other] = [1, 2].map(|color| Grid::from_rows(&[vec![color]]).unwrap());
        position.problem = Problem::Pair(one, other);
        let example = Example {
            input: other,
            output: one,
        };
        position.examples = Examples::new(vec![example]).unwrap();
        let mut with = plain.clone();
        with.rows.clear();
        position.write(&mut with.rows);
        with.row_lengths = vec![with.rows.len() as u32];
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
