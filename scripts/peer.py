#!/usr/bin/env python3
"""Train Connect Four with other people's programs, to compare Minuet with: Gumbel AlphaZero in JAX, rules of Pgx, search of mctx.

    python=$(python3 scripts/python_env.py peer)
    $python scripts/peer.py --out DIR --minutes 1,2,4,8,15 --seed 1
    target/release/minuet arena --game connect-four DIR/minute-1.onnx,visits=100 uct,visits=100 --games 200
    target/release/minuet bench accuracy --game connect-four --model DIR/minute-1.onnx --positions 100 --visits 1 --visits 100

A minute is 117 seconds of processor time of this process, all threads together: 0.975 of two cores for a minute. Everything counts
(imports, self-play, training, writing of networks) except the self-test and the compilation of the training loop, which each line of
output names. After each of the minutes the network is written as ONNX file, with a description for `inference.models` beside it, and a
line of JSON says how far the training was.

Self-play is the usual one: 32 simulations a move, moves and policy targets (completed values) by mctx's `gumbel_muzero_policy`, new
games in place of finished ones. Each iteration plays some moves of all games and trains on random samples of the last positions. The
value target is the result of the game; positions of games that still run have none yet.

Before it trains, the program compares the ONNX file of a random network with the same network in JAX: positions and rows are made by
`minuet rules`, observations by Pgx. `--self-test` does only that.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import onnx
import onnxruntime
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ROOT = Path(__file__).resolve().parent.parent
GAME = "connect-four"
ROWS, COLUMNS = 6, 7
#: Seconds of processor time that count as a minute.
MINUTE = 117.0
#: Added to variances before the division.
EPSILON = 1e-5
#: Share of the old running statistics that a training step keeps.
STATISTICS_DECAY = 0.97
#: Name of the axis of devices.
DEVICES = "devices"
#: Self-test: positions compared through ONNX Runtime, those also compared through `minuet query`, and the largest difference allowed.
TEST_POSITIONS = 256
TEST_QUERIES = 8
TOLERANCE = 1e-4
#: Inputs and outputs of the ONNX file, those of Minuet's own models.
INPUT, POLICY, VALUE = "indices", "policy_logits", "value"
#: Least distance from the right outputs that outputs for a wrong position must have in the self-test.
CONTROL = 1e-2

#: A tree of arrays.
Tree = Any


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters. Numbers of games and samples are those of all devices together."""

    blocks: int = 4
    filters: int = 32
    simulations: int = 32
    games: int = 256
    steps: int = 8
    window: int = 16
    samples: float = 4.0
    batch: int = 256
    rate: float = 2e-3
    random_plies: int = 0
    devices: int = 2

    @property
    def updates(self) -> int:
        """Return the number of training steps in an iteration."""
        return max(1, round(self.samples * self.games * self.steps / self.batch))

    def check(self) -> None:
        """Exit if the devices cannot share the work equally."""
        if self.games % self.devices or self.batch % self.devices:
            sys.exit("peer: --games and --batch must be multiples of --devices")


class Positions(NamedTuple):
    """Positions of self-play: [steps, games, …]."""

    observation: jax.Array
    policy: jax.Array
    #: Reward of the move for the player who made it.
    reward: jax.Array
    #: True if the move ended the game.
    over: jax.Array


class Learner(NamedTuple):
    """What training changes. Each device has the same."""

    parameters: Tree
    statistics: Tree
    optimizer: Tree


class Players(NamedTuple):
    """What self-play changes. Each device has its own games."""

    states: Tree
    window: Positions
    #: Number of the window's last steps that were played.
    filled: jax.Array
    key: jax.Array


# Network


def first_parameters(settings: Settings, key: jax.Array) -> tuple[Tree, Tree]:
    """Return random parameters, and the running statistics of the normalisations."""
    filters, squares = settings.filters, ROWS * COLUMNS
    shapes = [(3, 3, 2, filters), *[(3, 3, filters, filters)] * (2 * settings.blocks), (1, 1, filters, 3)]
    *keys, hidden_key = jax.random.split(key, len(shapes) + 1)

    def scaled(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, shape) * np.sqrt(2 / np.prod(shape[:-1]))

    widths = [shape[-1] for shape in shapes]
    parameters = {
        "kernels": [scaled(key, shape) for key, shape in zip(keys, shapes)],
        "scales": [jnp.ones(width) for width in widths],
        "shifts": [jnp.zeros(width) for width in widths],
        "policy": (jnp.zeros((2 * squares, COLUMNS)), jnp.zeros(COLUMNS)),
        "hidden": (scaled(hidden_key, (squares, filters)), jnp.zeros(filters)),
        "value": (jnp.zeros((filters, 1)), jnp.zeros(1)),
    }
    return parameters, [(jnp.zeros(width), jnp.ones(width)) for width in widths]


def forward(weights: Tree, observation: jax.Array, norm: Callable[[int, jax.Array], jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return policy logits and values. `norm(number, x)` is what follows a convolution without bias."""

    def layer(number: int, x: jax.Array) -> jax.Array:
        kernel = weights["kernels"][number]
        return norm(number, jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def dense(name: str, x: jax.Array) -> jax.Array:
        kernel, bias = weights[name]
        return x @ kernel + bias

    heads = len(weights["kernels"]) - 1
    x = jax.nn.relu(layer(0, observation.astype(jnp.float32)))
    for number in range(1, heads, 2):
        x = jax.nn.relu(x + layer(number + 1, jax.nn.relu(layer(number, x))))
    x = jax.nn.relu(layer(heads, x))
    count = x.shape[0]
    logits = dense("policy", x[..., :2].reshape(count, -1))
    hidden = jax.nn.relu(dense("hidden", x[..., 2].reshape(count, -1)))
    return logits, jnp.tanh(dense("value", hidden)[:, 0])


def train_forward(parameters: Tree, observation: jax.Array) -> tuple[jax.Array, jax.Array, Tree]:
    """Return logits, values and the batch's statistics, by which the layers are normalised."""
    found: list[tuple[jax.Array, jax.Array]] = []

    def norm(number: int, x: jax.Array) -> jax.Array:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        found.append((mean, variance))
        return (x - mean) * (parameters["scales"][number] / jnp.sqrt(variance + EPSILON)) + parameters["shifts"][number]

    logits, values = forward(parameters, observation, norm)
    return logits, values, found


def fold(parameters: Tree, statistics: Tree) -> Tree:
    """Return the weights of a network without normalisations, which are put into its convolutions."""
    factors = [scale / jnp.sqrt(variance + EPSILON) for scale, (_, variance) in zip(parameters["scales"], statistics)]
    kernels = [kernel * factor for kernel, factor in zip(parameters["kernels"], factors)]
    shifts = [shift - mean * factor for shift, (mean, _), factor in zip(parameters["shifts"], statistics, factors)]
    heads = {name: parameters[name] for name in ("policy", "hidden", "value")}
    return {"kernels": kernels, "shifts": shifts, **heads}


def evaluate(weights: Tree, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return policy logits and values by folded weights."""
    return forward(weights, observation, lambda number, x: x + weights["shifts"][number])


# Self-play


def masked(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """Return logits with the least number in place of those of illegal actions."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return jnp.where(legal, logits, jnp.finfo(logits.dtype).min)


def beginning(env: Any, plies: int) -> Callable[[jax.Array], Tree]:
    """Return a function that begins a game: with 0 to `plies` random moves, fewer if they would end it."""

    def begin(key: jax.Array) -> Tree:
        start, number, moves = jax.random.split(key, 3)
        state = env.init(start)
        if plies == 0:
            return state
        wanted = jax.random.randint(number, (), 0, plies + 1)

        def move(index: jax.Array, state: Tree) -> Tree:
            action = jax.random.categorical(jax.random.fold_in(moves, index), jnp.log(state.legal_action_mask.astype(jnp.float32)))
            after = env.step(state, action)
            keeps = (index >= wanted) | after.terminated
            return jax.tree.map(lambda old, new: jnp.where(keeps, old, new), state, after)

        return jax.lax.fori_loop(0, plies, move, state)

    return begin


def player(settings: Settings, env: Any) -> Callable[[Tree, Tree, jax.Array], tuple[Tree, Positions]]:
    """Return a function of weights, states and a key that plays the moves of an iteration."""
    from pgx.experimental import auto_reset

    step = jax.vmap(env.step)
    step_or_begin = jax.vmap(auto_reset(env.step, beginning(env, settings.random_plies)))

    def simulate(weights: Tree, _: jax.Array, action: jax.Array, state: Tree) -> tuple[mctx.RecurrentFnOutput, Tree]:
        mover = state.current_player
        state = step(state, action)
        logits, value = evaluate(weights, state.observation)
        output = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=masked(logits, state.legal_action_mask),
            value=jnp.where(state.terminated, 0.0, value),
        )
        return output, state

    def play(weights: Tree, states: Tree, key: jax.Array) -> tuple[Tree, Positions]:
        def move(state: Tree, key: jax.Array) -> tuple[Tree, Positions]:
            search, reset = jax.random.split(key)
            # A new game still bears the mark that the last one is over, with which Pgx would refuse the search's moves.
            state = state.replace(terminated=jnp.zeros_like(state.terminated))
            legal, mover = state.legal_action_mask, state.current_player
            logits, value = evaluate(weights, state.observation)
            found = mctx.gumbel_muzero_policy(
                params=weights,
                rng_key=search,
                root=mctx.RootFnOutput(prior_logits=masked(logits, legal), value=value, embedding=state),
                recurrent_fn=simulate,
                num_simulations=settings.simulations,
                invalid_actions=~legal,
                qtransform=mctx.qtransform_completed_by_mix_value,
            )
            after = step_or_begin(state, found.action, jax.random.split(reset, mover.shape[0]))
            reward = jnp.take_along_axis(after.rewards, mover[:, None], axis=1)[:, 0]
            return after, Positions(state.observation, found.action_weights, reward, after.terminated)

        return jax.lax.scan(move, states, jax.random.split(key, settings.steps))

    return play


# Training


def results(positions: Positions) -> tuple[jax.Array, jax.Array]:
    """Return the results of the games for the players to move, and which are known, because the game ends within the window."""

    def earlier(later: tuple[jax.Array, jax.Array], move: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        (result, known), (reward, over) = later, move
        result = reward - jnp.where(over, 0.0, result)
        known = over | known
        return (result, known), (result, known)

    games = positions.over.shape[1]
    start = jnp.zeros(games), jnp.zeros(games, bool)
    return jax.lax.scan(earlier, start, (positions.reward, positions.over), reverse=True)[1]


def loss(parameters: Tree, observation: jax.Array, policy: jax.Array, result: jax.Array, known: jax.Array) -> tuple[jax.Array, Tree]:
    """Return the loss of a batch. Beside it: the batch's statistics, and the policy's and the value's part."""
    logits, value, statistics = train_forward(parameters, observation)
    policy_loss = optax.softmax_cross_entropy(logits, policy).mean()
    value_loss = (optax.l2_loss(value, result) * known).mean()
    return policy_loss + value_loss, (statistics, jnp.stack([policy_loss, value_loss]))


class Programs(NamedTuple):
    """Compiled functions of an iteration. Each update is a call: in a loop, XLA's gradients of convolutions are 20 times slower."""

    #: Learner and players before; players after, results, which are known, and the number of games finished.
    play: Callable[..., tuple[Players, jax.Array, jax.Array, jax.Array]]
    #: Learner, players, results, which are known, and the number of the update; learner after, and the two losses.
    update: Callable[..., tuple[Learner, jax.Array]]


def compiled(settings: Settings, env: Any, mesh: Mesh, learner: Learner, players: Players) -> Programs:
    """Compile the functions of an iteration."""
    optimizer = optax.adam(settings.rate)
    play = player(settings, env)
    length = settings.window * settings.steps
    own_games, own_batch = settings.games // settings.devices, settings.batch // settings.devices

    def play_on(learner: Learner, players: Players) -> tuple[Players, jax.Array, jax.Array, jax.Array]:
        next_key, play_key, _ = jax.random.split(players.key[0], 3)
        states, new = play(fold(learner.parameters, learner.statistics), players.states, play_key)
        window = Positions(*(jnp.concatenate([old[settings.steps :], added]) for old, added in zip(players.window, new)))
        filled = jnp.minimum(players.filled + settings.steps, length)
        finished = jax.lax.psum(new.over.sum(), DEVICES)
        return Players(states, window, filled, next_key[None]), *results(window), finished

    def update(learner: Learner, players: Players, result: jax.Array, known: jax.Array, number: jax.Array) -> tuple[Learner, jax.Array]:
        # The next call of `play_on` uses the other two keys.
        step_key, game_key = jax.random.split(jax.random.fold_in(jax.random.split(players.key[0], 3)[2], number))
        steps = length - 1 - jax.random.randint(step_key, (own_batch,), 0, players.filled)
        place = steps, jax.random.randint(game_key, (own_batch,), 0, own_games)
        batch = players.window.observation[place], players.window.policy[place], result[place], known[place]
        gradient, (statistics, losses) = jax.grad(loss, has_aux=True)(learner.parameters, *batch)
        gradient, statistics, losses = jax.lax.pmean((gradient, statistics, losses), DEVICES)
        change, state = optimizer.update(gradient, learner.optimizer)
        mixed = jax.tree.map(lambda old, new: STATISTICS_DECAY * old + (1 - STATISTICS_DECAY) * new, learner.statistics, statistics)
        return Learner(optax.apply_updates(learner.parameters, change), mixed, state), losses

    same, by_game, by_step = PartitionSpec(), PartitionSpec(DEVICES), PartitionSpec(None, DEVICES)
    own: Any = Players(by_game, by_step, same, by_game)  # type: ignore[arg-type]

    def on_devices(function: Callable[..., Any], taken: Any, given: Any) -> Any:
        return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=taken, out_specs=given, check_vma=False))

    shape, sharding = (length, settings.games), NamedSharding(mesh, by_step)
    result, known = (jax.ShapeDtypeStruct(shape, kind, sharding=sharding) for kind in (jnp.float32, jnp.bool_))
    return Programs(
        on_devices(play_on, (same, own), (own, by_step, by_step, same)).lower(learner, players).compile(),
        on_devices(update, (same, own, by_step, by_step, same), (same, same)).lower(learner, players, result, known, np.int32(0)).compile(),
    )


def start(settings: Settings, env: Any, mesh: Mesh, seed: int) -> tuple[Learner, Players]:
    """Return an untrained network and games that begin."""
    network_key, states_key, players_key = jax.random.split(jax.random.PRNGKey(seed), 3)
    parameters, statistics = first_parameters(settings, network_key)
    learner = Learner(parameters, statistics, optax.adam(settings.rate).init(parameters))
    states = jax.jit(jax.vmap(beginning(env, settings.random_plies)))(jax.random.split(states_key, settings.games))
    shape = (settings.window * settings.steps, settings.games)
    window = Positions(jnp.zeros((*shape, ROWS, COLUMNS, 2), bool), jnp.zeros((*shape, COLUMNS)), jnp.zeros(shape), jnp.zeros(shape, bool))

    def put(tree: Tree, *axes: str | None) -> Tree:
        return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(*axes)))

    keys = jax.random.split(players_key, settings.devices)
    players = Players(put(states, DEVICES), put(window, None, DEVICES), put(jnp.zeros(1, jnp.int32)), put(keys, DEVICES))
    return put(learner), players


# The network as ONNX file


class Graph:
    """Nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        """Add a constant and return its name."""
        name = f"constant{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = name or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def onnx_model(weights: Tree, step: int) -> bytes:
    """Return the ONNX file of folded weights. Its input is Minuet's index row.

    An entry of a row is 64 × plane + square, for the cells from the bottom row up; the planes are own disc, other disc, empty. Pgx has
    the top row first. The last entry, the player to move, is not used: Pgx does not show it either.
    """
    weights = jax.tree.map(np.asarray, weights)
    graph = Graph()
    numbers = functools.partial(np.array, dtype=np.int64)
    cells = graph.add("Slice", INPUT, *map(graph.constant, [numbers([0]), numbers([ROWS * COLUMNS]), numbers([1])]))
    planes = graph.add("Div", cells, graph.constant(np.int32(64)))
    by_cell = graph.constant(numbers([-1, 1, ROWS, COLUMNS]))
    discs = [graph.add("Cast", graph.add("Equal", planes, graph.constant(np.int32(plane))), to=onnx.TensorProto.FLOAT) for plane in (0, 1)]
    board = graph.add("Concat", *(graph.add("Reshape", disc, by_cell) for disc in discs), axis=1)
    x = graph.add("Gather", board, graph.constant(numbers(range(ROWS))[::-1]), axis=2)

    def layer(number: int, x: str) -> str:
        kernel = weights["kernels"][number]
        edge = kernel.shape[0] // 2
        constants = graph.constant(kernel.transpose(3, 2, 0, 1)), graph.constant(weights["shifts"][number])
        return graph.add("Conv", x, *constants, kernel_shape=list(kernel.shape[:2]), pads=[edge] * 4)

    def dense(name: str, x: str, output: str = "") -> str:
        kernel, bias = weights[name]
        return graph.add("Gemm", x, graph.constant(kernel), graph.constant(bias), name=output)

    heads = len(weights["kernels"]) - 1
    x = graph.add("Relu", layer(0, x))
    for number in range(1, heads, 2):
        x = graph.add("Relu", graph.add("Add", x, layer(number + 1, graph.add("Relu", layer(number, x)))))
    # Channels last, as in JAX.
    x = graph.add("Transpose", graph.add("Relu", layer(heads, x)), perm=[0, 2, 3, 1])
    ends = [graph.constant(numbers([end])) for end in (0, 2, 3)]
    for_policy, for_value = (
        graph.add("Flatten", graph.add("Slice", x, ends[part], ends[part + 1], graph.constant(numbers([3])))) for part in (0, 1)
    )
    dense("policy", for_policy, POLICY)
    graph.add("Tanh", dense("value", graph.add("Relu", dense("hidden", for_value))), name=VALUE)

    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "peer",
            [onnx.helper.make_tensor_value_info(INPUT, whole, ["batch", ROWS * COLUMNS + 1])],
            [
                onnx.helper.make_tensor_value_info(POLICY, real, ["batch", COLUMNS]),
                onnx.helper.make_tensor_value_info(VALUE, real, ["batch", 1]),
            ],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", 18)],
        ir_version=9,
    )
    # With these `minuet arena` takes the file alone. The layout is that of the network that comes with Minuet.
    layout = json.loads((ROOT / "networks" / GAME / "manifest.json").read_text())["layout"]
    onnx.helper.set_model_props(model, {"minuet.layout": json.dumps(layout), "minuet.game": GAME, "minuet.step": str(step)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def write_network(path: Path, weights: Tree, step: int) -> None:
    """Write the ONNX file, and beside it the description that `inference.models` needs."""
    path.write_bytes(onnx_model(weights, step))
    description = {"game": GAME, "input": INPUT, "policy": POLICY, "value": VALUE, "value_kind": "tanh"}
    path.with_suffix(".toml").write_text("".join(f'{key} = "{text}"\n' for key, text in description.items()))


# Self-test


class Known(NamedTuple):
    """Positions: what `minuet rules` says of them, and Pgx's observations."""

    answers: list[dict[str, Any]]
    observations: np.ndarray


def random_positions(env: Any, minuet: Path, seed: int) -> Known:
    """Return positions in random games. Exits if the two programs' rules differ."""
    draws = random.Random(seed)
    step = jax.jit(env.step)
    begin = jax.jit(env.init)(jax.random.PRNGKey(seed))
    requests: list[dict[str, Any]] = []
    states: list[Tree] = []
    while sum(not state.terminated for state in states) < TEST_POSITIONS:
        moves: list[int] = []
        state, target = begin, draws.randrange(ROWS * COLUMNS)
        while not state.terminated and len(moves) < target:
            moves.append(draws.choice(np.flatnonzero(state.legal_action_mask).tolist()))
            state = step(state, moves[-1])
        requests.append({"id": len(requests), "game": GAME, "start": None, "actions": moves})
        states.append(jax.tree.map(np.asarray, state))
    asked = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(minuet), "rules"], input=asked, text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(len(answers) == len(requests), "`minuet rules` did not answer all requests")
    known = []
    for request, answer, state in zip(requests, answers, states):
        expect(answer["error"] is None and answer["id"] == request["id"], f"`minuet rules` refuses {request}: {answer}")
        expect((answer["outcome"] is not None) == bool(state.terminated), f"the end of {request} differs: {answer['outcome']}")
        if not state.terminated:
            legal = np.flatnonzero(state.legal_action_mask).tolist()
            expect(answer["legal"] == legal, f"legal moves of {request}: {answer['legal']} in Minuet, {legal} in Pgx")
            known.append((answer, state.observation))
    expect({answer["to_move"] for answer, _ in known} == {0, 1}, "all positions are of one player")
    return Known([answer for answer, _ in known], np.stack([observation for _, observation in known]))


def expect(holds: bool, fault: str) -> None:
    """Exit with the fault unless it `holds`."""
    if not holds:
        sys.exit(f"peer: self-test: {fault}")


def random_network(settings: Settings, observations: np.ndarray, key: jax.Array) -> Tree:
    """Return folded weights of a network in which every number is random. Exits if the folding changes its outputs."""
    parameters, _ = first_parameters(settings, key)
    leaves, shape = jax.tree.flatten(parameters)
    keys = jax.random.split(key, len(leaves))
    parameters = jax.tree.unflatten(shape, [leaf + 0.2 * jax.random.normal(one, leaf.shape) for leaf, one in zip(leaves, keys)])
    logits, values, statistics = jax.jit(train_forward)(parameters, observations)
    weights = fold(parameters, statistics)
    folded = jax.jit(evaluate)(weights, observations)
    apart = distance((logits, values), folded)
    expect(apart < TOLERANCE * float(jnp.abs(logits).max() + 1), f"folded normalisations change the outputs by {apart}")
    return weights


def distance(one: Any, other: Any) -> float:
    """Return the largest difference of two networks' outputs."""
    return max(float(np.abs(np.asarray(a).ravel() - np.asarray(b).ravel()).max()) for a, b in zip(one, other))


def self_test(settings: Settings, env: Any, minuet: Path, seed: int) -> dict[str, Any]:
    """Compare the ONNX file with JAX, in ONNX Runtime and in Minuet. Exits if they differ."""
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
        # The comparison must see the faults that it is made for.
        faults = {"players": known.observations[..., ::-1], "rows": known.observations[:, ::-1], "columns": known.observations[:, :, ::-1]}
        for fault, observations in faults.items():
            expect(distance(outputs, in_jax(observations)) > CONTROL, f"exchanged {fault} are not seen")
        asked = range(0, len(rows), len(rows) // TEST_QUERIES)
        for number in asked:
            found = query(minuet, path, known.answers[number]["fen"])
            legal = known.answers[number]["legal"]
            priors = np.exp(logits[number][legal] - logits[number][legal].max())
            expected = {action: float(prior) for action, prior in zip(legal, priors / priors.sum())}
            answered = {move["action"]: move["prior"] for move in found["moves"]}
            expect(answered.keys() == expected.keys(), f"`minuet query` has other moves: {answered}, {expected}")
            farthest = max([abs(answered[action] - expected[action]) for action in legal] + [abs(found["value"] - float(values[number]))])
            expect(farthest <= TOLERANCE, f"`minuet query` and JAX differ by {farthest}")
    return {"positions": len(rows), "largest_difference": apart, "queries": len(asked)}


def query(minuet: Path, network: Path, position: str) -> dict[str, Any]:
    """Return what a network says of a position, by `minuet query`."""
    command = [str(minuet), "query", str(network), "--provider", "cpu", "--json", "--top", str(COLUMNS), "--position", position]
    return dict(json.loads(subprocess.run(command, text=True, capture_output=True, check=True).stdout))


# The program


def train(settings: Settings, env: Any, mesh: Mesh, arguments: argparse.Namespace, imports: float) -> None:
    """Train until the last of the minutes, and write a network after each."""
    began, began_wall = time.process_time() - imports, time.time()
    learner, players = start(settings, env, mesh, arguments.seed)
    before, before_wall = time.process_time(), time.time()
    programs = compiled(settings, env, mesh, learner, players)
    compilation, compilation_wall = time.process_time() - before, time.time() - before_wall
    iterations = games = 0
    for minutes in sorted(arguments.minutes):
        while (spent := time.process_time() - began - compilation) < minutes * MINUTE or iterations == 0:
            players, result, known, finished = programs.play(learner, players)
            for number in range(settings.updates):
                learner, losses = programs.update(learner, players, result, known, np.int32(number))
            iterations, games = iterations + 1, games + int(finished)
            jax.block_until_ready(learner)
        step = iterations * settings.updates
        name = f"minute-{minutes:g}"
        write_network(arguments.out / f"{name}.onnx", fold(learner.parameters, learner.statistics), step)
        positions = iterations * settings.games * settings.steps
        line = {
            "minutes": minutes,
            "network": f"{name}.onnx",
            "processor_seconds": round(spent, 1),
            "wall_seconds": round(time.time() - began_wall - compilation_wall, 1),
            "compilation_processor_seconds": round(compilation, 1),
            "positions": positions,
            "games": games,
            "samples": step * settings.batch,
            "simulations": positions * settings.simulations,
            "steps": step,
            "policy_loss": round(float(losses[0]), 4),
            "value_loss": round(float(losses[1]), 4),
        }
        print(json.dumps(line), flush=True)


def minutes_of(text: str) -> list[float]:
    """Return the numbers of a list with commas."""
    minutes = [float(part) for part in text.split(",")]
    if min(minutes) <= 0:
        raise ValueError("a minute must be greater than 0")
    return minutes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = Settings()
    parser.add_argument("--out", type=Path, help="folder of the networks")
    parser.add_argument("--minutes", type=minutes_of, default=[1.0, 2.0, 4.0, 8.0, 15.0], help="when to write networks, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minuet", type=Path, default=ROOT / "target" / "release" / "minuet", help="program for the self-test")
    parser.add_argument("--self-test", action="store_true", help="only test that Minuet and JAX see the same positions")
    parser.add_argument("--random-plies", type=int, default=usual.random_plies, help="each game begins with 0 to this many random moves")
    parser.add_argument("--simulations", type=int, default=usual.simulations, help="for each move")
    parser.add_argument("--games", type=int, default=usual.games, help="played at the same time")
    parser.add_argument("--steps", type=int, default=usual.steps, help="moves of each game in an iteration")
    parser.add_argument("--window", type=int, default=usual.window, help="iterations whose positions are trained on")
    parser.add_argument("--samples", type=float, default=usual.samples, help="trained for each position")
    parser.add_argument("--batch", type=int, default=usual.batch, help="samples of a training step")
    parser.add_argument("--rate", type=float, default=usual.rate, help="learning rate of Adam")
    parser.add_argument("--devices", type=int, default=usual.devices, help="threads that compute")
    arguments = parser.parse_args()
    if not arguments.self_test and arguments.out is None:
        parser.error("--out is missing")
    settings = Settings(**{name: getattr(arguments, name) for name in asdict(usual) if hasattr(arguments, name)})
    settings.check()

    # One device for each core, each with one thread: this takes less processor time than one device with many threads. The flags count
    # until JAX begins to compute, which the import of Pgx does.
    flags = f"--xla_force_host_platform_device_count={settings.devices} --xla_cpu_multi_thread_eigen=false"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"
    jax.config.update("jax_platforms", "cpu")
    import pgx

    env = pgx.make("connect_four")
    mesh = Mesh(np.array(jax.devices()[: settings.devices]), (DEVICES,))
    imports = time.process_time()
    tested = self_test(settings, env, arguments.minuet, arguments.seed)
    print(json.dumps({"self_test": tested, "settings": asdict(settings), "seed": arguments.seed}), flush=True)
    if not arguments.self_test:
        arguments.out.mkdir(parents=True, exist_ok=True)
        train(settings, env, mesh, arguments, imports)


if __name__ == "__main__":
    main()
