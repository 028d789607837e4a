"""Games of OpenSpiel as games of one's own: `openspiel:breakthrough(rows=6,columns=6)`.

A game fits if it is sequential, deterministic and of perfect information, has one or two players, and shows its states as numbers from 0
on. Others are refused with the property that is missing.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import random
import re
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from .rows import Numbers, RowsError
from .source import Source, SourceError

#: Begin of the name of such a game.
PREFIX = "openspiel:"
#: Longest name of a game, in letters.
LONGEST = 40
#: Actions of random games whose observations are checked.
SAMPLED = 300


def load(text: str) -> Source:
    """Return the rules that a text names, e.g. openspiel:hex(board_size=5). Raises SourceError if the game does not fit."""
    name = text.removeprefix(PREFIX)
    try:
        game = pyspiel.load_game(name)
    except (pyspiel.SpielError, IndexError, ValueError) as error:
        raise SourceError(f"{text}: OpenSpiel has no such game: {error}") from error
    missing = what_is_missing(game)
    if missing is not None:
        raise SourceError(f"{text}: {missing}")
    version = importlib.metadata.version("open_spiel")
    return Source(rules_of(game), f"{PREFIX}{name}", f"{game} of OpenSpiel {version}".encode())


def what_is_missing(game: Any) -> str | None:
    """Return why a game does not fit. None if it fits."""
    kind, types = game.get_type(), pyspiel.GameType
    players = game.num_players()
    if kind.dynamics != types.Dynamics.SEQUENTIAL:
        return "its players act at the same time; games in which one player acts at a time fit"
    if kind.chance_mode != types.ChanceMode.DETERMINISTIC:
        return "chance plays a part in it; deterministic games fit"
    if kind.information != types.Information.PERFECT_INFORMATION:
        return "a player does not see everything in it; games of perfect information fit"
    if players not in (1, 2):
        return f"it has {players} players; games of one or two players fit"
    if players == 2 and kind.utility != types.Utility.ZERO_SUM:
        return "what one player wins the other one does not lose; zero-sum games fit"
    if players == 2 and kind.reward_model != types.RewardModel.TERMINAL:
        return "it gives rewards before its end; games of two players with a result at the end fit"
    if players == 2 and (game.min_utility() < -1 or game.max_utility() > 1):
        return f"its results are from {game.min_utility():g} to {game.max_utility():g}; results from -1 to 1 fit"
    if not kind.provides_observation_tensor:
        return "it does not show its states as numbers (observation_tensor)"
    try:
        shape = game.observation_tensor_shape()
    except pyspiel.SpielError as error:
        return f"it does not show its states as numbers: {error}"
    if not 1 <= len(shape) <= 3 or max(shape[-2:]) > 32 and len(shape) == 3:
        return f"the shape of its observations is {shape}; [planes, ranks, files] with up to 32 ranks and files, [planes, squares] and [numbers] fit"
    draws, state = random.Random(1), game.new_initial_state()
    numbers = Numbers(observation(state, shape).shape)
    for _ in range(SAMPLED):
        if state.is_terminal():
            state = game.new_initial_state()
        seen = observation(state, shape)
        if not (seen >= 0).all():
            return "its observations hold numbers below 0"
        numbers.add(seen)
        state.apply_action(draws.choice(state.legal_actions()))
    try:
        numbers.kinds(None)
    except RowsError as error:
        return f"of its observations {error}"
    return None


def observation(state: Any, shape: list[int]) -> NDArray[np.float64]:
    """Return what the player to act sees, as planes. A plane without ranks and files is folded into the smallest square, and a list of
    numbers becomes planes of a single square."""
    seen = np.array(state.observation_tensor(max(0, state.current_player())))
    if len(shape) == 3:
        return seen.reshape(shape)
    if len(shape) == 1:
        return seen.reshape(-1, 1, 1)
    side = math.isqrt(shape[1] - 1) + 1
    return np.pad(seen.reshape(shape), ((0, 0), (0, side * side - shape[1]))).reshape(-1, side, side)


def name_of(game: Any) -> str:
    """Return the name of a game with its parameters, in letters, digits and `-`."""
    name = "openspiel-" + re.sub(r"[^a-z0-9]+", "-", str(game).lower()).strip("-")
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - 9].rstrip('-')}-{digest}"


def rules_of(game: Any) -> type:
    """Return the class of a game that fits."""
    shape, least, most = game.observation_tensor_shape(), game.min_utility(), game.max_utility()
    # Results of a game of one player may have any range.
    is_usual = -1 <= least and most <= 1

    class Rules:
        name = name_of(game)
        players = game.num_players()
        actions = game.num_distinct_actions()

        def __init__(self, state: Any = None) -> None:
            self.state = state or game.new_initial_state()

        def copy(self) -> Rules:
            return Rules(self.state.clone())

        def to_move(self) -> int:
            return max(0, int(self.state.current_player()))

        def legal_actions(self) -> list[int]:
            actions: list[int] = self.state.legal_actions()
            return actions

        def play(self, action: int) -> None:
            self.state.apply_action(action)

        def outcome(self) -> float | None:
            if not self.state.is_terminal():
                return None
            result = float(self.state.returns()[0])
            return result if is_usual else 2 * (result - least) / (most - least) - 1

        def planes(self) -> NDArray[np.float64]:
            seen = observation(self.state, shape)
            # Many games show the board alone. A last plane says who is to act.
            mover = np.full((1, *seen.shape[1:]), self.to_move(), dtype=float)
            return seen if self.players == 1 else np.concatenate([seen, mover])

        def move_text(self, action: int) -> str:
            return str(self.state.action_to_string(self.to_move(), action))

    return Rules
