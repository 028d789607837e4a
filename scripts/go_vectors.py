#!/usr/bin/env python3
"""Write games/tests/data/go/random_games.jsonl.gz: random games of Go with the legal moves of other people's programs.

Needs OpenSpiel, Pgx and JAX (`pip install open_spiel pgx "jax[cpu]"`) and GNU Go 3.8 (Debian: gnugo).

    python3 scripts/go_vectors.py
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np
import pyspiel
from pgx.go import Go

OUTPUT = Path(__file__).resolve().parent.parent / "games/tests/data/go/random_games.jsonl.gz"
LETTERS = "ABCDEFGHJKLMNOPQRST"


def hexadecimal(actions: list[int]) -> str:
    return f"{sum(1 << action for action in actions):x}"


def walk(size: int, legal: Callable[[], list[int]], play: Callable[[int], None], draw: random.Random) -> dict[str, object]:
    """Play random moves, one in twenty of them a pass, then two passes. `legal` and `play` are an engine's."""
    area = size * size
    actions, sets = [], []
    length = draw.randrange(area, 2 * area - 6)
    while actions[-2:] != [area, area]:
        moves = legal()
        sets.append(hexadecimal(moves))
        is_end = len(actions) >= length
        passes = is_end or len(moves) == 1 or actions[-1:] != [area] and draw.random() < 0.05
        actions.append(area if passes else draw.choice(moves[:-1]))
        play(actions[-1])
    return {"size": size, "actions": actions, "legal": sets}


def openspiel(size: int, draw: random.Random) -> dict[str, object]:
    """OpenSpiel allows a move that repeats a position, and then ends the game: such moves are left out."""
    area = size * size
    state = pyspiel.load_game(f"go(board_size={size},komi=7.5)").new_initial_state()

    def legal() -> list[int]:
        return [action for action in state.legal_actions() if action == area or not state.child(action).is_terminal()]

    game = walk(size, legal, state.apply_action, draw)
    low, high = -area, area
    while low < high:  # The result tells on which side of the compensation the score is.
        middle = (low + high) // 2
        other = pyspiel.load_game(f"go(board_size={size},komi={middle + 0.5})").new_initial_state()
        for action in game["actions"]:
            other.apply_action(action)
        low, high = (middle + 1, high) if other.returns()[0] > 0 else (low, middle)
    return game | {"area": low}


def pgx_games(size: int, count: int, draw: random.Random) -> Iterator[dict[str, object]]:
    """Pgx allows a move that repeats a position, and then ends the game: such moves are left out."""
    env = Go(size=size)
    step = jax.jit(env.step)
    after = jax.jit(lambda state: jax.vmap(env.step, in_axes=(None, 0))(state, np.arange(size * size + 1))._x.is_psk)
    scores = jax.jit(lambda state: __import__("pgx._src.games.go", fromlist=["_count_scores"])._count_scores(state._x, size))
    for _ in range(count):
        states = [env.init(jax.random.PRNGKey(0))]

        def legal() -> list[int]:
            return np.flatnonzero(np.asarray(states[-1].legal_action_mask) & ~np.asarray(after(states[-1]))).tolist()

        game = walk(size, legal, lambda action: states.append(step(states[-1], action)), draw)
        black, white = scores(states[-1])
        yield game | {"area": int(black - white)}


def gnugo(size: int, suicide: bool, situational: bool, draw: random.Random) -> dict[str, object]:
    """Moves that do not fill an own eye, so that mostly no dead stones are left. Only then the score counts the board as it is."""
    options = ["--allow-suicide" if suicide else "--forbid-suicide"]
    options.append("--situational-superko" if situational else "--positional-superko")
    command = ["gnugo", "--mode", "gtp", "--chinese-rules", "--level", "1", *options]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/games:/usr/bin"})

    def ask(line: str) -> str:
        program.stdin.write(line + "\n")
        program.stdin.flush()
        answer = iter(program.stdout.readline, "\n")
        return " ".join(part.strip("=? \n") for part in answer)

    def square(name: str) -> int:
        return (int(name[1:]) - 1) * size + LETTERS.index(name[0])

    area, actions, sets = size * size, [], []
    for line in (f"boardsize {size}", "clear_board", "komi 0"):
        ask(line)
    while actions[-2:] != [area, area]:
        color = ["black", "white"][len(actions) % 2]
        moves = sorted(map(square, ask(f"all_legal {color}").split()))
        sets.append(hexadecimal([*moves, area]))
        own = set(map(square, ask(f"list_stones {color}").split()))
        filled = {at for at in moves if all(next in own for next in neighbours(size, at))}
        actions.append(draw.choice(sorted(set(moves) - filled) or [area]))
        at = actions[-1]
        name = "pass" if at == area else f"{LETTERS[at % size]}{at // size + 1}"
        ask(f"play {color} {name}")
        if len(actions) > 2 * area + 30:
            program.kill()
            return gnugo(size, suicide, situational, draw)
    dead, score = ask("final_status_list dead"), ask("final_score")
    ask("quit")
    points = 0 if score == "0" else int(float(score[2:])) * (1 if score[0] == "B" else -1)
    rules = {"suicide": suicide, "superko": "situational" if situational else "positional"}
    return {"size": size, "actions": actions, "legal": sets, "area": None if dead else points, **rules}


def neighbours(size: int, at: int) -> list[int]:
    rank, file = divmod(at, size)
    near = [(rank - 1, file), (rank + 1, file), (rank, file - 1), (rank, file + 1)]
    return [r * size + f for r, f in near if 0 <= r < size and 0 <= f < size]


def games() -> Iterator[tuple[str, dict[str, object]]]:
    draw = random.Random(39)
    for size, count in [(3, 10), (5, 10), (9, 6), (19, 1)]:
        yield from (("openspiel", openspiel(size, draw)) for _ in range(count))
    for size, count in [(5, 6), (9, 4)]:
        yield from (("pgx", game) for game in pgx_games(size, count, draw))
    for size, count in [(5, 4), (9, 2)]:
        for suicide in (False, True):
            for situational in (False, True):
                yield from (("gnugo", gnugo(size, suicide, situational, draw)) for _ in range(count))


if __name__ == "__main__":
    with gzip.GzipFile(OUTPUT, "wb", mtime=0) as file:
        for source, game in games():
            print(source, game["size"], len(game["actions"]), game["area"])
            line = {"source": source, "suicide": False, "superko": "positional"} | game
            file.write((json.dumps(line, separators=(",", ":")) + "\n").encode())
