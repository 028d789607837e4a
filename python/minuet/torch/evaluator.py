"""A module as evaluator of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from .._minuet import Batch
from .fish_eye import FishEye


class NetworkEvaluator:
    """Evaluates the leaves of searches by a module: planes, float32 [n, planes, height, width], to logits, [n, actions], and
    values, [n] or [n, 1]. A `FishEye` evaluates the generator game. The module is put into evaluation mode for each call, and back."""

    def __init__(self, network: nn.Module, device: str | torch.device = "cpu") -> None:
        self.network = network
        self.device = torch.device(device)

    def __call__(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[Any]]:
        was_training = self.network.training
        self.network.eval()
        with torch.inference_mode():
            logits, values = self._outputs(batch)
        self.network.train(was_training)
        return batch.priors(logits.float().cpu().numpy()), values.float().reshape(-1).cpu().numpy()

    def _outputs(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        if not isinstance(self.network, FishEye):
            return self.network(torch.from_numpy(batch.planes()).to(self.device))
        arrays = batch.game.inputs(np.ravel(batch.rows()), batch.row_lengths())
        inputs = {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        logits, values = self.network(inputs)
        return self.network.dense(logits, inputs, batch.game.actions), values
