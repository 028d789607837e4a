"""A PyTorch module as a checkpoint that inference servers load and actors play with."""

from __future__ import annotations

import copy
import json
import logging
import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from .._minuet import CheckpointError, Game, RowError
from .._minuet import publish as publish_files
from .planes import Expansion
from .tower import Tower

#: Largest difference between ONNX Runtime and PyTorch: of a value, and of a logit as a share of the logits' range.
BOUND = 1e-4
#: Number of positions that the export is proven on if none are given.
PROVEN = 64


class _FromRows(nn.Module):
    """The network over rows, as servers run it."""

    def __init__(self, network: nn.Module, layout: dict[str, Any]) -> None:
        super().__init__()
        self.expansion = Expansion(layout)
        self.network = network

    def forward(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        logits, values = self.network(self.expansion(indices))
        return logits, values.reshape(-1, 1)


def export(network: nn.Module, game: Game, step: int) -> bytes:
    """ONNX file of a module that takes planes, float32 [n, planes, height, width], and gives logits, [n, actions], and values, [n] or
    [n, 1]. The file takes rows, int32 [n, row_length], and expands them itself."""
    if game.row_length is None:
        raise RowError(f"the rows of {game.name} are not planes")
    from_rows = _FromRows(copy.deepcopy(network).cpu().float().eval(), game.layout)
    example = torch.from_numpy(game.batch(2).rows().astype(np.int32))
    # The exporter warns of packages that it would use for other networks.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                from_rows,
                (example,),
                input_names=["indices"],
                output_names=["policy_logits", "value"],
                dynamic_shapes={"indices": {0: torch.export.Dim("batch")}},
                opset_version=18,
                dynamo=True,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    if program is None:
        raise CheckpointError(f"PyTorch exports no ONNX file of {type(network).__name__}")
    model = program.model_proto
    facts = {"minuet.layout": json.dumps(game.layout), "minuet.game": game.name, "minuet.step": str(step)}
    onnx.helper.set_model_props(model, facts)
    return model.SerializeToString()


def prove(model: bytes, network: nn.Module, game: Game, rows: NDArray[np.uint32]) -> tuple[float, float]:
    """Compares the ONNX file, run by ONNX Runtime, with the module on rows. Returns the largest differences of logits and values.
    Raises CheckpointError if they are more than rounding, or an output is not finite."""
    game.check_rows(rows)
    from_rows = _FromRows(copy.deepcopy(network).cpu().float().eval(), game.layout)
    indices = np.ascontiguousarray(rows, np.int32)
    with torch.inference_mode():
        ours = [output.numpy() for output in from_rows(torch.from_numpy(indices))]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    theirs = session.run(["policy_logits", "value"], {"indices": indices})
    if ours[0].shape != (len(rows), game.actions):
        raise CheckpointError(f"the network gives logits {list(ours[0].shape)}, {game.name} has {[len(rows), game.actions]}")
    for name, own, other in zip(("policy", "value"), ours, theirs):
        if not (np.isfinite(own).all() and np.isfinite(other).all()):
            raise CheckpointError(f"the network is not finite: its {name} has infinities or no numbers")
    if np.abs(ours[1]).max() > 1.0:
        raise CheckpointError("the network's values are not in [-1, 1]; end its value head with tanh")
    scale = max(float(np.ptp(ours[0])), 1.0)
    policy = float(np.abs(ours[0] - theirs[0]).max()) / scale
    value = float(np.abs(ours[1] - theirs[1]).max())
    if max(policy, value) > BOUND:
        raise CheckpointError(
            f"ONNX Runtime and PyTorch differ by {policy:.1e} in the policy and {value:.1e} in the value; {BOUND:.0e} is allowed"
        )
    return policy, value


def positions(game: Game, count: int, seed: int = 0) -> NDArray[np.uint32]:
    """Rows of positions of random games: uint32 [count, row_length]."""
    random = np.random.default_rng(seed)
    rows: list[NDArray[np.uint32]] = []
    while len(rows) < count:
        state = game.start()
        while state.outcome is None and len(rows) < count:
            rows.append(state.row())
            actions = state.legal_actions()
            if len(actions) == 0:
                break
            state.play(int(random.choice(actions)))
    return np.stack(rows)


def publish(
    network: nn.Module,
    store: str,
    game: Game,
    step: int,
    *,
    positions_seen: int = 0,
    games_seen: int = 0,
    rows: NDArray[np.uint32] | None = None,
    timeout: float = 60.0,
) -> str:
    """Publishes a module as a checkpoint of `store` (a folder or s3://) and points the label `latest` at it. Returns the version.

    The module takes planes, float32 [n, planes, height, width], and gives logits, [n, actions], and values for the player to act,
    [n] or [n, 1], in [-1, 1]. Its ONNX file is first proven on `rows`, by default of random games. The files are written before the
    manifest, and the label moves last. A learner that runs on the same store holds the store's lease; then CheckpointError after
    `timeout` seconds.
    """
    model = export(network, game, step)
    prove(model, network, game, positions(game, PROVEN) if rows is None else rows)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    draft = {
        "game": game.name,
        "layout": game.layout,
        "actions": game.actions,
        "network": network.shape if isinstance(network, Tower) else {"module": type(network).__name__},
        "step": step,
        "positions_seen": positions_seen,
        "games_seen": games_seen,
        "parent": None,
        "learner_state": None,
    }
    files = {"model.onnx": model, "weights.safetensors": save_tensors(weights)}
    return publish_files(store, json.dumps(draft), files, timeout)
