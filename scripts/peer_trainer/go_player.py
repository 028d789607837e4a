"""A player of Go: a trained network, the rules of Pgx and the search of mctx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from peer_trainer.gtp import Refused
from peer_trainer.network import evaluate
from peer_trainer.self_play import masked, simulation
from peer_trainer.settings import GO, Tree

#: The compensation with which the network was trained.
KOMI = 7.5
PASS = GO.actions - 1
#: Pgx ends games in training after 162 moves. Games of others may be longer; each move that is possible here takes memory in the search.
LONGEST = 400


class GoPlayer:
    """A game in progress. The states of Pgx before each of its moves are kept."""

    size = GO.rows

    def __init__(self, weights: Tree, simulations: int) -> None:
        # The import of Pgx starts JAX, which reads its flags then.
        from pgx._src.games.go import _count_scores
        from pgx.go import Go

        env = Go(size=self.size, komi=KOMI, max_terminal_steps=LONGEST)
        self.weights, self.key = weights, jax.random.PRNGKey(0)
        self.begin, self.step = jax.jit(env.init), jax.jit(env.step)
        self.areas = jax.jit(lambda state: _count_scores(state._x, self.size))
        self.search = jax.jit(search(env, simulations))
        self.clear()

    def clear(self) -> None:
        """Begin a game."""
        self.states = [self.begin(jax.random.PRNGKey(0))]

    def set_komi(self, komi: float) -> None:
        """Refuse another compensation than that of the training."""
        if komi != KOMI:
            raise Refused(f"the network was trained with a komi of {KOMI} only")

    def play(self, colour: int, action: int) -> None:
        """Play a move."""
        self.push(self.turn_of(colour), action)

    def choose(self, colour: int) -> int:
        """Choose a move by a search and play it."""
        state = self.turn_of(colour)
        self.key, key = jax.random.split(self.key)
        action = int(self.search(self.weights, state, key))
        self.push(state, action)
        return action

    def undo(self) -> None:
        """Take the last move back."""
        if len(self.states) == 1:
            raise Refused("cannot undo")
        self.states.pop()

    def score(self) -> float:
        """Return Black's area minus White's, the compensation included."""
        black, white = self.areas(self.states[-1])
        return float(black - white) - KOMI

    def turn_of(self, colour: int) -> Tree:
        """Return the present state with the player `colour` to move. If it is the turn of the other one, who gets no pass that could end
        the game, the turn changes."""
        state = self.states[-1]
        if bool(state.terminated):
            raise Refused("the game is over")
        if int(state._x.color) == colour:
            return state
        return without_passes(self.step(without_passes(state), PASS))

    def push(self, state: Tree, action: int) -> None:
        """Play a move in `state`."""
        after = self.step(state, action)
        if not bool(state.legal_action_mask[action]) or bool(after._x.is_psk):
            raise Refused("illegal move")
        self.states.append(after)


def without_passes(state: Tree) -> Tree:
    """Return the state with no passes before it."""
    return state.replace(_x=state._x._replace(consecutive_pass_count=jnp.int32(0)))


def search(env: Any, simulations: int) -> Callable[[Tree, Tree, jax.Array], jax.Array]:
    """Return a function of weights, a state and a key that chooses a move: a pass if it wins at once, and otherwise what the search finds,
    without noise. Moves that repeat a position are left out; Pgx takes them as lost, and others as illegal."""

    def choose(weights: Tree, state: Tree, key: jax.Array) -> jax.Array:
        after = jax.vmap(env.step, in_axes=(None, 0))(state, jnp.arange(GO.actions))
        legal = (state.legal_action_mask & ~after._x.is_psk)[None]
        root = jax.tree.map(lambda leaf: leaf[None], state)
        logits, value = evaluate(weights, root.observation)
        found = mctx.gumbel_muzero_policy(
            params=weights,
            rng_key=key,
            root=mctx.RootFnOutput(prior_logits=masked(logits, legal), value=value, embedding=root),
            recurrent_fn=simulation(env),
            num_simulations=simulations,
            invalid_actions=~legal,
            qtransform=mctx.qtransform_completed_by_mix_value,
            gumbel_scale=0.0,
        )
        return jnp.where(after.rewards[PASS, state.current_player] > 0, PASS, found.action[0])

    return choose
