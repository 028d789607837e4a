//! The class `StoreClient`: requests of a replay store. The Python class `ReplayStore` is the part that users see.

use std::sync::Arc;

use proto::{
    ids::parse_game_id,
    v1::{
        ExportRequest, GameFilter, GameSort, GetGameRequest, ListGamesRequest, Purpose, SampleRequest,
        StatsRequest, replay_store_client::ReplayStoreClient as Grpc,
    },
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use serde::Deserialize;
use service::connect::{Link, MAX_MESSAGE_BYTES};

use super::{
    arrays,
    link::{Client, duration},
    streams::{BatchStream, GameStream, Stream},
};
use crate::{error::SettingsError, rules::json_fields};

/// Games of one page, the cursor of the next page, and the number of games that cannot be read.
type Page<'py> = (Vec<Bound<'py, PyDict>>, Bound<'py, PyBytes>, u32);

/// Requests of one replay store.
#[pyclass(frozen, module = "minuet._minuet")]
pub struct StoreClient {
    client: Arc<Client<Grpc<Link>>>,
}

/// A filter as Python gives it; see `GameFilter` of the wire.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Filter {
    ids: Vec<String>,
    model_versions: Vec<String>,
    builds: Vec<String>,
    actors: Vec<String>,
    endings: Vec<String>,
    finished_from_ms: u64,
    finished_before_ms: u64,
    min_positions: u32,
    max_positions: u32,
}

impl Filter {
    fn read(given: Option<&Bound<'_, PyDict>>) -> PyResult<GameFilter> {
        let fields = serde_json::Value::Object(json_fields(given)?);
        let filter: Self = serde_json::from_value(fields)
            .map_err(|error| SettingsError::new_err(format!("filter: {error}")))?;
        let ids = filter.ids.iter().map(|id| id_of(id).map(Into::into));
        Ok(GameFilter {
            ids: ids.collect::<PyResult<_>>()?,
            model_versions: filter.model_versions,
            builds: filter.builds,
            actors: filter.actors,
            finished_from_ms: filter.finished_from_ms,
            finished_before_ms: filter.finished_before_ms,
            endings: filter.endings,
            min_positions: filter.min_positions,
            max_positions: filter.max_positions,
        })
    }
}

/// Bytes of a game's id.
fn id_of(text: &str) -> PyResult<Vec<u8>> {
    let wrong = || SettingsError::new_err(format!("{text:?} is not the id of a game: 32 hexadecimal digits"));
    parse_game_id(text).map(Vec::from).ok_or_else(wrong)
}

#[pymethods]
impl StoreClient {
    #[new]
    #[pyo3(signature = (address, security=None))]
    fn new(address: &str, security: Option<&str>) -> PyResult<Self> {
        let client = Client::new(address, security, |link| {
            Grpc::new(link)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        })?;
        Ok(Self {
            client: Arc::new(client),
        })
    }

    /// Counts of the store.
    fn stats<'py>(
        &self,
        py: Python<'py>,
        awaits_positions: bool,
        seconds: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let request = StatsRequest { awaits_positions };
        let stats = self
            .client
            .call(py, seconds, request, |mut client, request| async move {
                client.stats(request).await
            })?;
        arrays::of_stats(py, stats)
    }

    /// One page of a list: the games, the cursor of the next page, which is empty after the last one, and the number of games that
    /// were left out because they cannot be read.
    #[pyo3(signature = (sort, newest_first, cursor, limit, seconds, **filter))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the Python class hands on its own settings"
    )]
    fn list<'py>(
        &self,
        py: Python<'py>,
        sort: &str,
        newest_first: bool,
        cursor: &[u8],
        limit: u32,
        seconds: f64,
        filter: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Page<'py>> {
        let sort = match sort {
            "time" => GameSort::Time,
            "length" => GameSort::Length,
            "surprise" => GameSort::Surprise,
            other => {
                let text = format!("games are sorted by \"time\", \"length\" or \"surprise\", not {other:?}");
                return Err(SettingsError::new_err(text));
            }
        };
        let request = ListGamesRequest {
            limit,
            newest_first,
            filter: Some(Filter::read(filter)?),
            sort: sort.into(),
            cursor: cursor.to_vec().into(),
            ..ListGamesRequest::default()
        };
        let page = self
            .client
            .call(py, seconds, request, |mut client, request| async move {
                client.list_games(request).await
            })?;
        let summary = |game| arrays::of_summary(py, &self.client.address, game);
        let games = page.games.into_iter().map(summary).collect::<PyResult<_>>()?;
        Ok((games, PyBytes::new(py, &page.next_cursor), page.unreadable))
    }

    /// One game, by its id in hexadecimal.
    fn game<'py>(&self, py: Python<'py>, id: &str, seconds: f64) -> PyResult<Bound<'py, PyDict>> {
        let request = GetGameRequest {
            id: id_of(id)?.into(),
        };
        let game = self
            .client
            .call(py, seconds, request, |mut client, request| async move {
                client.get_game(request).await
            })?;
        arrays::of_game(py, &self.client.address, game)
    }

    /// Stream of whole games, oldest first.
    #[pyo3(signature = (seconds, **filter))]
    fn export(
        &self,
        py: Python<'_>,
        seconds: f64,
        filter: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<GameStream> {
        let request = ExportRequest {
            filter: Some(Filter::read(filter)?),
            ..ExportRequest::default()
        };
        Stream::open(py, &self.client, request, duration(seconds)).map(GameStream)
    }

    /// Stream of training batches.
    #[expect(
        clippy::too_many_arguments,
        reason = "the Python class hands on its own settings"
    )]
    fn sample(
        &self,
        py: Python<'_>,
        batch_size: u32,
        batches: u32,
        seed: u64,
        first_batch: u64,
        min_positions: u64,
        purpose: &str,
        decisions: bool,
        seconds: f64,
    ) -> PyResult<BatchStream> {
        let purpose = match purpose {
            "training" => Purpose::Training,
            "held-out" => Purpose::HeldOut,
            "trained" => Purpose::Trained,
            other => {
                let text =
                    format!("batches are for \"training\", \"held-out\" or \"trained\", not {other:?}");
                return Err(SettingsError::new_err(text));
            }
        };
        let request = SampleRequest {
            batch_size,
            batches,
            seed,
            first_batch,
            min_positions,
            purpose: purpose.into(),
            decisions,
            ..SampleRequest::default()
        };
        Stream::open(py, &self.client, request, duration(seconds)).map(BatchStream)
    }
}
