"""Searched positions from an analysis service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._minuet import AnalysisClient
from .evaluator import answer_of


@dataclass(frozen=True)
class AnalyzedMove:
    """A move of a searched position."""

    #: The move in the game's notation.
    text: str
    #: The move in the notation of `minuet rules`.
    action: Any
    #: Visits of the move.
    visits: int
    #: Mean value of these visits for the player to move; None without visits.
    value: float | None
    #: Prior of the network.
    prior: float
    #: Outcome after the move for the player to move, if it is proven: win, draw or loss.
    proven: str | None
    #: Most visited line that begins with the move, by turns. The last turn may be incomplete.
    line: list[str]


@dataclass(frozen=True)
class PositionAnalysis:
    """A searched position. Values are for the player to move."""

    #: Number of moves before the position.
    turn: int
    #: Position as the game writes it.
    position: str
    #: Player to move: first or second.
    to_move: str
    #: Version of the network; None without one.
    network: str | None
    #: Visits of the search.
    visits: int
    #: Positions that the network evaluated for this query.
    fresh: int
    #: Value of the position, from -1 (loss) to 1 (win).
    value: float
    #: Value by the network alone.
    evaluation: float
    #: Share of the visits that ended in a known or proven outcome.
    proofs: float
    #: Outcome, if it is proven: win, draw or loss.
    proven: str | None
    #: Number of legal moves.
    legal: int
    #: The moves, the most visited first.
    moves: list[AnalyzedMove]
    #: Priors of all legal moves, if the query includes them: dictionaries with `action` and `prior`.
    priors: Sequence[Mapping[str, Any]] = ()
    #: Visits and values of all legal moves, if the query includes them: dictionaries with `action`, `visits` and `value`.
    values: Sequence[Mapping[str, Any]] = ()
    #: Every node with visits, if the query includes the tree: dictionaries as `AnalysisNode` of `analysis.proto`.
    tree: Sequence[Mapping[str, Any]] = ()


class Analysis:
    """An analysis service: `Analysis("127.0.0.1:50053")`, the address of `minuet analysis`.

    `timeout` is the longest time of each call in seconds. `security` holds keys of `[security]` of `run.toml`, as for `Evaluator`. All
    calls of a process share one stream, also those of several threads and of asyncio, so that their searches share batches. A service that
    is away, or stops, after it has answered once is asked again until `timeout`.

    Raises ServerError if the service refuses or cannot be reached; a query with an error has the code INVALID_ARGUMENT, and the message names
    the field.
    """

    def __init__(self, address: str, *, timeout: float = 60.0, security: Mapping[str, Any] | None = None) -> None:
        self.address = address
        self.timeout = timeout
        self._client = AnalysisClient(address, None if security is None else json.dumps(dict(security)))

    def describe(self) -> dict[str, Any]:
        """Name, game, version, step and provider of the network that answers now."""
        return self._client.describe(self.timeout)

    def analyze(
        self,
        moves: Sequence[str] = (),
        *,
        turns: Sequence[int] | None = None,
        start: str | None = None,
        visits: int | None = None,
        time_ms: int | None = None,
        lines: int | None = None,
        priority: int | None = None,
        seed: int | None = None,
        include: Sequence[str] = (),
        rules: Mapping[str, Any] | None = None,
    ) -> list[PositionAnalysis]:
        """Searches positions of a game, and returns one answer for each of `turns`.

        `moves` are turns as people write them, from `start`. `turns` are the positions to search, by the number of moves before each;
        without them, the position after all moves. The other arguments are the fields of a query of `minuet analyze`, with the same
        defaults.
        """
        turns, query = _query(locals())
        return _answers(turns, self._client.analyze(query, self.timeout))

    async def analyze_async(
        self,
        moves: Sequence[str] = (),
        *,
        turns: Sequence[int] | None = None,
        start: str | None = None,
        visits: int | None = None,
        time_ms: int | None = None,
        lines: int | None = None,
        priority: int | None = None,
        seed: int | None = None,
        include: Sequence[str] = (),
        rules: Mapping[str, Any] | None = None,
    ) -> list[PositionAnalysis]:
        """Like `analyze`, for asyncio. Any number of calls may wait at the same time; they take no threads. A call that is cancelled ends its
        search."""
        turns, query = _query(locals())
        return _answers(turns, await answer_of(lambda done: self._client.start(query, self.timeout, done)))

    def __repr__(self) -> str:
        return f"<minuet.Analysis {self.address}>"


def _query(arguments: Mapping[str, Any]) -> tuple[list[int], str]:
    """Turns of a query, and the query as JSON."""
    fields = {name: value for name, value in arguments.items() if name != "self" and value is not None}
    fields["moves"] = list(fields["moves"])
    fields["include"] = list(fields["include"])
    turns = fields["turns"] = [int(turn) for turn in fields.get("turns", [len(fields["moves"])])]
    if "rules" in fields:
        fields["rules"] = json.dumps(dict(fields["rules"]))
    return turns, json.dumps(fields)


def _answers(turns: Sequence[int], replies: Sequence[Mapping[str, Any]]) -> list[PositionAnalysis]:
    """Answers in the order of the turns."""
    by_turn = {reply["turn"]: reply for reply in replies}
    return [_answer(by_turn[turn]) for turn in turns]


def _answer(reply: Mapping[str, Any]) -> PositionAnalysis:
    return PositionAnalysis(**{**reply, "moves": [AnalyzedMove(**move) for move in reply["moves"]]})
