"""The network: a residual tower with a policy head and a value head.

Training normalises the output of each convolution by the statistics of the batch. Self-play and the ONNX file use folded weights:
running statistics take the place of those of the batch, and each normalisation becomes a part of its convolution.
"""

from __future__ import annotations

from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from peer_trainer.settings import Game, Settings, Tree

#: Added to variances before the division.
EPSILON = 1e-5


def first_parameters(game: Game, settings: Settings, key: jax.Array) -> tuple[Tree, Tree]:
    """Return random parameters, and the first running statistics: mean and variance of each convolution's output."""
    filters, squares = settings.filters, game.rows * game.columns
    shapes = [(3, 3, game.planes, filters), *[(3, 3, filters, filters)] * (2 * settings.blocks), (1, 1, filters, 3)]
    *keys, hidden_key = jax.random.split(key, len(shapes) + 1)

    def scaled(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, shape) * np.sqrt(2 / np.prod(shape[:-1]))

    widths = [shape[-1] for shape in shapes]
    parameters = {
        "kernels": [scaled(key, shape) for key, shape in zip(keys, shapes)],
        "scales": [jnp.ones(width) for width in widths],
        "shifts": [jnp.zeros(width) for width in widths],
        "policy": (jnp.zeros((2 * squares, game.actions)), jnp.zeros(game.actions)),
        "hidden": (scaled(hidden_key, (squares, filters)), jnp.zeros(filters)),
        "value": (jnp.zeros((filters, 1)), jnp.zeros(1)),
    }
    return parameters, [(jnp.zeros(width), jnp.ones(width)) for width in widths]


def forward(weights: Tree, observation: jax.Array, norm: Callable[[int, jax.Array], jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return policy logits and values.

    The function `norm` takes the number of a convolution and its output, and returns the input of the activation.
    The last convolution has three channels: two for the policy head, one for the value head.
    """

    def convolution(number: int, x: jax.Array) -> jax.Array:
        kernel = weights["kernels"][number]
        return norm(number, jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def dense(name: str, x: jax.Array) -> jax.Array:
        kernel, bias = weights[name]
        return x @ kernel + bias

    last = len(weights["kernels"]) - 1
    x = jax.nn.relu(convolution(0, observation.astype(jnp.float32)))
    for number in range(1, last, 2):
        x = jax.nn.relu(x + convolution(number + 1, jax.nn.relu(convolution(number, x))))
    x = jax.nn.relu(convolution(last, x))
    count = x.shape[0]
    logits = dense("policy", x[..., :2].reshape(count, -1))
    hidden = jax.nn.relu(dense("hidden", x[..., 2].reshape(count, -1)))
    return logits, jnp.tanh(dense("value", hidden)[:, 0])


def train_forward(parameters: Tree, observation: jax.Array) -> tuple[jax.Array, jax.Array, Tree]:
    """Return logits, values, and the batch's statistics, by which the outputs of the convolutions are normalised."""
    statistics: list[tuple[jax.Array, jax.Array]] = []

    def norm(number: int, x: jax.Array) -> jax.Array:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        statistics.append((mean, variance))
        return (x - mean) * (parameters["scales"][number] / jnp.sqrt(variance + EPSILON)) + parameters["shifts"][number]

    logits, values = forward(parameters, observation, norm)
    return logits, values, statistics


def fold(parameters: Tree, statistics: Tree) -> Tree:
    """Return folded weights: normalisations by `statistics` become part of the convolutions."""
    factors = [scale / jnp.sqrt(variance + EPSILON) for scale, (_, variance) in zip(parameters["scales"], statistics)]
    kernels = [kernel * factor for kernel, factor in zip(parameters["kernels"], factors)]
    shifts = [shift - mean * factor for shift, (mean, _), factor in zip(parameters["shifts"], statistics, factors)]
    heads = {name: parameters[name] for name in ("policy", "hidden", "value")}
    return {"kernels": kernels, "shifts": shifts, **heads}


def evaluate(weights: Tree, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return policy logits and values by folded weights."""
    return forward(weights, observation, lambda number, x: x + weights["shifts"][number])
