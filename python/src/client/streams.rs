//! Streams of batches and of games. Each is an iterator of dictionaries.

use proto::v1::{Batch, StoredGame};
use pyo3::{prelude::*, types::PyDict};
use tonic::Streaming;

use super::{arrays, link::wait};
use crate::error::ServerError;

/// A stream of training batches.
#[pyclass(module = "minuet._minuet")]
pub struct BatchStream {
    address: String,
    stream: Streaming<Batch>,
}

impl BatchStream {
    pub fn new(address: String, stream: Streaming<Batch>) -> Self {
        Self { address, stream }
    }
}

#[pymethods]
impl BatchStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let next = wait(py, &self.address, None, self.stream.message())?;
        next.map(|batch| arrays::of_batch(py, batch)).transpose()
    }
}

/// A stream of stored games.
#[pyclass(module = "minuet._minuet")]
pub struct GameStream {
    address: String,
    stream: Streaming<StoredGame>,
}

impl GameStream {
    pub fn new(address: String, stream: Streaming<StoredGame>) -> Self {
        Self { address, stream }
    }
}

#[pymethods]
impl GameStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(next) = wait(py, &self.address, None, self.stream.message())? else {
            return Ok(None);
        };
        match next.game {
            Some(game) => {
                let fields = arrays::of_game(py, game)?;
                fields.set_item("sequence", next.sequence)?;
                Ok(Some(fields))
            }
            None if next.unreadable > 0 => Err(ServerError::new_err(format!(
                "server {}: {} games cannot be read and were left out",
                self.address, next.unreadable
            ))),
            None => Ok(None),
        }
    }
}
