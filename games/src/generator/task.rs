//! Problems from ARC task files: JSON with `train` and `test` lists of pairs of grids.

use serde::Deserialize;
use serde_json::json;

use super::{
    game::GeneratorGame,
    grid::{Grid, GridError},
    problem::{Example, Examples, ExamplesError, MAX_EXAMPLES, Problem},
    rules::Rules,
};

/// Task of the ARC benchmark, without the pairs whose grids are too large and those without an output, which nothing could judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Training pairs.
    pub train: Vec<TaskPair>,
    /// Test pairs.
    pub test: Vec<TaskPair>,
    /// Pairs that were left out, with the grid at fault and the reason, e.g. `train[2].output: a grid of 10 rows …`.
    pub left_out: Vec<String>,
}

/// One pair of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPair {
    /// Place in the file's list, from 0.
    pub number: usize,
    /// Input grid.
    pub input: Grid,
    /// Output grid.
    pub output: Grid,
}

/// Error: a file is not a task, or none of its pairs can be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The text is not the JSON of a task.
    #[error("not an ARC task")]
    Json(#[from] serde_json::Error),
    /// All pairs were left out. The text says why.
    #[error("no pair of the task can be posed: {0}")]
    NoPair(String),
}

#[derive(Deserialize)]
struct File {
    train: Vec<Pair>,
    test: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    input: Vec<Vec<u64>>,
    output: Option<Vec<Vec<u64>>>,
}

impl Task {
    /// Reads the JSON of a task.
    ///
    /// # Errors
    /// [`TaskError`] if the text is not a task, or none of its pairs can be posed.
    pub fn read(json: &str) -> Result<Self, TaskError> {
        let file: File = serde_json::from_str(json)?;
        let mut left_out = Vec::new();
        let mut take = |list: &str, pairs: Vec<Pair>| -> Vec<TaskPair> {
            let mut taken = Vec::new();
            for (number, pair) in pairs.into_iter().enumerate() {
                let mut grid = |rows: Option<&Vec<Vec<u64>>>, side: &str| {
                    let read = match rows {
                        Some(rows) => read_grid(rows).map_err(|error| error.to_string()),
                        None => Err("the file does not have it, so nothing could judge an answer".into()),
                    };
                    let fault = |reason| left_out.push(format!("{list}[{number}].{side}: {reason}"));
                    read.map_err(fault).ok()
                };
                let (input, output) = (
                    grid(Some(&pair.input), "input"),
                    grid(pair.output.as_ref(), "output"),
                );
                if let (Some(input), Some(output)) = (input, output) {
                    taken.push(TaskPair {
                        number,
                        input,
                        output,
                    });
                }
            }
            taken
        };
        let train = take("train", file.train);
        let test = take("test", file.test);
        if train.is_empty() && test.is_empty() {
            return Err(TaskError::NoPair(left_out.join("; ")));
        }
        Ok(Self {
            train,
            test,
            left_out,
        })
    }

    /// Returns every pair as a problem, with its name, e.g. `train:0`. The other pairs are its examples.
    ///
    /// # Errors
    /// [`ExamplesError`] if a grid is empty.
    pub fn problems(&self, rules: &Rules) -> Result<Vec<(String, GeneratorGame)>, ExamplesError> {
        let named = |list: &'static str| move |pair| (list, pair);
        let train = self.train.iter().map(named("train"));
        let pairs = train.chain(self.test.iter().map(named("test")));
        let posed = pairs.map(|(list, pair): (&str, &TaskPair)| {
            let start = GeneratorGame::posed(rules, pair.problem());
            let start = start.with_examples(self.examples_of(pair)?)?;
            Ok((format!("{list}:{}", pair.number), start))
        });
        posed.collect()
    }

    /// Returns the pairs of the task without the given one, as the examples of it: the training pairs first, at most
    /// [`MAX_EXAMPLES`].
    ///
    /// # Errors
    /// [`ExamplesError`] if a grid is empty.
    pub fn examples_of(&self, own: &TaskPair) -> Result<Examples, ExamplesError> {
        let pairs = self.train.iter().chain(&self.test);
        let others = pairs.filter(|pair| (pair.input, pair.output) != (own.input, own.output));
        let examples = others.map(|pair| Example {
            input: pair.input,
            output: pair.output,
        });
        Examples::new(examples.take(MAX_EXAMPLES).collect())
    }

    /// Returns the JSON of the task, in the form that [`Task::read`] reads.
    pub fn to_json(&self) -> String {
        let list = |pairs: &[TaskPair]| -> Vec<serde_json::Value> {
            let pairs = pairs
                .iter()
                .map(|pair| json!({"input": pair.input.rows(), "output": pair.output.rows()}));
            pairs.collect()
        };
        json!({"train": list(&self.train), "test": list(&self.test)}).to_string()
    }
}

impl TaskPair {
    /// Returns the problem of drawing the input, then the output.
    pub fn problem(&self) -> Problem {
        Problem::Pair(self.input, self.output)
    }
}

/// Reads the rows of a grid. ARC's grids have the colours 0 to 9 only.
fn read_grid(rows: &[Vec<u64>]) -> Result<Grid, GridError> {
    let color = |y: usize, x: usize, symbol: u64| match u8::try_from(symbol) {
        Ok(color @ 0..=9) => Ok(color),
        _ => Err(GridError::of_symbol(x, y, symbol)),
    };
    let row = |(y, row): (usize, &Vec<u64>)| {
        let cells = row.iter().enumerate().map(|(x, &symbol)| color(y, x, symbol));
        cells.collect::<Result<Vec<u8>, GridError>>()
    };
    let cells = rows.iter().enumerate().map(row).collect::<Result<Vec<_>, _>>()?;
    Grid::from_rows(&cells)
}
