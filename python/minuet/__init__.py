"""Rules, evaluations, data and search of Minuet, a distributed AlphaZero trainer.

| module | content |
|---|---|
| `minuet` | games, states, batches, searches, the evaluator, the analysis service, the replay store |
| `minuet.environments` | PettingZoo and Gymnasium environments |
| `minuet.openspiel` | games for OpenSpiel |
| `minuet.own` | a game of your own as a Python class |
| `minuet.torch` | rows to planes, networks, data sets, publishing, with PyTorch |

Conventions: n is the number of states, k that of a state's legal actions. An *action* is an absolute id. A *policy entry* is the
action's place in the network's policy, as the player to act sees the board. Values are for the player to act unless said
otherwise.
"""

from __future__ import annotations

from typing import Any

from ._minuet import (
    Batch,
    CheckpointError,
    Error,
    EvaluationError,
    Game,
    IllegalActionError,
    ModelError,
    PositionError,
    RowError,
    Search,
    ServerError,
    SettingsError,
    State,
    UnknownGameError,
    __version__,
    games,
    run_searches,
)
from .analysis import Analysis, AnalyzedMove, PositionAnalysis
from .evaluator import Evaluation, Evaluator
from .store import Decisions, GameRecord, GameSummary, ReplayStore, SampleBatch

__all__ = [
    "Analysis",
    "AnalyzedMove",
    "Batch",
    "CheckpointError",
    "Decisions",
    "Error",
    "Evaluation",
    "EvaluationError",
    "Evaluator",
    "Game",
    "GameRecord",
    "GameSummary",
    "IllegalActionError",
    "ModelError",
    "PositionAnalysis",
    "PositionError",
    "ReplayStore",
    "RowError",
    "SampleBatch",
    "Search",
    "ServerError",
    "SettingsError",
    "State",
    "UnknownGameError",
    "__version__",
    "games",
    "load_network",
    "publish",
    "run_searches",
]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import, so only programs that use it do.
    if name in ("load_network", "publish"):
        from . import torch

        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
