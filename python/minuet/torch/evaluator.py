"""A module as evaluator of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from .._minuet import Batch


class NetworkEvaluator:
    """Evaluates the leaves of searches by a module: planes, float32 [n, planes, 8, 8], to logits, [n, actions], and values, [n] or
    [n, 1]. The module is put into evaluation mode for each call, and back."""

    def __init__(self, network: nn.Module, device: str | torch.device = "cpu") -> None:
        self.network = network
        self.device = torch.device(device)

    def __call__(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[Any]]:
        was_training = self.network.training
        self.network.eval()
        with torch.inference_mode():
            logits, values = self.network(torch.from_numpy(batch.planes()).to(self.device))
        self.network.train(was_training)
        return batch.priors(logits.float().cpu().numpy()), values.float().reshape(-1).cpu().numpy()
