"""The self-test: the ONNX file of a random network must give what the same network gives in JAX.

`minuet rules` makes the inputs of the ONNX file, and Pgx makes those of JAX, from the same moves.
"""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime

from peer_trainer.network import evaluate, first_parameters, fold, train_forward
from peer_trainer.onnx_file import COLUMNS, GAME, INPUT, LAYOUT, POLICY, ROWS, VALUE, write_network
from peer_trainer.settings import CONNECT_FOUR, Settings, Tree

#: Least number of positions that are compared through ONNX Runtime.
POSITIONS = 256
#: Least number of positions that are compared through `minuet query` too.
QUERIES = 8
#: Largest difference of equal outputs.
TOLERANCE = 1e-4
#: Least difference between the outputs for a right observation and for a wrong one.
CONTROL = 1e-2


class Known(NamedTuple):
    """Positions: the answers of `minuet rules`, and the observations of Pgx."""

    answers: list[dict[str, Any]]
    observations: np.ndarray


def self_test(settings: Settings, env: Any, minuet: Path, seed: int) -> dict[str, Any]:
    """Compare the ONNX file with JAX, in ONNX Runtime and in Minuet. Exit if they differ."""
    known = random_positions(env, minuet, seed)
    rows = np.array([answer["row"] for answer in known.answers], np.int32)
    weights = random_network(settings, known.observations, jax.random.PRNGKey(seed))
    in_jax = jax.jit(functools.partial(evaluate, weights))
    logits, values = (np.asarray(output) for output in in_jax(known.observations))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        write_network(path, weights, 0)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        outputs = session.run([POLICY, VALUE], {INPUT: rows})
        apart = distance(outputs, (logits, values))
        expect(apart <= TOLERANCE, f"the ONNX file and JAX differ by {apart}")
        # Outputs for wrong observations must differ. Otherwise the comparison would not notice these faults.
        faults = {"players": known.observations[..., ::-1], "rows": known.observations[:, ::-1], "columns": known.observations[:, :, ::-1]}
        for fault, observations in faults.items():
            expect(distance(outputs, in_jax(observations)) > CONTROL, f"exchanged {fault} are not seen")
        asked = range(0, len(rows), len(rows) // QUERIES)
        for number in asked:
            compare_query(query(minuet, path, known.answers[number]["fen"]), known.answers[number]["legal"], logits[number], values[number])
    return {"positions": len(rows), "largest_difference": apart, "queries": len(asked)}


def random_positions(env: Any, minuet: Path, seed: int) -> Known:
    """Return positions of random games. Exit if the rules of Minuet and Pgx differ."""
    games = random_games(env, seed)
    requests = [{"id": number, "game": GAME, "options": LAYOUT["options"], "start": None, "actions": moves} for number, (moves, _) in enumerate(games)]
    asked = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(minuet), "rules"], input=asked, text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(len(answers) == len(requests), "`minuet rules` did not answer all requests")
    known = []
    for request, answer, (_, state) in zip(requests, answers, games):
        expect(answer["error"] is None and answer["id"] == request["id"], f"`minuet rules` refuses {request}: {answer}")
        expect((answer["outcome"] is not None) == bool(state.terminated), f"the end of {request} differs: {answer['outcome']}")
        if not state.terminated:
            legal = np.flatnonzero(state.legal_action_mask).tolist()
            expect(answer["legal"] == legal, f"legal moves of {request}: {answer['legal']} in Minuet, {legal} in Pgx")
            known.append((answer, state.observation))
    expect({answer["to_move"] for answer, _ in known} == {0, 1}, "all positions are of one player")
    return Known([answer for answer, _ in known], np.stack([observation for _, observation in known]))


def random_games(env: Any, seed: int) -> list[tuple[list[int], Tree]]:
    """Return the moves of random games, and Pgx's state after them. `POSITIONS` of the games are not over."""
    draws = random.Random(seed)
    step = jax.jit(env.step)
    begin = jax.jit(env.init)(jax.random.PRNGKey(seed))
    games: list[tuple[list[int], Tree]] = []
    while sum(not state.terminated for _, state in games) < POSITIONS:
        moves: list[int] = []
        state, target = begin, draws.randrange(ROWS * COLUMNS)
        while not state.terminated and len(moves) < target:
            moves.append(draws.choice(np.flatnonzero(state.legal_action_mask).tolist()))
            state = step(state, moves[-1])
        games.append((moves, jax.tree.map(np.asarray, state)))
    return games


def random_network(settings: Settings, observations: np.ndarray, key: jax.Array) -> Tree:
    """Return folded weights of a network in which every number is random. Exit if the folding changes its outputs."""
    parameters, _ = first_parameters(CONNECT_FOUR, settings, key)
    leaves, shape = jax.tree.flatten(parameters)
    keys = jax.random.split(key, len(leaves))
    parameters = jax.tree.unflatten(shape, [leaf + 0.2 * jax.random.normal(one, leaf.shape) for leaf, one in zip(leaves, keys)])
    logits, values, statistics = jax.jit(train_forward)(parameters, observations)
    weights = fold(parameters, statistics)
    apart = distance((logits, values), jax.jit(evaluate)(weights, observations))
    expect(apart < TOLERANCE * float(jnp.abs(logits).max() + 1), f"folded normalisations change the outputs by {apart}")
    return weights


def query(minuet: Path, network: Path, position: str) -> dict[str, Any]:
    """Return the evaluation of a position by a network, as `minuet query` prints it."""
    command = [str(minuet), "query", str(network), "--provider", "cpu", "--json", "--top", str(COLUMNS), "--position", position]
    return dict(json.loads(subprocess.run(command, text=True, capture_output=True, check=True).stdout))


def compare_query(found: dict[str, Any], legal: list[int], logits: np.ndarray, value: np.ndarray) -> None:
    """Compare an answer of `minuet query` with the outputs of JAX. Exit if they differ."""
    priors = np.exp(logits[legal] - logits[legal].max())
    expected = {action: float(prior) for action, prior in zip(legal, priors / priors.sum())}
    answered = {move["action"]: move["prior"] for move in found["moves"]}
    expect(answered.keys() == expected.keys(), f"`minuet query` has other moves: {answered}, {expected}")
    farthest = max([abs(answered[action] - expected[action]) for action in legal] + [abs(found["value"] - float(value))])
    expect(farthest <= TOLERANCE, f"`minuet query` and JAX differ by {farthest}")


def distance(one: Any, other: Any) -> float:
    """Return the largest difference of two networks' outputs."""
    return max(float(np.abs(np.asarray(a).ravel() - np.asarray(b).ravel()).max()) for a, b in zip(one, other))


def expect(holds: bool, fault: str) -> None:
    """Exit with the message `fault` unless `holds` is true."""
    if not holds:
        sys.exit(f"peer: self-test: {fault}")
