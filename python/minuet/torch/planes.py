"""Index rows to planes, in PyTorch."""

from __future__ import annotations

from typing import Any, Mapping

import torch
from torch import Tensor, nn

from .._minuet import RowError


class Expansion(nn.Module):
    """Expands rows of a layout: int [n, row_length] to float32 [n, planes, height, width], as the exported ONNX graph
    does.

    Constants are divided as there, and an index that occurs twice writes the same 1.0. Rows are not checked; `Game.check_rows` does.
    """

    ones: Tensor
    places: Tensor
    divisors: Tensor

    def __init__(self, layout: Mapping[str, Any]) -> None:
        super().__init__()
        if "planes" not in layout:
            raise RowError(f"the rows of {layout.get('game')} are not planes")
        self.entries: int = layout["entries"]
        # Layouts of older versions name no height and width.
        self.shape: tuple[int, int, int] = (layout["planes"], layout.get("height", 8), layout.get("width", 8))
        constants = layout["constants"]
        ones = torch.zeros(1, layout["planes"], 1)
        ones[0, layout["ones"]] = 1.0
        self.register_buffer("ones", ones, persistent=False)
        places = torch.tensor([constant["plane"] for constant in constants], dtype=torch.long)
        self.register_buffer("places", places, persistent=False)
        divisors = torch.tensor([float(constant["divisor"]) for constant in constants])
        self.register_buffer("divisors", divisors, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        indices = rows[:, : self.entries].long()
        planes, height, width = self.shape
        squares = height * width
        base = self.ones.expand(rows.shape[0], planes, squares)
        if len(self.places):
            levels = rows[:, self.entries :].float() / self.divisors
            base = base.index_copy(1, self.places, levels.unsqueeze(-1).expand(-1, -1, squares))
        flat = base.reshape(rows.shape[0], planes * squares)
        flat = flat.scatter(1, indices, torch.ones_like(indices, dtype=torch.float32))
        return flat.view(-1, planes, height, width)
