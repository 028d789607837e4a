//! Problems from ARC task files: JSON with `train` and `test` lists of pairs of grids.

use serde::Deserialize;

use super::{
    grid::{Grid, GridError},
    problem::Problem,
};

/// The pairs of a task whose grids fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Input and output of each training pair that fits, with its number in the file.
    pub train: Vec<TaskPair>,
    /// The same of each test pair; where the file keeps an output back, there is none.
    pub test: Vec<TaskPair>,
    /// What does not fit, as `train[2].output: a grid of 10 rows …`.
    pub left_out: Vec<String>,
}

/// One pair of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPair {
    /// Its place in the file's list, from 0.
    pub number: usize,
    /// The grid that is given.
    pub input: Grid,
    /// The grid that is wanted.
    pub output: Option<Grid>,
}

/// A file that is no task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Not the JSON of a task.
    #[error("no ARC task: {0}")]
    Json(#[from] serde_json::Error),
    /// No grid of it can be drawn.
    #[error("no pair of the task fits 8×8: {0}")]
    TooLarge(String),
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
    /// Reads a task's JSON.
    ///
    /// # Errors
    /// [`TaskError`] where the text is no task, or none of its pairs fits 8×8.
    pub fn read(json: &str) -> Result<Self, TaskError> {
        let file: File = serde_json::from_str(json)?;
        let mut left_out = Vec::new();
        let mut take = |list: &str, pairs: Vec<Pair>| -> Vec<TaskPair> {
            let mut taken = Vec::new();
            for (number, pair) in pairs.into_iter().enumerate() {
                let grid = |rows: &[Vec<u64>], side: &str, left_out: &mut Vec<String>| {
                    read_grid(rows)
                        .map_err(|error| left_out.push(format!("{list}[{number}].{side}: {error}")))
                        .ok()
                };
                let input = grid(&pair.input, "input", &mut left_out);
                let output = pair
                    .output
                    .as_deref()
                    .map(|rows| grid(rows, "output", &mut left_out));
                match (input, output) {
                    (Some(input), None) => taken.push(TaskPair {
                        number,
                        input,
                        output: None,
                    }),
                    (Some(input), Some(Some(output))) => taken.push(TaskPair {
                        number,
                        input,
                        output: Some(output),
                    }),
                    _ => {}
                }
            }
            taken
        };
        let train = take("train", file.train);
        let test = take("test", file.test);
        if train.is_empty() && test.is_empty() {
            return Err(TaskError::TooLarge(left_out.join("; ")));
        }
        Ok(Self {
            train,
            test,
            left_out,
        })
    }
}

impl TaskPair {
    /// Generate the input, then the output; the input alone where no output is given.
    pub fn problem(&self) -> Problem {
        match self.output {
            Some(output) => Problem::Pair(self.input, output),
            None => Problem::Draw(self.input),
        }
    }
}

/// ARC's grids know colours 0 to 9 only.
fn read_grid(rows: &[Vec<u64>]) -> Result<Grid, GridError> {
    let mut cells = Vec::with_capacity(rows.len());
    for (y, row) in rows.iter().enumerate() {
        let mut line = Vec::with_capacity(row.len());
        for (x, &symbol) in row.iter().enumerate() {
            match u8::try_from(symbol) {
                Ok(color @ 0..=9) => line.push(color),
                _ => {
                    return Err(GridError::Symbol {
                        x,
                        y,
                        symbol: u32::try_from(symbol).unwrap_or(u32::MAX),
                    });
                }
            }
        }
        cells.push(line);
    }
    Grid::from_rows(&cells)
}
