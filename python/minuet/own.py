"""A game of your own, written as a Python class.

    import minuet.own

    game = minuet.own.add(MyGame)       # a minuet.Game, like those that come with Minuet
    state = game.start()
    search = minuet.Search(state, visits=200)

The class needs five methods. An object of it is a state; `MyGame()` is the start of a game.

| method | result |
|---|---|
| `to_move()` | player to act, 0 or 1; always 0 in a game of one player |
| `legal_actions()` | numbers of the actions that are legal, from 0 on; all others are not. Not called once the game is over |
| `play(action)` | None; the object is the state after the action then |
| `winner()` | None while the game runs; afterwards 0 or 1, the player who won, or -1 for a draw |
| `planes()` | what a network sees: an array [planes, ranks, files], or [ranks, files], of numbers from 0 on, seen by the player to act |

Instead of `winner`, `outcome()` may return None or a number from -1 to 1: the value for the first player. More methods and attributes
are optional:

| name | meaning |
|---|---|
| `actions` | number of actions; default: the largest one seen in random games, and one more |
| `largest` | largest number in `planes()`, in any position; default: for each plane the largest one of random games, and a quarter more |
| `players` | 1 or 2, default 2 |
| `name` | name of the game; default: that of the class in lower case |
| `copy()` | a copy that shares nothing that changes; default: `copy.deepcopy` |
| `move_text(action)` | the action as people write it; default: its number |
| `symmetries` | list of pairs of permutations: image of each square `files·rank + file`, image of each action |

Planes of 0 and 1 suit networks best. Larger whole numbers, and fractions of one denominator, become a plane for each number; a number for
the whole board, e.g. the player to act, is a plane that holds it on all squares (`minuet.rows`).
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._minuet import Game, add_own_game
from .rows import LARGEST_VALUE, Numbers, Rows, RowsError
from .source import Source, text_of

#: Random games from which the layout of rows is taken.
SAMPLED = 50
#: Most actions of a random game.
LONGEST = 2000


class RulesError(Exception):
    """A class does not keep a promise of a game. The message names the promise, and the actions that lead there."""


@dataclass
class Seen:
    """What random games showed."""

    #: What their planes held.
    numbers: Numbers
    #: Largest action.
    action: int = 0
    games: int = 0
    positions: int = 0
    #: Ends of games: value for the first player, and how often.
    ends: dict[float, int] = field(default_factory=dict)


def add(rules: type, *, seed: int = 1) -> Game:
    """Give this process the game of a class, and return it. A process can have one.

    Random games from `seed` show the size of the board, the number of actions and how many numbers the planes hold. Raises RulesError if
    the class breaks a promise in them.
    """
    adapter = Adapter(rules)
    seen = observe(adapter, seed)
    description = adapter.describe(seen)
    add_own_game(json.dumps(description), adapter)
    return Game(description["name"])


def observe(adapter: Adapter, seed: int, games: int = SAMPLED) -> Seen:
    """Play random games and return what they showed. Raises RulesError for a broken promise."""
    draws = random.Random(seed)
    seen = Seen(Numbers(shape_of(adapter.planes(adapter.rules(), []))))
    for _ in range(games):
        play_at_random(adapter, seen, draws)
    return seen


def play_at_random(adapter: Adapter, seen: Seen, draws: random.Random) -> list[int]:
    """Play a random game, add what it showed to `seen`, and return its actions. Raises RulesError for a broken promise."""
    state, actions = adapter.rules(), list[int]()
    while True:
        planes = adapter.planes(state, actions)
        if shape_of(planes) != seen.numbers.shape:
            raise RulesError(broken(f"`planes` has the shape {shape_of(planes)}, not {seen.numbers.shape} as at the start", actions))
        seen.positions += 1
        seen.numbers.add(planes)
        value, legal = adapter.value(state, actions), adapter.legal(state, actions)
        if value is not None:
            seen.games += 1
            seen.ends[value] = seen.ends.get(value, 0) + 1
            return actions
        if not legal:
            raise RulesError(broken("the game is not over (`winner` is None), but `legal_actions` is empty", actions))
        if len(actions) >= LONGEST:
            raise RulesError(broken(f"a random game has not ended after {LONGEST} actions", actions))
        seen.action = max(seen.action, legal[-1])
        chosen = draws.choice(legal)
        actions.append(chosen)
        state = adapter.after(state, chosen, actions)


def broken(promise: str, actions: list[int]) -> str:
    """Return the message for a broken promise."""
    return f"{promise}\nActions that lead there: {actions}"


def shape_of(planes: NDArray[Any]) -> tuple[int, int, int]:
    """Return the sizes of an array of planes."""
    first, second, third = planes.shape
    return first, second, third


def whole_number(rules: type, name: str) -> int | None:
    """Return an attribute of a class that is a number from 1 on. None if it has no such attribute."""
    number = getattr(rules, name, None)
    if number is None:
        return None
    if isinstance(number, (bool, np.bool_)) or int(number) != number or number < 1:
        raise RulesError(f"`{name}` is {number!r}; a whole number from 1 on is possible")
    return int(number)


def policy_head(squares: int, actions: int, symmetries: list[tuple[list[int], list[int]]]) -> str:
    """Return the kind of a network's policy head: convolutions if each action is a square, with one more for a pass, else a linear layer.

    Symmetries tell whether action `n` is square `n`.
    """
    is_board = actions in (squares, squares + 1)
    return "planes" if is_board and all(images[:squares] == on_board for on_board, images in symmetries) else "dense"


class Adapter:
    """The rules of a class in the form that the native code asks for."""

    def __init__(self, rules: type, source: Source | None = None) -> None:
        missing = [name for name in ("to_move", "legal_actions", "play", "planes") if not callable(getattr(rules, name, None))]
        if not any(callable(getattr(rules, name, None)) for name in ("winner", "outcome")):
            missing.append("winner")
        if missing:
            raise RulesError(f"{rules.__name__} has no method `{'`, `'.join(missing)}`")
        self.rules: Any = rules
        self.source = source or Source(rules, text=text_of(rules))
        self.players = int(getattr(rules, "players", 2))
        #: Largest number in the planes of any position; None if the class does not say it.
        self.largest = whole_number(rules, "largest")
        #: Number of actions; None if the class does not say it.
        self.actions = whole_number(rules, "actions")
        name = getattr(rules, "name", None) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", rules.__name__)
        #: Name of the game: lower-case letters, digits and `-`.
        self.name = re.sub(r"[^a-z0-9-]+", "-", str(name).lower()).strip("-")
        self.layout: dict[str, Any] = {}
        self.rows = Rows((1, 1, 1), [[1, 1]], 1)

    def continued(self, known: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a run that continues, with the class as it is now, and keep the layout for rows."""
        shape, layout = shape_of(self.planes(self.rules(), [])), known["layout"]
        # Descriptions of earlier builds have the same number of planes for each plane of the class.
        kinds = known.get("planes") or [[max(1, (layout["planes"] - 2) // shape[0]), 1]] * shape[0]
        if len(kinds) != shape[0]:
            raise RulesError(f"`planes` has {shape[0]} planes, and {len(kinds)} when the run began")
        # The network has this head and these constants.
        same = {name: layout.get(name) for name in ("constants", "policy_head")}
        return self.described(Rows(shape, kinds, layout["entries"]), layout["actions"] - 1, same)

    def describe(self, seen: Seen) -> dict[str, Any]:
        """Return the description of a new run, and keep the layout for rows. Raises RulesError if the planes do not fit."""
        _, ranks, files = seen.numbers.shape
        if not (1 <= ranks <= 32 and 1 <= files <= 32):
            raise RulesError(f"`planes` has {ranks}×{files} squares; 1×1 to 32×32 are possible")
        try:
            kinds = seen.numbers.kinds(self.largest)
        except RowsError as error:
            raise RulesError(f"`planes` cannot be shown to a network: {error}") from error
        rows = Rows(seen.numbers.shape, kinds, seen.numbers.entries(kinds))
        return self.described(rows, seen.action, {"constants": rows.constants(seen.numbers.largest.tolist())})

    def described(self, rows: Rows, action: int, same: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a run with these rows. `same` has parts of the layout."""
        _, ranks, files = rows.shape
        self.rows = rows
        actions = self.actions or action + 1
        maps = [([int(to) for to in squares], [int(to) for to in images]) for squares, images in getattr(self.rules, "symmetries", [])]
        self.layout = {
            "game": self.name, "options": 0, "height": ranks, "width": files, "entries": rows.entries, "planes": rows.planes,
            "sparse": rows.sparse_planes, "ones": [rows.planes - 1],
            "actions": actions, "mirrored_actions": False, "policy_head": policy_head(ranks * files, actions, maps), **same,
        }  # fmt: skip
        return {
            "version": 1, "name": self.name, "players": self.players, "player_names": ["First", "Second"], "layout": self.layout,
            "symmetries": [{"squares": squares, "actions": images} for squares, images in maps],
            "source": hashlib.sha256(self.source.text).hexdigest(), "rules": self.source.place,
            "planes": rows.kinds,
        }  # fmt: skip

    # What the native code asks for.

    def start(self) -> tuple[Any, int, float | None, list[int], list[int]]:
        """Return the start of a game: state, player to move, value of a finished game, legal actions, row."""
        return self.answer(self.rules())

    def play(self, state: Any, action: int) -> tuple[Any, int, float | None, list[int], list[int]]:
        """Return the same for the state after an action. `state` does not change."""
        return self.answer(self.after(state, action, []))

    def action_text(self, state: Any, action: int) -> str:
        """Return an action as people write it."""
        text = getattr(state, "move_text", None)
        return str(text(action)) if text else str(action)

    def report(self, text: str) -> None:
        """Print a fault."""
        print(f"{self.rules.__name__}: {text}", file=sys.stderr, flush=True)

    # One question each to the user's class.

    def answer(self, state: Any) -> tuple[Any, int, float | None, list[int], list[int]]:
        """Return all that is asked about a state."""
        value = self.value(state, [])
        legal = [] if value is not None else self.legal(state, [])
        return state, self.mover(state, []), value, legal, self.row(state)

    def after(self, state: Any, action: int, actions: list[int]) -> Any:
        """Return the state after an action, and leave `state` as it is."""
        own = getattr(state, "copy", None)
        new: Any = own() if own else copy.deepcopy(state)
        if not isinstance(new, self.rules):
            raise RulesError(broken(f"`copy` returned {type(new).__name__}, not {self.rules.__name__}", actions))
        new.play(action)
        return new

    def mover(self, state: Any, actions: list[int]) -> int:
        """Return the player to move."""
        player = state.to_move()
        if isinstance(player, (bool, np.bool_)) or player not in range(self.players):
            raise RulesError(broken(f"`to_move` returned {player!r}; 0 to {self.players - 1} are possible", actions))
        return int(player)

    def legal(self, state: Any, actions: list[int]) -> list[int]:
        """Return the legal actions, ascending."""
        found = sorted(map(int, state.legal_actions()))
        if found and found[0] < 0:
            raise RulesError(broken(f"`legal_actions` holds {found[0]}; actions are numbers from 0 on", actions))
        if len(set(found)) < len(found):
            raise RulesError(broken(f"`legal_actions` holds an action twice: {found}", actions))
        if self.actions is not None and found and found[-1] >= self.actions:
            raise RulesError(broken(f"`legal_actions` holds {found[-1]}, but `actions` is {self.actions}", actions))
        return found

    def value(self, state: Any, actions: list[int]) -> float | None:
        """Return the value of a finished game for the first player. None while the game runs."""
        if callable(getattr(state, "winner", None)):
            winner = state.winner()
            if winner is None:
                return None
            if isinstance(winner, (bool, np.bool_)) or winner not in (-1, 0, 1) or winner >= self.players:
                raise RulesError(broken(f"`winner` returned {winner!r}; None, 0, 1 and -1 (a draw) are possible", actions))
            return {-1: 0.0, 0: 1.0, 1: -1.0}[int(winner)]
        outcome = state.outcome()
        if outcome is None:
            return None
        if not -1 <= outcome <= 1 or self.players == 2 and outcome not in (-1, 0, 1):
            raise RulesError(broken(f"`outcome` returned {outcome!r}; None, or a value for the first player of -1, 0 or 1", actions))
        return float(outcome)

    def planes(self, state: Any, actions: list[int]) -> NDArray[np.float64]:
        """Return the planes, [planes, ranks, files]."""
        planes = np.asarray(state.planes())
        if planes.ndim == 2:
            planes = planes[np.newaxis]
        if planes.ndim != 3:
            raise RulesError(broken(f"`planes` has {planes.ndim} dimensions; [planes, ranks, files] or [ranks, files] are possible", actions))
        if planes.dtype.kind not in "biuf" or not ((planes >= 0) & (planes <= LARGEST_VALUE)).all():
            raise RulesError(broken(f"`planes` holds what is not a number from 0 to {LARGEST_VALUE}", actions))
        if self.largest is not None and planes.size and planes.max() > self.largest:
            raise RulesError(broken(f"`planes` holds {planes.max():g}, but `largest` is {self.largest}", actions))
        return planes.astype(np.float64)

    def row(self, state: Any) -> list[int]:
        """Return the row of a state. Raises RulesError if its planes hold what the rows of the run cannot."""
        planes = np.asarray(state.planes())
        if planes.shape != self.rows.shape:
            planes = self.planes(state, [])
            if planes.shape != self.rows.shape:
                raise RulesError(f"`planes` has the shape {shape_of(planes)}, not {self.rows.shape} as at the start")
        try:
            return self.rows.row(planes)
        except RowsError as error:
            raise RulesError(f"`planes`: {error}") from error
