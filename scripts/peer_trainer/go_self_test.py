"""The self-test for Go: the rules of Minuet and of Pgx must agree, because both keep the board when a network plays by GTP."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peer_trainer.self_test import expect
from peer_trainer.settings import GO, Tree

#: Number of random games that are compared.
GAMES = 128
PASS = GO.actions - 1


def go_self_test(env: Any, minuet: Path, seed: int) -> dict[str, Any]:
    """Compare legal moves and winners of random games. Exit if they differ."""
    games = random_games(env, seed)
    rules = {"game": "go", "size": GO.rows, "early_end": False, "start": None}
    asked = "".join(json.dumps(rules | {"id": number, "actions": moves}) + "\n" for number, (moves, _, _) in enumerate(games))
    done = subprocess.run([str(minuet), "rules"], input=asked, text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(len(answers) == len(games), "`minuet rules` did not answer all requests")
    outcomes: list[str | None] = []
    for answer, (moves, legal, winner) in zip(answers, games):
        expect(answer["error"] is None, f"`minuet rules` refuses {moves}: {answer['error']}")
        expect(answer["outcome"] == winner, f"the outcome of {moves} is {answer['outcome']} in Minuet, {winner} in Pgx")
        expect(winner is not None or answer["legal"] == legal, f"legal moves of {moves}: {answer['legal']} in Minuet, {legal} in Pgx")
        outcomes.append(winner)
    expect(set(outcomes) == {None, "first", "second"}, f"the games ended in {set(outcomes)} only")
    return {"games": len(games), "ended": sum(winner is not None for winner in outcomes)}


def random_games(env: Any, seed: int) -> list[tuple[list[int], list[int], str | None]]:
    """Return moves of random games, with the legal moves and the winner after them. Every second game ends by two passes."""
    draws = random.Random(seed)
    begin, step = jax.jit(env.init), jax.jit(env.step)
    repeats = jax.jit(lambda state: jax.vmap(env.step, in_axes=(None, 0))(state, jnp.arange(GO.actions))._x.is_psk)
    games = []
    for number in range(GAMES):
        state = begin(jax.random.PRNGKey(number))
        moves: list[int] = []
        black = int(state.current_player)
        for _ in range(draws.randrange(2 * PASS - 6)):
            # Two passes would end the game, and so would a repeated position, which Pgx allows and takes as lost.
            action = draws.choice(np.flatnonzero(state.legal_action_mask)[:-1].tolist() or [PASS])
            after = step(state, action)
            if not after.terminated:
                state, moves = after, [*moves, action]
        if number % 2 == 0:
            for _ in range(2 - int(state._x.consecutive_pass_count)):
                state, moves = step(state, PASS), [*moves, PASS]
        winner = ("first" if state.rewards[black] > 0 else "second") if state.terminated else None
        games.append((moves, np.flatnonzero(np.asarray(state.legal_action_mask) & ~np.asarray(repeats(state))).tolist(), winner))
    return games
