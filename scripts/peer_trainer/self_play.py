"""Self-play: the rules are those of Pgx, and mctx's Gumbel MuZero search chooses the moves."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from peer_trainer.network import evaluate
from peer_trainer.settings import Settings, Tree


class Positions(NamedTuple):
    """Positions of self-play. The first axis of each array is the move's number, the second the game."""

    observation: jax.Array
    #: Policy targets.
    policy: jax.Array
    #: Reward of the move for the player who made it.
    reward: jax.Array
    #: True if the move ended the game.
    over: jax.Array


def masked(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """Return logits with the least number in place of those of illegal actions."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return jnp.where(legal, logits, jnp.finfo(logits.dtype).min)


def mover_reward(state: Tree, mover: jax.Array) -> jax.Array:
    """Return the reward that the last move brought the player `mover`, in each game."""
    return jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0]


def beginning(env: Any, plies: int) -> Callable[[jax.Array], Tree]:
    """Return a function that begins a game with 0 to `plies` random moves. A random move that would end the game is left out."""

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


def simulation(env: Any) -> Callable[[Tree, jax.Array, jax.Array, Tree], tuple[mctx.RecurrentFnOutput, Tree]]:
    """Return the function with which mctx makes an action within the search and evaluates the position after it."""
    step = jax.vmap(env.step)

    def simulate(weights: Tree, _: jax.Array, action: jax.Array, state: Tree) -> tuple[mctx.RecurrentFnOutput, Tree]:
        mover = state.current_player
        state = step(state, action)
        logits, value = evaluate(weights, state.observation)
        output = mctx.RecurrentFnOutput(
            reward=mover_reward(state, mover),
            # The other player moves next, so that the value of the position changes its sign.
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=masked(logits, state.legal_action_mask),
            value=jnp.where(state.terminated, 0.0, value),
        )
        return output, state

    return simulate


def player(settings: Settings, env: Any) -> Callable[[Tree, Tree, jax.Array], tuple[Tree, Positions]]:
    """Return a function of weights, states and a key that plays the moves of an iteration. New games replace finished ones."""
    # The import of Pgx starts JAX, which reads its flags then.
    from pgx.experimental import auto_reset

    step_or_begin = jax.vmap(auto_reset(env.step, beginning(env, settings.random_plies)))
    simulate = simulation(env)

    def play(weights: Tree, states: Tree, key: jax.Array) -> tuple[Tree, Positions]:
        def move(state: Tree, key: jax.Array) -> tuple[Tree, Positions]:
            search, reset = jax.random.split(key)
            # A new game still has the mark that the last one is over. Pgx would refuse the moves of the search because of it.
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
            return after, Positions(state.observation, found.action_weights, mover_reward(after, mover), after.terminated)

        return jax.lax.scan(move, states, jax.random.split(key, settings.steps))

    return play
