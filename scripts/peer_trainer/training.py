"""An iteration of the training: self-play, and training steps on random samples of the last positions.

Devices share the work. Each has its own games, draws its own part of a batch, and has the same network.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from peer_trainer.network import first_parameters, fold, train_forward
from peer_trainer.self_play import Positions, beginning, player
from peer_trainer.settings import Game, Settings, Tree

#: Share of the old running statistics that a training step keeps.
STATISTICS_DECAY = 0.97
#: Name of the mesh's axis of devices.
DEVICES = "devices"


class Learner(NamedTuple):
    """The network, and the optimiser's state. Each device has the same."""

    parameters: Tree
    statistics: Tree
    optimizer: Tree


class Players(NamedTuple):
    """The state of self-play. Each device has its own games."""

    #: Pgx's states of the games.
    states: Tree
    #: Positions of the last iterations, the newest last.
    window: Positions
    #: Number of the window's moves that were played; the others are zeros before them.
    filled: jax.Array
    #: Random keys, one for each device.
    key: jax.Array


class Programs(NamedTuple):
    """Compiled functions of an iteration. Each training step is a call: in a loop, XLA's gradients of convolutions are 20 times slower."""

    #: Takes learner and players. Returns the players after the moves, the results, which of them are known, and how many games ended.
    play: Callable[..., tuple[Players, jax.Array, jax.Array, jax.Array]]
    #: Takes learner, players, results, which of them are known, and the number of the step in its iteration. Returns the learner after the
    #: step, and the losses of policy and value.
    update: Callable[..., tuple[Learner, jax.Array]]


def split_key(players: Players) -> jax.Array:
    """Return three keys made from a device's key: its key after the next self-play, the key of that self-play, and the key of the training
    steps before that."""
    return jax.random.split(players.key[0], 3)


def results(positions: Positions) -> tuple[jax.Array, jax.Array]:
    """Return the result of the game for the player to move at each position, and True for each result that is known.

    A result is known if the game ends within `positions`.
    """

    def earlier(later: tuple[jax.Array, jax.Array], move: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        (result, known), (reward, over) = later, move
        result = reward - jnp.where(over, 0.0, result)
        known = over | known
        return (result, known), (result, known)

    games = positions.over.shape[1]
    start = jnp.zeros(games), jnp.zeros(games, bool)
    return jax.lax.scan(earlier, start, (positions.reward, positions.over), reverse=True)[1]


def loss(parameters: Tree, observation: jax.Array, policy: jax.Array, result: jax.Array, known: jax.Array) -> tuple[jax.Array, Tree]:
    """Return the loss of a batch; with it the batch's statistics, and the losses of policy and value."""
    logits, value, statistics = train_forward(parameters, observation)
    policy_loss = optax.softmax_cross_entropy(logits, policy).mean()
    value_loss = (optax.l2_loss(value, result) * known).mean()
    return policy_loss + value_loss, (statistics, jnp.stack([policy_loss, value_loss]))


def playing(settings: Settings, env: Any) -> Callable[..., tuple[Players, jax.Array, jax.Array, jax.Array]]:
    """Return the function `Programs.play` of one device."""
    play = player(settings, env)

    def play_iteration(learner: Learner, players: Players) -> tuple[Players, jax.Array, jax.Array, jax.Array]:
        next_key, play_key, _ = split_key(players)
        states, new = play(fold(learner.parameters, learner.statistics), players.states, play_key)
        window = Positions(*(jnp.concatenate([old[settings.steps :], added]) for old, added in zip(players.window, new)))
        filled = jnp.minimum(players.filled + settings.steps, settings.length)
        finished = jax.lax.psum(new.over.sum(), DEVICES)
        return Players(states, window, filled, next_key[None]), *results(window), finished

    return play_iteration


def turned(game: Game, key: jax.Array, observation: jax.Array, policy: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Turn and mirror each board of a batch at random, with its policy."""
    squares = np.arange(game.rows * game.columns).reshape(game.rows, game.columns)
    ways = np.stack([np.rot90(board, turns).ravel() for board in (squares, squares.T) for turns in range(4)])
    way = jnp.asarray(ways)[jax.random.randint(key, observation.shape[:1], 0, len(ways))]
    flat = observation.reshape(-1, squares.size, game.planes)
    board = jnp.take_along_axis(flat, way[..., None], axis=1).reshape(observation.shape)
    moves = jnp.take_along_axis(policy[:, : squares.size], way, axis=1)
    return board, jnp.concatenate([moves, policy[:, squares.size :]], axis=1)


def updating(game: Game, settings: Settings) -> Callable[..., tuple[Learner, jax.Array]]:
    """Return the function `Programs.update` of one device."""
    optimizer = optax.adam(settings.rate)
    own_games, own_batch = settings.games // settings.devices, settings.batch // settings.devices

    def update(learner: Learner, players: Players, result: jax.Array, known: jax.Array, number: jax.Array) -> tuple[Learner, jax.Array]:
        step_key, game_key = jax.random.split(jax.random.fold_in(split_key(players)[2], number))
        steps = settings.length - 1 - jax.random.randint(step_key, (own_batch,), 0, players.filled)
        place = steps, jax.random.randint(game_key, (own_batch,), 0, own_games)
        seen = players.window.observation[place], players.window.policy[place]
        if game.symmetric:
            seen = turned(game, jax.random.fold_in(game_key, 0), *seen)
        gradient, (statistics, losses) = jax.grad(loss, has_aux=True)(learner.parameters, *seen, result[place], known[place])
        gradient, statistics, losses = jax.lax.pmean((gradient, statistics, losses), DEVICES)
        change, state = optimizer.update(gradient, learner.optimizer)
        mixed = jax.tree.map(lambda old, new: STATISTICS_DECAY * old + (1 - STATISTICS_DECAY) * new, learner.statistics, statistics)
        return Learner(optax.apply_updates(learner.parameters, change), mixed, state), losses

    return update


def compiled(game: Game, settings: Settings, env: Any, mesh: Mesh, learner: Learner, players: Players) -> Programs:
    """Compile the functions of an iteration for the devices of `mesh`."""
    same, by_game, by_step = PartitionSpec(), PartitionSpec(DEVICES), PartitionSpec(None, DEVICES)
    own: Any = Players(by_game, by_step, same, by_game)  # type: ignore[arg-type]

    def on_devices(function: Callable[..., Any], taken: Any, given: Any) -> Any:
        return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=taken, out_specs=given, check_vma=False))

    shape, sharding = (settings.length, settings.games), NamedSharding(mesh, by_step)
    result, known = (jax.ShapeDtypeStruct(shape, kind, sharding=sharding) for kind in (jnp.float32, jnp.bool_))
    play = on_devices(playing(settings, env), (same, own), (own, by_step, by_step, same))
    update = on_devices(updating(game, settings), (same, own, by_step, by_step, same), (same, same))
    return Programs(
        play.lower(learner, players).compile(),
        update.lower(learner, players, result, known, np.int32(0)).compile(),
    )


def start(game: Game, settings: Settings, env: Any, mesh: Mesh, seed: int) -> tuple[Learner, Players]:
    """Return an untrained network, and games that begin, on the devices of `mesh`."""
    network_key, states_key, players_key = jax.random.split(jax.random.PRNGKey(seed), 3)
    parameters, statistics = first_parameters(game, settings, network_key)
    learner = Learner(parameters, statistics, optax.adam(settings.rate).init(parameters))
    states = jax.jit(jax.vmap(beginning(env, max(settings.first_plies, settings.random_plies))))(jax.random.split(states_key, settings.games))
    shape = (settings.length, settings.games)
    observations = jnp.zeros((*shape, game.rows, game.columns, game.planes), bool)
    window = Positions(observations, jnp.zeros((*shape, game.actions)), jnp.zeros(shape), jnp.zeros(shape, bool))

    def put(tree: Tree, *axes: str | None) -> Tree:
        return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(*axes)))

    keys = jax.random.split(players_key, settings.devices)
    players = Players(put(states, DEVICES), put(window, None, DEVICES), put(jnp.zeros(1, jnp.int32)), put(keys, DEVICES))
    return put(learner), players
