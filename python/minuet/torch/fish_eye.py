"""The fish-eye network over clans, for the generator game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SIDE = 8
SQUARES = SIDE * SIDE


class FishEye(nn.Module):
    """The network of `shape`, the `network` of a manifest, with the learner's names of variables.

    It takes what `Game.inputs` makes of B rows with M imps in all, as tensors, and gives logits, float32 [M, moves], and values, float32
    [B, 1], in [0, 1]: the outputs of the checkpoint's ONNX file. `dense` makes logits of actions of them. If the shape says that
    nothing is shared, policy and value are two networks, and `value` holds the encoder of the latter.
    """

    #: Manifest and row layout of the checkpoint, in networks of `load_network`.
    manifest: dict[str, Any]
    layout: dict[str, Any]

    def __init__(self, shape: Mapping[str, Any]) -> None:
        super().__init__()
        self.shape = dict(shape)
        size = self.shape
        own = size["width"] + size["context"] + size["path"] + size["view"]
        shown = size["position"] + size.get("examples", 0)
        self.embedding, encoder = _encoder(size)
        self.rollup, self.grids, self.view = encoder["rollup"], encoder["grids"], encoder["view"]
        self.examples = encoder["examples"] if "examples" in encoder else None
        self.context = nn.Linear(size["depth"] * size["width"], size["context"])
        self.path = nn.Linear((size["roles"] - 1) * size["depth"], size["path"])
        self.policy = nn.ModuleDict({
            "hidden": nn.Linear(own + shown, size["policy_hidden"]),
            "output": nn.Linear(size["policy_hidden"], size["moves"]),
        })
        self.value = nn.ModuleDict({
            "hidden": nn.Linear(size["width"] + shown + size["view"], size["value_hidden"]),
            "output": nn.Linear(size["value_hidden"], 1),
        })
        if not size.get("shared", True):
            embedding, encoder = _encoder(size)
            self.value.update(dict(encoder.items()))
            self.value.register_parameter("embedding", embedding)

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        table = self._table(self.embedding, self.rollup, inputs)
        sept = table[inputs["sept"]]
        contexts = functional.relu(self.context(table[inputs["ancestors"]].flatten(1)))
        path = functional.relu(self.path(self._paths(inputs["path"])))
        shown = self._shown(self.grids, self.examples, inputs)
        view = self._view(self.view, inputs["views"])[inputs["view"]]
        own = torch.cat([sept, contexts[inputs["parent"]], path, view, shown[inputs["position"]]], 1)
        logits = self.policy["output"](functional.relu(self.policy["hidden"](own)))
        root = inputs["root"]
        of_root = [sept[root], shown, view[root]]
        if "rollup" in self.value:
            table = self._table(self.value.get_parameter("embedding"), self.value["rollup"], inputs)
            views = inputs["views"][inputs["view"][root]]
            of_root = [
                table[inputs["sept"][root]],
                self._shown(self.value["grids"], self.value["examples"] if "examples" in self.value else None, inputs),
                self._view(self.value["view"], views),
            ]
        values = self.value["output"](functional.relu(self.value["hidden"](torch.cat(of_root, 1))))
        return logits, torch.sigmoid(values)

    def dense(self, logits: Tensor, inputs: Mapping[str, Tensor], actions: int) -> Tensor:
        """Logits of actions, float32 [B, actions], from those of imps. Actions of imps that a position does not have get the least
        float32."""
        positions = inputs["position"]
        dense = logits.new_full((len(inputs["root"]), actions // self.shape["moves"], self.shape["moves"]), torch.finfo(torch.float32).min)
        imps = torch.arange(len(positions), device=logits.device) - inputs["root"][positions]
        dense[positions, imps] = logits
        return dense.flatten(1)

    def _table(self, table: Tensor, rollup: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        """The embedding's rows (`table`), then the septs of interior imps, each level from those below it: float32 [rows, width]."""
        levels = inputs["levels"].tolist()
        for begin, end in zip(levels, levels[1:]):
            if end > begin:
                matrices = table[inputs["roles"][begin:end]].flatten(1)
                septs = rollup["output"](functional.relu(rollup["hidden"](matrices)))
                table = torch.cat([table, septs])
        return table

    def _paths(self, roles: Tensor) -> Tensor:
        """Path matrices, flattened by roles, from the roles on each path: 1 for the role at each depth, 0 beyond the path's end."""
        one_hot = functional.one_hot(roles.long(), self.shape["roles"]).float()
        # The last role means that the path has ended.
        return one_hot[:, :, :-1].transpose(1, 2).flatten(1)

    def _planes(self, symbols: Tensor) -> Tensor:
        """Symbols [boards, 64] as planes [boards, symbols, 8, 8]."""
        one_hot = functional.one_hot(symbols.long(), self.shape["symbols"]).float()
        return one_hot.transpose(1, 2).reshape(-1, self.shape["symbols"], SIDE, SIDE)

    def _view(self, layers: Any, views: Tensor) -> Tensor:
        """Encoded views: float32 [n, view]."""
        return _encode(layers, functional.relu(layers["conv"](self._planes(views))))

    def _shown(self, grids: Any, examples: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        """What each position shows: its encoded grids, and the largest numbers of its examples, 0 without any. float32 [B, position + examples]."""
        position = self._position(grids, inputs)
        if examples is None:
            return position
        symbols = inputs["examples"]
        board = self._planes(symbols.reshape(-1, SQUARES)).reshape(len(symbols), 2 * self.shape["symbols"], SIDE, SIDE)
        for number in range(self.shape["convolutions"]):
            board = functional.relu(examples[f"conv{number}"](board))
        vectors = _encode(examples, board)
        table = torch.cat([vectors.new_zeros(1, vectors.shape[1]), vectors])
        return torch.cat([position, table[inputs["examples_of"]].amax(1)], 1)

    def _position(self, layers: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        """Encoded grids of each position: float32 [B, position]."""
        flags = inputs["flags"].float()
        planes = self._planes(inputs["grids"].reshape(-1, SQUARES)).reshape(len(flags), -1, SIDE, SIDE)
        board = torch.cat([planes, flags[:, :, None, None].expand(-1, -1, SIDE, SIDE)], 1)
        for number in range(self.shape["convolutions"]):
            board = functional.relu(layers[f"conv{number}"](board))
        return _encode(layers, board)


def _encoder(size: Mapping[str, Any]) -> tuple[nn.Parameter, nn.ModuleDict]:
    """Embedding, and the layers that encode septs, grids and views."""
    grids = _boards(size, size["grids"] * size["symbols"] + size["flags"], size["position"])
    layers = nn.ModuleDict({
        "rollup": nn.ModuleDict({
            "hidden": nn.Linear(size["roles"] * size["width"], size["rollup"]),
            "output": nn.Linear(size["rollup"], size["width"]),
        }),
        "grids": grids,
        "view": nn.ModuleDict({
            "conv": nn.Conv2d(size["symbols"], size["view_filters"], 3, padding=1),
            "reduce": nn.Conv2d(size["view_filters"], size["view_reduced"], 1),
            "output": nn.Linear(size["view_reduced"] * SQUARES, size["view"]),
        }),
    })
    if size.get("examples", 0):
        layers["examples"] = _boards(size, 2 * size["symbols"], size["examples"])
    return nn.Parameter(torch.randn(size["values"], size["width"])), layers


def _boards(size: Mapping[str, Any], planes: int, outputs: int) -> nn.ModuleDict:
    """Layers from boards of so many planes to vectors of so many outputs."""
    layers = nn.ModuleDict({
        f"conv{number}": nn.Conv2d(size["filters"] if number else planes, size["filters"], 3, padding=1)
        for number in range(size["convolutions"])
    })
    layers["reduce"] = nn.Conv2d(size["filters"], size["reduced"], 1)
    layers["output"] = nn.Linear(size["reduced"] * SQUARES, outputs)
    return layers


def _encode(layers: Any, board: Tensor) -> Tensor:
    """A board as a list of numbers."""
    return functional.relu(layers["output"](functional.relu(layers["reduce"](board)).flatten(1)))
