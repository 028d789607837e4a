"""Games and training batches of a replay store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

from ._minuet import StoreClient


@dataclass(frozen=True)
class GameSummary:
    """A stored game without its positions."""

    id: str
    sequence: int
    game: str
    positions: int
    #: first_won, second_won, draw or scored.
    result: str
    ending: str
    model_versions: list[str]
    finished_at_ms: int
    actor: str
    build: str
    #: Mean policy surprise in nats; 0 where it was not measured.
    surprise: float


@dataclass(frozen=True)
class GameRecord:
    """A stored game of p positions, one for each action played."""

    id: str
    game: str
    options: int
    rules: Any
    start: str
    #: Action ids: uint32 [p].
    actions: NDArray[np.uint32]
    #: Player who acted, 0 or 1: uint8 [p].
    movers: NDArray[np.uint8]
    #: Rows back to back.
    rows: NDArray[np.uint32]
    #: Length of each row; empty where all rows have the same length.
    row_lengths: NDArray[np.uint32]
    #: Number of visited actions: uint32 [p]. 0: not searched fully, not to be trained on.
    visit_counts: NDArray[np.uint32]
    #: Policy entries of the visited actions, back to back.
    visit_entries: NDArray[np.uint32]
    #: Visits of these actions, back to back.
    visits: NDArray[np.uint32]
    #: Value of each root for the player to act: float32 [p].
    root_values: NDArray[np.float32]
    #: first_won, second_won, draw or scored.
    result: str
    #: Final value for the first player.
    score: float
    ending: str
    model_versions: list[str]
    actor: str
    build: str
    search: Any
    finished_at_ms: int
    #: Number in the store; only in games that `records` gives.
    sequence: int = 0

    def row_table(self) -> NDArray[np.uint32]:
        """Rows as uint32 [p, row_length], in games whose rows have one length."""
        return self.rows.reshape(len(self.actions), -1)


@dataclass(frozen=True)
class SampleBatch:
    """n positions for training; every column lies back to back."""

    number: int
    game: str
    options: int
    positions: int
    #: Rows back to back.
    rows: NDArray[np.uint32]
    #: Length of each row; empty where all rows have the same length.
    row_lengths: NDArray[np.uint32]
    #: Number of visited actions: uint32 [n].
    visit_counts: NDArray[np.uint32]
    #: Policy entries of the visited actions, back to back.
    visit_entries: NDArray[np.uint32]
    #: Visits of these actions, back to back.
    visits: NDArray[np.uint32]
    #: Final result for the player to act: float32 [n].
    results: NDArray[np.float32]
    #: Value of the root after the search, for the player to act: float32 [n].
    root_values: NDArray[np.float32]
    #: Number of each position's game in the store: uint64 [n].
    games: NDArray[np.uint64]
    #: Number of each position in its game: uint32 [n].
    plies: NDArray[np.uint32]
    #: Trainable positions ever inserted into the store.
    positions_inserted: int
    #: Trainable positions in the window.
    window_positions: int
    #: Targets that were asked for by name.
    targets: dict[str, dict[str, NDArray[Any]]]

    def row_table(self) -> NDArray[np.uint32]:
        """Rows as uint32 [n, row_length], in games whose rows have one length."""
        return self.rows.reshape(self.positions, -1)

    def policies(self, actions: int) -> NDArray[np.float32]:
        """Shares of the visits as float32 [n, actions]; each row sums to 1."""
        shares = np.zeros((self.positions, actions), np.float32)
        position = np.repeat(np.arange(self.positions), self.visit_counts)
        shares[position, self.visit_entries] = self.visits
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


class ReplayStore:
    """A replay store: `ReplayStore("127.0.0.1:7002")`. For `timeout` and `security` see `Evaluator`.

    A filter is keyword arguments that a game must match, each of them: `ids`, `model_versions`, `builds`, `actors` and `endings`
    are lists of which one entry must match; `finished_from_ms` (inclusive), `finished_before_ms` (exclusive), `min_positions` and
    `max_positions` (inclusive) are numbers.

    Raises ServerError if the store refuses or cannot be reached, SettingsError for a filter that does not exist.
    """

    def __init__(self, address: str, *, timeout: float = 30.0, security: Mapping[str, Any] | None = None) -> None:
        self.address = address
        self.timeout = timeout
        self.security = None if security is None else dict(security)
        self._client = StoreClient(address, None if security is None else json.dumps(self.security))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process connects again.
        return _connect, (self.address, self.timeout, self.security)

    def stats(self, awaits_positions: bool = False) -> dict[str, int]:
        """Counts of the store. `awaits_positions` says that the caller waits, so that the store holds no games back."""
        return self._client.stats(awaits_positions, self.timeout)

    def games(self, sort: str = "time", newest_first: bool = False, **filter: Any) -> Iterator[GameSummary]:
        """Lists games by `time`, `length` or `surprise`, page by page as they are asked for."""
        cursor = b""
        while True:
            page, cursor = self._client.list(sort, newest_first, cursor, 200, self.timeout, **filter)
            for fields in page:
                yield GameSummary(**fields)
            if not cursor:
                return

    def game(self, id: str) -> GameRecord:
        """One game, by its id."""
        return GameRecord(**self._client.game(id, self.timeout))

    def records(self, **filter: Any) -> Iterator[GameRecord]:
        """Whole games in the order of their arrival."""
        for fields in self._client.export(self.timeout, **filter):
            yield GameRecord(**fields)

    def sample(
        self,
        batch_size: int,
        batches: int,
        *,
        seed: int = 0,
        first_batch: int = 0,
        min_positions: int = 0,
        purpose: str = "training",
        targets: Sequence[str] = (),
    ) -> Iterator[SampleBatch]:
        """Training batches, drawn from the window as the store's settings say. Batch k depends on `seed`, `first_batch` + k and the
        window only. The first batch waits until the window holds `min_positions`. `purpose` is `training`, `held-out` or `trained`.
        """
        stream = self._client.sample(
            batch_size, batches, seed, first_batch, min_positions, purpose, list(targets)
        )
        for fields in stream:
            yield SampleBatch(**fields)

    def __repr__(self) -> str:
        return f"<minuet.ReplayStore {self.address}>"


def _connect(address: str, timeout: float, security: dict[str, Any] | None) -> ReplayStore:
    return ReplayStore(address, timeout=timeout, security=security)
