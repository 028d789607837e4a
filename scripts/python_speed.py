#!/usr/bin/env python3
"""Measure the rules of the Python package, python-chess and Pgx, in turns in one process on one core.

    python3 scripts/python_speed.py                      # builds the wheel; some minutes after that
    python3 scripts/python_speed.py --wheel W --rounds 7

Each line is one measurement: the median of the rounds for Minuet and for the other library, and the median of the rounds' ratios. The
seconds are processor time of all threads, so that other work on the machine counts little.
Minuet's batches choose actions with NumPy. Pgx runs with JAX on the processor, compiled: once with a call for each step, whose state is
returned with its observations, and once with all steps in one compiled loop, where observations that nobody reads cost nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

#: Counts things for about a second: returns their number and the seconds of processor time.
Measure = Callable[[], tuple[int, float]]

PERFT_DEPTH = 4
PERFT_NODES = 197_281
#: Actions that Pgx plays in one measurement, in all games of a batch together.
ACTIONS = {"connect-four": 600_000, "othello": 150_000, "chess": 4_096}


def clocked(work: Callable[[], int]) -> Measure:
    def measure() -> tuple[int, float]:
        began = time.process_time()
        count = work()
        return count, time.process_time() - began

    return measure


def repeated(work: Callable[[], int], seconds: float = 0.7) -> Measure:
    """Does the work until the time is over."""

    def measure() -> tuple[int, float]:
        began, count = time.process_time(), 0
        while (passed := time.process_time() - began) < seconds:
            count += work()
        return count, passed

    return measure


def perft_minuet(state: Any, depth: int) -> int:
    actions = state.legal_actions()
    if depth == 1:
        return len(actions)
    nodes = 0
    for action in actions.tolist():
        child = state.copy()
        child.play(action)
        nodes += perft_minuet(child, depth - 1)
    return nodes


def perft_chess(board: Any, depth: int) -> int:
    if depth == 1:
        return board.legal_moves.count()
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += perft_chess(board, depth - 1)
        board.pop()
    return nodes


def chess_lines() -> list[tuple[str, str, Measure, Measure]]:
    import chess
    import minuet
    import numpy as np

    game = minuet.Game("chess", underpromotions=True)
    assert perft_minuet(game.start(), PERFT_DEPTH) == perft_chess(chess.Board(), PERFT_DEPTH) == PERFT_NODES

    random = np.random.default_rng(1)
    boards, states = [], []
    while len(boards) < 2000:
        board = chess.Board()
        for _ in range(int(random.integers(4, 80))):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[int(random.integers(len(moves)))])
        state = game.start(board.fen())
        if state.outcome is None:
            boards.append(board)
            states.append(state)
    entries, counts = minuet.Batch(states).legal()
    assert counts.tolist() == [board.legal_moves.count() for board in boards]

    def legal_minuet() -> int:
        minuet.Batch(states).legal()
        return len(states)

    def legal_chess() -> int:
        for board in boards:
            list(board.legal_moves)
        return len(boards)

    def play_chess() -> int:
        plies, board = 0, chess.Board()
        while not board.is_game_over():
            moves = list(board.legal_moves)
            board.push(moves[int(random.integers(len(moves)))])
            plies += 1
        return plies

    perft = (
        f"chess: perft {PERFT_DEPTH} in Python, one state at a time",
        "nodes/s",
        clocked(lambda: perft_minuet(game.start(), PERFT_DEPTH)),
        clocked(lambda: perft_chess(chess.Board(), PERFT_DEPTH)),
    )
    legal = ("chess: legal moves of 2,000 positions", "positions/s", repeated(legal_minuet), repeated(legal_chess))
    steps = Steps("chess", 256)
    played = ("chess: random games to their end, 256 at a time", "moves/s", repeated(steps.step), repeated(play_chess))
    return [perft, legal, played]


class Steps:
    """Random games of a batch; finished ones begin again."""

    def __init__(self, name: str, size: int) -> None:
        import minuet
        import numpy as np

        self.batch = minuet.Game(name).batch(size)
        self.random = np.random.default_rng(2)
        self.numpy = np
        self.finished = 0

    def step(self) -> int:
        np, batch = self.numpy, self.batch
        entries, counts = batch.legal()
        first = np.cumsum(counts) - counts
        batch.play(entries[first + (self.random.random(len(batch)) * counts).astype(np.uint32)])
        batch.values()
        self.finished += len(batch.restart())
        return len(batch)

    def step_with_planes(self) -> int:
        count = self.step()
        self.batch.planes()
        self.batch.legal_mask()
        return count


def pgx_steps(name: str, size: int) -> tuple[Measure, Measure]:
    """Pgx with a call for each step, and in one compiled loop."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name.replace("-", "_"))
    init = jax.jit(jax.vmap(env.init))
    vector = jax.vmap(auto_reset(env.step, env.init))
    steps = max(2, ACTIONS[name] // size)

    def one(state: Any, key: Any) -> tuple[Any, Any]:
        key, acting, stepping = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(acting, logits, axis=-1)
        return vector(state, action, jax.random.split(stepping, size)), key

    single = jax.jit(one)

    @jax.jit
    def loop(state: Any, key: Any) -> tuple[Any, Any, Any]:
        def body(_: Any, carried: Any) -> Any:
            state, key, finished = carried
            state, key = one(state, key)
            return state, key, finished + state.terminated.sum()

        state, key, finished = jax.lax.fori_loop(0, steps, body, (state, key, 0))
        return state.legal_action_mask, key, finished

    start = init(jax.random.split(jax.random.PRNGKey(0), size))
    held = {"state": start, "key": jax.random.PRNGKey(1)}

    def by_step() -> int:
        state, key = held["state"], held["key"]
        for _ in range(steps):
            state, key = single(state, key)
        jax.block_until_ready((state, key))
        held.update(state=state, key=key)
        return steps * size

    def in_loop() -> int:
        mask, key, finished = loop(held["state"], held["key"])
        jax.block_until_ready((mask, key, finished))
        held["key"] = key
        return steps * size

    # Compilation does not count.
    by_step()
    in_loop()
    return clocked(by_step), clocked(in_loop)


def pgx_lines(sizes: list[int]) -> list[tuple[str, str, Measure, Measure]]:
    lines = []
    for name in ACTIONS:
        for size in sizes:
            own = Steps(name, size)
            by_step, in_loop = pgx_steps(name, size)
            what = f"{name}: random steps of {size:,} games"
            lines.append((f"{what}, with planes and masks, a call each", "steps/s", repeated(own.step_with_planes), by_step))
            lines.append((f"{what}, without planes, a compiled loop", "steps/s", repeated(own.step), in_loop))
    return lines


def measure(arguments: argparse.Namespace) -> None:
    core = min(os.sched_getaffinity(0)) if arguments.core is None else arguments.core
    os.sched_setaffinity(0, {core})
    lines = [("python-chess", *line) for line in chess_lines()]
    lines += [("Pgx", *line) for line in pgx_lines(arguments.sizes)]
    rates: list[list[tuple[float, float]]] = [[] for _ in lines]
    for number in range(arguments.rounds):
        for place, (*_, ours, theirs) in enumerate(lines):
            # Each begins in every other round.
            order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
            found = [count / seconds for count, seconds in (each() for each in order)]
            rates[place].append((found[0], found[1]) if number % 2 == 0 else (found[1], found[0]))
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    for (other, what, unit, *_), pairs in zip(lines, rates):
        ours, theirs = (statistics.median(each) for each in zip(*pairs))
        ratio = statistics.median(one / two for one, two in pairs)
        print(json.dumps({"what": what, "unit": unit, "minuet": round(ours), "other": other, "theirs": round(theirs), "ratio": round(ratio, 2)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="measure this wheel and build none")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all measurements")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 4096], help="sizes of the batches, as for Pgx")
    parser.add_argument("--core", type=int, help="core to run on (default: the first one)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        measure(arguments)
        return
    import python_env
    import test_python

    builder = python_env.interpreter("minuet")
    wheel = arguments.wheel or test_python.build(builder)
    with tempfile.TemporaryDirectory() as folder:
        python = test_python.environment(Path(folder) / "clean", builder, wheel, python_env.interpreter("pgx"))
        given = [argument for argument in sys.argv[1:] if argument != "--wheel" and argument != str(arguments.wheel)]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        sys.exit(subprocess.run([str(python), "-P", __file__, "--here", *given], env=environment).returncode)


if __name__ == "__main__":
    main()
