"""`python -m minuet check FILE.py`: plays a game of one's own at random and checks every promise that its class makes."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from .own import Adapter, RulesError, Seen, broken, observe, play_at_random, shape_of

#: Random games of a check.
GAMES = 1000
#: Games whose positions are compared in every symmetry, and played twice.
COMPARED = 20


def check(rules: type, *, games: int = GAMES, seed: int = 1) -> str:
    """Check a class and return what it showed, a line for each fact. Raises RulesError for a broken promise.

    Exceptions of the class are raised as they are, with a note of the actions that lead there.
    """
    adapter = Adapter(rules)
    seen = observe(adapter, seed, 1)
    draws = random.Random(seed)
    began = time.perf_counter()
    for number in range(games):
        actions = play_noted(adapter, seen, draws)
        if number < COMPARED:
            compare_copies(adapter, actions)
            compare_again(adapter, actions)
    seconds = time.perf_counter() - began
    description = adapter.describe(seen)
    layout = description["layout"]
    compare_symmetries(adapter, layout, [play_noted(adapter, seen, draws) for _ in range(COMPARED)])
    planes, ranks, files = seen.numbers.shape
    most = seen.numbers.largest.max()
    numbers = "" if most <= 1 and not seen.numbers.fractions else f" with numbers up to {most:g}"
    names = {1.0: "won by the first player", -1.0: "won by the second player", 0.0: "drawn"}
    ends = ", ".join(f"{count} {names.get(value, f'of value {value:g}')}" for value, count in sorted(seen.ends.items(), reverse=True))
    return "\n".join([
        f"{description['name']}: {description['players']} players, {layout['actions']} actions, {planes} planes of {ranks}×{files} squares{numbers}",
        f"{seen.games} random games ({ends}), {seen.positions / seen.games:.1f} positions each",
        f"{len(description['symmetries'])} symmetries besides the identity",
        f"{seen.positions / seconds:,.0f} positions a second on one core",
    ])  # fmt: skip


def play_noted(adapter: Adapter, seen: Seen, draws: random.Random) -> list[int]:
    """Play a random game. An exception of the class gets a note of the game so far."""
    before = draws.getstate()
    try:
        return play_at_random(adapter, seen, draws)
    except RulesError:
        raise
    except Exception as error:
        error.add_note(f"Actions that lead there: {actions_until(adapter, before)}")
        raise


def actions_until(adapter: Adapter, draws_before: Any) -> list[int]:
    """Play the same random game again and return its actions up to the exception."""
    draws = random.Random()
    draws.setstate(draws_before)
    actions = list[int]()
    try:
        state = adapter.rules()
        while adapter.value(state, actions) is None:
            actions.append(draws.choice(adapter.legal(state, actions)))
            state = adapter.after(state, actions[-1], actions)
            adapter.planes(state, actions)
    except Exception:
        pass
    return actions


def compare_copies(adapter: Adapter, actions: list[int]) -> None:
    """Play the actions, and look whether a play changes the state before it: a list or an array that copies share."""
    state = adapter.rules()
    for number, action in enumerate(actions):
        before = facts(adapter, state, actions[:number])
        after = adapter.after(state, action, actions[:number])
        if facts(adapter, state, actions[:number]) != before:
            raise RulesError(broken(f"playing {action} on a copy changes the state that was copied: they share something", actions[: number + 1]))
        state = after


def compare_again(adapter: Adapter, actions: list[int]) -> None:
    """Play the actions on one object without copies. The end must be that of the play with copies."""
    copied, alone = adapter.rules(), adapter.rules()
    for number, action in enumerate(actions):
        copied = adapter.after(copied, action, actions[:number])
        alone.play(action)
        if facts(adapter, copied, actions[: number + 1]) != facts(adapter, alone, actions[: number + 1]):
            raise RulesError(broken("the same actions lead to another position when they are played again: are the rules random?", actions[: number + 1]))


def compare_symmetries(adapter: Adapter, layout: dict[str, Any], games: list[list[int]]) -> None:
    """Play the image of each game in each symmetry. Its positions must be the images of the positions."""
    squares = layout["height"] * layout["width"]
    for number, maps in enumerate(getattr(adapter.rules, "symmetries", []), 1):
        square_map, action_map = np.asarray(maps[0], int), np.asarray(maps[1], int)
        for what, found, count in (("squares", square_map, squares), ("actions", action_map, layout["actions"])):
            if sorted(found.tolist()) != list(range(count)):
                raise RulesError(f"symmetry {number}: the map of {what} is not a permutation of 0 to {count - 1}")
        for actions in games:
            state, image = adapter.rules(), adapter.rules()
            for played in range(len(actions) + 1):
                so_far = actions[:played]
                compare_image(adapter, state, image, square_map, action_map, number, so_far)
                if played < len(actions):
                    state = adapter.after(state, actions[played], so_far)
                    image = adapter.after(image, int(action_map[actions[played]]), so_far)


def compare_image(adapter: Adapter, state: Any, image: Any, square_map: Any, action_map: Any, number: int, actions: list[int]) -> None:
    """Compare a position with its image in a symmetry."""
    if adapter.value(state, actions) != adapter.value(image, actions):
        raise RulesError(broken(f"symmetry {number}: the image of a game ends otherwise", actions))
    planes, other = adapter.planes(state, actions), adapter.planes(image, actions)
    flat = planes.reshape(shape_of(planes)[0], -1)
    turned = np.empty_like(flat)
    turned[:, square_map] = flat
    if (turned != other.reshape(flat.shape)).any():
        raise RulesError(broken(f"symmetry {number}: the planes of the image are not the image of the planes", actions))
    if adapter.value(state, actions) is None:
        legal = sorted(int(action_map[action]) for action in adapter.legal(state, actions))
        if legal != adapter.legal(image, actions):
            raise RulesError(broken(f"symmetry {number}: the legal actions of the image are not the image of the legal actions", actions))


def facts(adapter: Adapter, state: Any, actions: list[int]) -> tuple[Any, ...]:
    """Return all that is known about a state, in a form that can be compared."""
    value = adapter.value(state, actions)
    legal = adapter.legal(state, actions) if value is None else []
    return adapter.mover(state, actions), value, legal, adapter.planes(state, actions).tobytes()
