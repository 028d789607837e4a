"""Folded weights as NumPy archive, for networks that Minuet cannot feed: its rows lack what the network sees."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from peer_trainer.settings import Tree

HEADS = ("policy", "hidden", "value")


def write_weights(path: Path, weights: Tree) -> None:
    """Write folded weights. The kernels and shifts are numbered; a head has a kernel and a bias."""
    arrays = {f"{name}-{number}": array for name, group in weights.items() for number, array in enumerate(group)}
    np.savez(path, allow_pickle=False, **jax.tree.map(np.asarray, arrays))


def read_weights(path: Path) -> Tree:
    """Return the folded weights of a file."""
    with np.load(path) as arrays:

        def group(name: str) -> list[jax.Array]:
            return [jnp.asarray(arrays[f"{name}-{number}"]) for number in range(sum(key.startswith(f"{name}-") for key in arrays))]

        return {name: group(name) for name in ("kernels", "shifts", *HEADS)}
