"""Evaluations by an inference server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Mapping, Union

import numpy as np
from numpy.typing import NDArray

from ._minuet import Batch, EvaluatorClient, Game, ModelError, Pending, PositionError, RowError, SettingsError, State

#: Positions to evaluate: a batch, states, or positions as text (FENs).
Positions = Union[Batch, State, Sequence[State], Sequence[str]]


#: Rows, their lengths, policy entries of the legal actions, and their counts.
Columns = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]


@dataclass(frozen=True)
class Evaluation:
    """Evaluations of n positions."""

    #: Priors of the legal actions of each position, back to back: float32 [sum of counts], in the order of the legal entries.
    priors: NDArray[np.float32]
    #: Value of each position for the player to act: float32 [n], in [-1, 1].
    values: NDArray[np.float32]
    #: Policy entries of the legal actions, back to back: uint32 [sum of counts].
    entries: NDArray[np.uint32]
    #: Number of legal actions of each position: uint32 [n].
    counts: NDArray[np.uint32]
    #: Version of the model that evaluated all positions.
    version: str

    def policy(self, position: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Policy entries and priors of one position."""
        ends = np.cumsum(self.counts)
        place = slice(int(ends[position] - self.counts[position]), int(ends[position]))
        return self.entries[place], self.priors[place]


class Evaluator:
    """A model behind an inference server: `Evaluator("127.0.0.1:50051", model="latest")`, or `Evaluator("runs/mine")` with the folder of
    a run that `minuet up` has at work on this machine.

    `model` is a label, whose newest version answers each call, or a version. `timeout` is the deadline of each call in seconds; the
    server sees it too. `security` holds keys of `[security]` of `run.toml`, e.g. `{"ca": "ca.pem", "token": "token"}`; without it,
    the run that the variable `MINUET_CONFIG` names says how to connect. Certificates and tokens that change are read again.
    Calls from several threads share the connection. An evaluator is also the evaluator of a `Search`. A server that is away, or has too
    much to do, after it has answered once is asked again until the deadline.

    Raises ServerError if the server refuses or cannot be reached, ModelError if its rows are unknown here.
    """

    def __init__(
        self,
        address: str | PathLike[str],
        model: str = "latest",
        *,
        timeout: float = 30.0,
        security: Mapping[str, Any] | None = None,
    ) -> None:
        self.address = address_of(address, "inference")
        self.model = model
        self.timeout = timeout
        self._client = EvaluatorClient(self.address, None if security is None else json.dumps(dict(security)))
        facts = self.describe()
        #: Game of the model, in the representation of its rows.
        self.game = game_of_layout(facts["layout"], f"inference server {self.address}")

    def describe(self) -> dict[str, Any]:
        """Version, game, row layout, step, provider and digest of the model that answers now."""
        facts = self._client.describe(self.model, self.timeout)
        try:
            facts["layout"] = json.loads(facts["layout"])
        except ValueError as error:
            raise ModelError(f"inference server {self.address} describes its rows in no JSON: {error}") from error
        return facts

    def evaluate(self, positions: Positions) -> Evaluation:
        """Evaluates positions. More than 1024 are sent in several requests at once, to one version of the model.

        Raises ModelError if the positions are of another game than the model's.
        """
        return self._evaluate(*self._columns(positions))

    def evaluate_rows(
        self,
        rows: NDArray[np.uint32],
        entries: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        row_lengths: NDArray[np.uint32] | None = None,
    ) -> Evaluation:
        """Evaluates rows: uint32 [n, row_length], or flat with `row_lengths` in games whose rows differ in length. `entries` are the
        policy entries of the legal actions, back to back, and `counts` their number in each position."""
        return self._evaluate(*self._checked(rows, entries, counts, row_lengths))

    async def evaluate_async(self, positions: Positions) -> Evaluation:
        """Like `evaluate`, for asyncio. Any number of calls may wait at the same time; they take no threads."""
        return await self._start(*self._columns(positions))

    async def evaluate_rows_async(
        self,
        rows: NDArray[np.uint32],
        entries: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        row_lengths: NDArray[np.uint32] | None = None,
    ) -> Evaluation:
        """Like `evaluate_rows`, for asyncio."""
        return await self._start(*self._checked(rows, entries, counts, row_lengths))

    def __call__(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Priors and values of a batch, as a `Search` asks for them."""
        evaluation = self.evaluate(batch)
        return evaluation.priors, evaluation.values

    def _checked(
        self,
        rows: NDArray[np.uint32],
        entries: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        row_lengths: NDArray[np.uint32] | None,
    ) -> Columns:
        """Columns from the arguments of `evaluate_rows`."""
        rows = np.ascontiguousarray(rows, np.uint32)
        if row_lengths is None:
            if rows.ndim != 2:
                raise RowError(f"the rows have {rows.ndim} dimensions; give [n, row_length], or flat rows with row_lengths")
            row_lengths = np.full(rows.shape[0], rows.shape[1], np.uint32)
        if self.game.row_length is not None and np.any(row_lengths != self.game.row_length):
            raise RowError(f"rows of {self.game.name} have {self.game.row_length} values")
        lengths, entries, counts = (np.ascontiguousarray(each, np.uint32) for each in (row_lengths, entries, counts))
        return np.ravel(rows), lengths, entries, counts

    async def _start(
        self,
        rows: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        entries: NDArray[np.uint32],
        counts: NDArray[np.uint32],
    ) -> Evaluation:
        positions = (rows, lengths, entries, counts, self.game.row_length is None)
        priors, values, version = await answer_of(lambda done: self._client.start(self.model, positions, self.timeout, done))
        return Evaluation(priors, values, entries, counts, version)

    def _columns(self, positions: Positions) -> Columns:
        batch = self._batch(positions)
        return np.ravel(batch.rows()), batch.row_lengths(), *batch.legal()

    def _batch(self, positions: Positions) -> Batch:
        if isinstance(positions, State):
            positions = [positions]
        if not isinstance(positions, Batch):
            # A text is a sequence of texts too.
            if isinstance(positions, str):
                positions = [positions]
            if len(positions) == 0:
                return self.game.batch(0)
            positions = Batch([self.game.start(each) if isinstance(each, str) else each for each in positions])
        if positions.game.layout != self.game.layout:
            theirs, ours = positions.game, self.game
            raise ModelError(
                f"inference server {self.address} plays {ours.name} (options {ours.options}), "
                f"the positions are of {theirs.name} (options {theirs.options})"
            )
        return positions

    def _evaluate(
        self,
        rows: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        entries: NDArray[np.uint32],
        counts: NDArray[np.uint32],
    ) -> Evaluation:
        positions = (rows, lengths, entries, counts, self.game.row_length is None)
        priors, values, version = self._client.evaluate(self.model, positions, self.timeout)
        return Evaluation(priors, values, entries, counts, version)

    def __repr__(self) -> str:
        return f"<minuet.Evaluator {self.address}: {self.model} of {self.game.name}>"


def address_of(place: str | PathLike[str], service: str) -> str:
    """Address of a service: `place` itself, or that of the run in the folder `place`. Raises SettingsError if the run is not at work."""
    folder = Path(place)
    if not (folder / "run.toml").is_file():
        return str(place)
    try:
        addresses = json.loads((folder / "addresses.json").read_text())
        return str(addresses[service])
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(f"the run {place} is not at work ({error}); start it with `minuet up --run {place}`") from error


async def answer_of(start: Callable[[Callable[[Any, Exception | None], None]], Pending]) -> Any:
    """Answer of a call of the native part, which `start` begins and which is cancelled with this coroutine."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Any] = loop.create_future()

    def done(answer: Any, error: Exception | None) -> None:
        loop.call_soon_threadsafe(_settle, answered, answer, error)

    call = start(done)
    try:
        return await answered
    finally:
        call.cancel()


def _settle(future: asyncio.Future[Any], answer: Any, error: Exception | None) -> None:
    """Gives a future its end, unless nobody waits for it any more."""
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)


def game_of_layout(layout: Mapping[str, Any], place: str) -> Game:
    """Game whose rows have a layout, as a model's description or a manifest has it. Raises ModelError."""
    name, options = layout.get("game"), layout.get("options", 0)
    try:
        game = Game(str(name), options)
    except (PositionError, TypeError, OverflowError) as error:
        raise ModelError(f"{place} has rows that this version of minuet does not write: {error}") from error
    except Exception as error:
        raise ModelError(f"{place} plays {name!r}, which this version of minuet does not know: {error}") from error
    if game.layout != layout:
        raise ModelError(f"{place} has rows of {name} with a layout that this version of minuet does not write; update minuet")
    return game
