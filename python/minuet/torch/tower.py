"""The residual tower that the learner trains, with the names of its variables in `weights.safetensors`."""

from __future__ import annotations

from typing import Any, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional


class Norm(nn.Module):
    """Batch normalisation with the learner's names."""

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, board: Tensor) -> Tensor:
        return functional.batch_norm(
            board, self.mean, self.variance, self.gain, self.shift, self.training, 0.1, 1e-5
        )


class ConvNorm(nn.Module):
    """A convolution without bias, normalised."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.norm = Norm(outputs)

    def forward(self, board: Tensor) -> Tensor:
        return self.norm(self.conv(board))


def means_and_maxima(board: Tensor) -> Tensor:
    """Means of the channels over the board, then their maxima: float32 [n, 2 · channels]."""
    return torch.cat([board.mean((2, 3)), board.amax((2, 3))], 1)


def pooled(pooling: nn.Linear | None, board: Tensor) -> Tensor:
    """Global pooling (Wu, 2019): means and maxima of the last channels are a bias of the others. Without it, a plain relu."""
    if pooling is None:
        return functional.relu(board)
    own, seen = board.split([pooling.out_features, pooling.in_features // 2], 1)
    bias = pooling(means_and_maxima(functional.relu(seen)))
    return functional.relu(own + bias[:, :, None, None])


class Block(nn.Module):
    """A residual block, with global pooling where the shape has it."""

    def __init__(self, filters: int, pooled_channels: int) -> None:
        super().__init__()
        kept = filters - pooled_channels
        self.first = ConvNorm(filters, filters, 3)
        self.pooling = nn.Linear(2 * pooled_channels, kept) if pooled_channels else None
        self.second = ConvNorm(kept, filters, 3)

    def forward(self, board: Tensor) -> Tensor:
        second = self.second(pooled(self.pooling, self.first(board)))
        return functional.relu(second + board)


class Head(ConvNorm):
    """The convolution at the beginning of a head, and the layers after it."""

    pooling: nn.Linear | None
    output: nn.Module
    #: Logits of the actions that belong to the whole board, behind those of the planes.
    globals: nn.Linear | None
    hidden: nn.Linear


class Tower(nn.Module):
    """The network of `shape`, the `network` of a manifest. Planes, float32 [n, planes, height, width], give logits, float32
    [n, actions], and values for the player to act, float32 [n, 1].
    """

    #: Manifest and row layout of the checkpoint, in networks of `load_network`.
    manifest: dict[str, Any]
    layout: dict[str, Any]

    def __init__(self, shape: Mapping[str, Any]) -> None:
        super().__init__()
        self.shape = dict(shape)
        filters, blocks = shape["filters"], shape["blocks"]
        pooled_channels = shape["global_pooling"]
        squares = shape["height"] * shape["width"]
        pooled_blocks = (blocks // 3, 2 * blocks // 3)
        self.input = ConvNorm(shape["planes"], filters, 3)
        self.blocks = blocks
        for number in range(blocks):
            channels = pooled_channels if number in pooled_blocks else 0
            self.add_module(f"block{number}", Block(filters, channels))
        dense = shape["policy"].get("dense")
        if dense is not None:
            self.policy = Head(filters, dense["channels"], 1)
            self.policy.pooling = self.policy.globals = None
            self.policy.output = nn.Linear(squares * dense["channels"], shape["actions"])
        else:
            self.policy = Head(filters, filters, 3)
            kept = filters - pooled_channels
            self.policy.pooling = nn.Linear(2 * pooled_channels, kept) if pooled_channels else None
            planes = shape["policy"]["planes"]
            self.policy.output = nn.Conv2d(kept, planes["planes"], 3, padding=1)
            of_board = planes.get("globals", 0)
            self.policy.globals = nn.Linear(2 * kept, of_board) if of_board else None
        self.has_outcomes = shape["value_head"] == "wdl"
        self.value = Head(filters, shape["value_channels"], 1)
        self.value.hidden = nn.Linear(squares * shape["value_channels"], shape["value_hidden"])
        self.value.output = nn.Linear(shape["value_hidden"], 3 if self.has_outcomes else 1)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        board = functional.relu(self.input(planes))
        for number in range(self.blocks):
            board = self.get_submodule(f"block{number}")(board)
        policy = pooled(self.policy.pooling, self.policy(board))
        if isinstance(self.policy.output, nn.Linear):
            policy = policy.flatten(1)
        logits = self.policy.output(policy).flatten(1)
        if self.policy.globals is not None:
            logits = torch.cat([logits, self.policy.globals(means_and_maxima(policy))], 1)
        hidden = functional.relu(self.value.hidden(functional.relu(self.value(board)).flatten(1)))
        output = self.value.output(hidden)
        if not self.has_outcomes:
            return logits, torch.tanh(output)
        outcomes = torch.softmax(output, 1)
        return logits, outcomes[:, :1] - outcomes[:, 2:]
