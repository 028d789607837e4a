//! Streams of batches and of games. Each is an iterator of dictionaries, which continues where it was when the connection breaks.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::v1::{
    Batch, ExportRequest, SampleRequest, StoredGame, replay_store_client::ReplayStoreClient as Grpc,
};
use pyo3::{prelude::*, types::PyDict};
use service::{backoff::Backoff, connect::Link};
use tonic::{Status, Streaming};

use super::{
    arrays,
    link::{Client, is_passing, of_link},
};
use crate::error::ServerError;

/// A request that is answered by a stream.
pub trait Streamed: Clone + Send + Sync {
    type Message: Send;

    /// Opens the stream.
    fn open(
        self,
        client: Grpc<Link>,
    ) -> impl Future<Output = Result<Streaming<Self::Message>, Status>> + Send;

    /// Removes what a message has answered. Returns false if nothing is left.
    fn answered(&mut self, message: &Self::Message) -> bool;
}

impl Streamed for SampleRequest {
    type Message = Batch;

    async fn open(self, mut client: Grpc<Link>) -> Result<Streaming<Batch>, Status> {
        Ok(client.sample(self).await?.into_inner())
    }

    fn answered(&mut self, batch: &Batch) -> bool {
        self.first_batch = batch.number + 1;
        self.batches = self.batches.saturating_sub(1);
        self.batches > 0
    }
}

impl Streamed for ExportRequest {
    type Message = StoredGame;

    async fn open(self, mut client: Grpc<Link>) -> Result<Streaming<StoredGame>, Status> {
        Ok(client.export(self).await?.into_inner())
    }

    fn answered(&mut self, game: &StoredGame) -> bool {
        self.from_sequence = game.sequence + 1;
        // The last message has no game.
        game.game.is_some()
    }
}

/// A stream of answers to a request, and what is left of the request.
pub struct Stream<R: Streamed> {
    client: Arc<Client<Grpc<Link>>>,
    left: Option<R>,
    stream: Option<Streaming<R::Message>>,
    /// Longest time without the server.
    patience: Duration,
}

impl<R: Streamed> Stream<R> {
    /// Opens the stream. A later break of the connection may last `patience`.
    ///
    /// # Errors
    /// `ServerError` if the server refuses the request.
    pub fn open(
        py: Python<'_>,
        client: &Arc<Client<Grpc<Link>>>,
        request: R,
        patience: Duration,
    ) -> PyResult<Self> {
        let call = request.clone().open(client.get()?);
        Ok(Self {
            stream: Some(client.wait(py, None, call)?),
            left: Some(request),
            client: Arc::clone(client),
            patience,
        })
    }

    /// Waits for the next message; `None` at the end.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<R::Message>> {
        let Some(left) = &mut self.left else {
            return Ok(None);
        };
        let call = receive(self.client.get()?, left, &mut self.stream, self.patience);
        let message = self.client.wait(py, None, call)?;
        if message.as_ref().is_none_or(|message| !left.answered(message)) {
            self.left = None;
        }
        Ok(message)
    }
}

/// Waits for the next message. Opens the stream again if it breaks, and gives up after `patience`.
async fn receive<R: Streamed>(
    client: Grpc<Link>,
    request: &R,
    stream: &mut Option<Streaming<R::Message>>,
    patience: Duration,
) -> Result<Option<R::Message>, Status> {
    let mut backoff = Backoff::for_connections();
    let mut broken_at = None;
    loop {
        let received = match stream {
            Some(stream) => stream.message().await,
            None => match request.clone().open(client.clone()).await {
                Ok(opened) => {
                    *stream = Some(opened);
                    continue;
                }
                Err(status) => Err(status),
            },
        };
        let status = match received {
            Ok(message) => return Ok(message),
            Err(status) => of_link(status),
        };
        *stream = None;
        let delay = backoff.next_delay();
        let away = broken_at.get_or_insert_with(Instant::now).elapsed();
        if !is_passing(&status) || away + delay > patience {
            return Err(status);
        }
        tokio::time::sleep(delay).await;
    }
}

/// A stream of training batches.
#[pyclass(module = "minuet._minuet")]
pub struct BatchStream(pub Stream<SampleRequest>);

#[pymethods]
impl BatchStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(batch) = self.0.next(py)? else {
            return Ok(None);
        };
        arrays::of_batch(py, &self.0.client.address, batch).map(Some)
    }
}

/// A stream of stored games.
#[pyclass(module = "minuet._minuet")]
pub struct GameStream(pub Stream<ExportRequest>);

#[pymethods]
impl GameStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(next) = self.0.next(py)? else {
            return Ok(None);
        };
        match next.game {
            Some(game) => {
                let fields = arrays::of_game(py, &self.0.client.address, game)?;
                fields.set_item("sequence", next.sequence)?;
                Ok(Some(fields))
            }
            None if next.unreadable > 0 => Err(ServerError::new_err(format!(
                "server {}: {} games cannot be read and were left out",
                self.0.client.address, next.unreadable
            ))),
            None => Ok(None),
        }
    }
}
