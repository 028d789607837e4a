"""Games and training batches of a replay store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

from ._minuet import EvaluationError, RowError, ServerError, StoreClient
from .evaluator import address_of


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
class Decisions:
    """Results of the searches of n positions next to visits and root values. Numbers had half precision. Values are in [-1, 1], for the
    player to act. The visited actions are those of `visit_entries`; the legal actions are these and the unvisited ones."""

    #: 0 where nothing is recorded, and all numbers are 0; 1: a search; 2: a known solution, which has all visits: uint8 [n].
    kinds: NDArray[np.uint8]
    #: Priors of the visited actions from the network, without noise, back to back: float32.
    visited_priors: NDArray[np.float32]
    #: Mean value of the visits of each visited action, back to back: float32.
    values: NDArray[np.float32]
    #: Number of legal actions without visits: uint32 [n].
    unvisited_counts: NDArray[np.uint32]
    #: Policy entries of these actions, back to back: uint32.
    unvisited_entries: NDArray[np.uint32]
    #: Priors of these actions, back to back: float32. An action that a proof refutes has 0.
    unvisited_priors: NDArray[np.float32]
    #: Evaluation of each position by the network: float32 [n].
    evaluations: NDArray[np.float32]
    #: Place of the played action: among the visited actions, or behind them among the unvisited ones: uint32 [n]. Empty in batches.
    played: NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """n positions with the results of their searches. Columns lie back to back over the positions."""

    game: str
    options: int
    #: Rows back to back: uint32.
    rows: NDArray[np.uint32]
    #: Length of each row: uint32 [n]; empty where all rows have the same length.
    row_lengths: NDArray[np.uint32]
    #: Number of visited actions: uint32 [n]. 0: not searched fully, not to be trained on.
    visit_counts: NDArray[np.uint32]
    #: Policy entries of the visited actions, back to back: uint32.
    visit_entries: NDArray[np.uint32]
    #: Visits of these actions, back to back: uint32.
    visits: NDArray[np.uint32]
    #: Value of each root after the search, for the player to act: float32 [n].
    root_values: NDArray[np.float32]
    #: Priors, values of actions and evaluations. None where no position has them, or a batch was drawn without them.
    decisions: Decisions | None

    def row_table(self) -> NDArray[np.uint32]:
        """Rows as uint32 [n, row_length], in games whose rows have one length. Raises RowError in others."""
        if len(self.row_lengths):
            raise RowError(f"the rows of {self.game} differ in length; use rows and row_lengths")
        return self.rows.reshape(len(self.visit_counts), -1)

    def policies(self, actions: int) -> NDArray[np.float32]:
        """Shares of the visits: float32 [n, actions]. Each row sums to 1, or to 0 without visits."""
        shares = self._visited(actions, self.visits, 0.0)
        total: NDArray[np.float32] = shares.sum(axis=1, keepdims=True)
        return np.divide(shares, total, out=shares, where=total > 0.0)

    def priors(self, actions: int) -> NDArray[np.float32]:
        """Priors of the legal actions from the network, 0 elsewhere: float32 [n, actions]. Raises EvaluationError without decisions."""
        decisions = self._decisions()
        priors = self._visited(actions, decisions.visited_priors, 0.0)
        position = np.repeat(np.arange(len(priors)), decisions.unvisited_counts)
        priors[position, decisions.unvisited_entries] = decisions.unvisited_priors
        return priors

    def action_values(self, actions: int) -> NDArray[np.float32]:
        """Mean value of each visited action for the player to act, NaN elsewhere: float32 [n, actions]. Raises EvaluationError without
        decisions."""
        decisions = self._decisions()
        values = self._visited(actions, decisions.values, np.nan)
        values[decisions.kinds == 0] = np.nan
        return values

    def _decisions(self) -> Decisions:
        if self.decisions is None:
            raise EvaluationError("these positions have no decisions; sample(decisions=True) asks for them")
        return self.decisions

    def _visited(self, actions: int, numbers: NDArray[Any], others: float) -> NDArray[np.float32]:
        table = np.full((len(self.visit_counts), actions), others, np.float32)
        position = np.repeat(np.arange(len(table)), self.visit_counts)
        table[position, self.visit_entries] = numbers
        return table


@dataclass(frozen=True, kw_only=True)
class GameRecord(Searched):
    """A stored game of n positions, one for each action played."""

    id: str
    rules: Any
    start: str
    #: Action ids: uint32 [n].
    actions: NDArray[np.uint32]
    #: Player who acted, 0 or 1: uint8 [n].
    movers: NDArray[np.uint8]
    #: Divergence of the visits from the network's priors in nats: float32 [n]; empty where it was not measured.
    policy_surprises: NDArray[np.float32]
    #: first_won, second_won, draw or scored.
    result: str
    #: Final value for the first player.
    score: float
    #: Owner of each square at the end: 1 the first player, -1 the second, 0 nobody: int8 [squares]; empty where nobody owns squares.
    territory: NDArray[np.int8]
    #: Points of the first player less those of the second; 0 without a territory.
    territory_score: float
    #: Value of a result that comes one action later, relative to the result; 1 in games for two.
    discount: float
    ending: str
    #: Empty for self-play; "known-solution" or "hindsight" for games that were recorded from a solution.
    provenance: str
    model_versions: list[str]
    #: Newest model at each position, as an index into `model_versions`: uint32 [n]; empty where it is not known.
    model_of_position: NDArray[np.uint32]
    run_seed: int
    game_number: int
    actor: str
    build: str
    search: Any
    finished_at_ms: int
    #: Number in the store; only in games that `records` gives.
    sequence: int = 0


@dataclass(frozen=True, kw_only=True)
class SampleBatch(Searched):
    """n positions for training."""

    number: int
    positions: int
    #: Final result for the player to act: float32 [n]. Positions of `undecided` have their root value instead.
    results: NDArray[np.float32]
    #: Places in the batch of positions whose game has no result, because it reached the limit of actions: uint32.
    undecided: NDArray[np.uint32]
    #: Places in the batch of the t positions whose games have a territory: uint32 [t].
    territory_positions: NDArray[np.uint32]
    #: Owner of each square at the end of their games: 1 the player to act, -1 the other, 0 nobody: int8 [t, squares].
    territories: NDArray[np.int8]
    #: Points of the player to act less those of the other at the end: float32 [t].
    territory_scores: NDArray[np.float32]
    #: Number of each position's game in the store: uint64 [n].
    games: NDArray[np.uint64]
    #: Number of each position in its game: uint32 [n].
    plies: NDArray[np.uint32]
    #: Trainable positions ever inserted into the store.
    positions_inserted: int
    #: Trainable positions in the window.
    window_positions: int


class ReplayStore:
    """A replay store: `ReplayStore("127.0.0.1:50052")`, or `ReplayStore("runs/mine")` with the folder of a run that is at work on this
    machine. For `timeout` and `security` see `Evaluator`.

    A filter is keyword arguments that a game must match, each of them: `ids`, `model_versions`, `builds`, `actors` and `endings`
    are lists of which one entry must match; `finished_from_ms` (inclusive), `finished_before_ms` (exclusive), `min_positions` and
    `max_positions` (inclusive) are numbers.

    Once the store has answered a call, later ones outlast its restart: they are repeated for up to `timeout` seconds, and streams continue
    where they were. Raises ServerError if the store refuses or cannot be reached, SettingsError for a filter that does not exist.
    """

    def __init__(
        self, address: str | PathLike[str], *, timeout: float = 30.0, security: Mapping[str, Any] | None = None
    ) -> None:
        self.address = address_of(address, "replay")
        self.timeout = timeout
        self.security = None if security is None else dict(security)
        self._client = StoreClient(self.address, None if security is None else json.dumps(self.security))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process connects again.
        return _connect, (self.address, self.timeout, self.security)

    def stats(self, awaits_positions: bool = False) -> dict[str, int]:
        """Counts of the store. `awaits_positions` says that the caller waits, so that the store holds no games back."""
        return self._client.stats(awaits_positions, self.timeout)

    def games(self, sort: str = "time", newest_first: bool = False, **filter: Any) -> Iterator[GameSummary]:
        """Lists games by `time`, `length` or `surprise`, page by page as they are requested. Raises ServerError behind the last game if
        games were left out because the store cannot read them."""
        cursor, unreadable = b"", 0
        while True:
            page, cursor, missing = self._client.list(sort, newest_first, cursor, 200, self.timeout, **filter)
            unreadable += missing
            for fields in page:
                yield GameSummary(**fields)
            if not cursor:
                break
        if unreadable:
            raise ServerError(f"server {self.address}: {unreadable} games cannot be read and were left out")

    def game(self, id: str) -> GameRecord:
        """One game, by its id."""
        return GameRecord(**_searched(self._client.game(id, self.timeout)))

    def records(self, **filter: Any) -> Iterator[GameRecord]:
        """Whole games in the order of their arrival. Raises ServerError behind the last game if games were left out because the store
        cannot read them."""
        for fields in self._client.export(self.timeout, **filter):
            yield GameRecord(**_searched(fields))

    def sample(
        self,
        batch_size: int,
        batches: int,
        *,
        seed: int = 0,
        first_batch: int = 0,
        min_positions: int = 0,
        purpose: str = "training",
        decisions: bool = False,
    ) -> Iterator[SampleBatch]:
        """Training batches, drawn from the window as the store's settings say. Batch k depends on `seed`, `first_batch` + k and the
        window only. The first batch waits until the window holds `min_positions`. `purpose` is `training`, `held-out` or `trained`.
        With `decisions`, the batches have priors, values of actions and evaluations. Raises ServerError if the store is away for
        longer than `timeout`.
        """
        stream = self._client.sample(
            batch_size,
            batches,
            seed,
            first_batch,
            min_positions,
            purpose,
            decisions,
            self.timeout,
        )
        for fields in stream:
            yield SampleBatch(**_searched(fields))

    def __repr__(self) -> str:
        return f"<minuet.ReplayStore {self.address}>"


def _searched(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a dataclass from those of the native part."""
    decisions = fields["decisions"]
    return fields if decisions is None else {**fields, "decisions": Decisions(**decisions)}


def _connect(address: str, timeout: float, security: dict[str, Any] | None) -> ReplayStore:
    return ReplayStore(address, timeout=timeout, security=security)
