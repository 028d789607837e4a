"""Networks of the ablation: the fish-eye network, and networks without one of its parts, at equal numbers of parameters.

Comments use B for positions, M for imps of all positions together, and I for those imps that have children.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import minuet
from minuet.torch import FishEye

#: Rows of the embedding, spare ones included. Rows of a table of septs from here on belong to imps with children.
VALUES = 64
#: Layers, heads and width of the attention. The width gives an encoder about as many parameters as roll-up and context have.
LAYERS, HEADS, ATTENTION_WIDTH = 2, 4, 96
#: Largest relative difference between the numbers of parameters of two arms.
TOLERANCE = 0.02


@dataclass(frozen=True)
class Arm:
    """A network to be compared: which parts it has. `without` names layers that are left out: context, path or view."""

    name: str
    meaning: str
    shared: bool = False
    without: frozenset[str] = frozenset()
    attention: bool = False


ARMS = {
    arm.name: arm
    for arm in (
        Arm("two", "a network each for policy and value, as new runs have"),
        Arm("shared", "one network with two heads", shared=True),
        Arm("no-context", "policy without the ancestors' septs", without=frozenset({"context"})),
        Arm("no-path", "policy without the path to the imp", without=frozenset({"path"})),
        Arm("no-view", "policy and value without the grids of single septs", without=frozenset({"view"})),
        Arm("attention", "self-attention over all imps in place of roll-up and context", without=frozenset({"context"}), attention=True),
    )
}


class Attention(nn.Module):
    """Vectors of imps by self-attention over the imps of their position: float32 [M, width].

    A token is the embedding of the imp's value plus an encoding of its path, so the order of the imps does not matter. The blocks have
    their normalisations first.
    """

    def __init__(self, width: int, path: int) -> None:
        super().__init__()
        self.path = nn.Linear(path, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "before": nn.LayerNorm(width),
                "inputs": nn.Linear(width, 3 * width),
                "mixed": nn.Linear(width, width),
                "between": nn.LayerNorm(width),
                "hidden": nn.Linear(width, 4 * width),
                "output": nn.Linear(4 * width, width),
            })
            for _ in range(LAYERS)
        )
        self.after = nn.LayerNorm(width)

    def forward(self, embedding: Tensor, paths: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        tokens = embedding[values_of(inputs)] + self.path(paths)
        places, mask = self._places(inputs)
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            tokens = tokens + block["mixed"](self._attend(block["inputs"](block["before"](tokens)), places, mask))
            tokens = tokens + block["output"](functional.relu(block["hidden"](block["between"](tokens))))
        vectors: Tensor = self.after(tokens)
        return vectors

    @staticmethod
    def _places(inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Place of each imp in a table of positions that are padded to the longest, [M], and which places are taken, bool [B, longest]."""
        root, position = inputs["root"].long(), inputs["position"].long()
        ends = torch.cat([root[1:], root.new_tensor([len(position)])])
        longest = int((ends - root).max())
        places = position * longest + torch.arange(len(position), device=root.device) - root[position]
        mask = torch.zeros(len(root) * longest, dtype=torch.bool, device=root.device)
        mask[places] = True
        return places, mask.view(len(root), longest)

    @staticmethod
    def _attend(vectors: Tensor, places: Tensor, mask: Tensor) -> Tensor:
        """Attention between the imps of each position: float32 [M, width] from queries, keys and values, [M, 3 · width]."""
        positions, longest = mask.shape
        width = vectors.shape[1] // 3
        padded = vectors.new_zeros(positions * longest, 3 * width).index_copy(0, places, vectors)
        query, key, value = padded.view(positions, longest, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, mask[:, None, None])
        return mixed.transpose(1, 2).reshape(positions * longest, width)[places]


def values_of(inputs: Mapping[str, Tensor]) -> Tensor:
    """One-hot values of all imps: [M]. The row of a leaf in the table of septs is its value; other imps hold it under the role `this`."""
    sept = inputs["sept"].long()
    interior = sept >= VALUES
    values = sept.clone()
    values[interior] = inputs["roles"][:, 0].long()[sept[interior] - VALUES]
    return values


class ArmNetwork(FishEye):
    """The network of an arm, of the sizes `shape`. With all parts it is a `FishEye`. Layers of removed parts do not exist."""

    def __init__(self, shape: Mapping[str, Any], arm: Arm) -> None:
        super().__init__(shape)
        self.arm = arm
        size, shared = self.shape, arm.shared
        paths = (size["roles"] - 1) * size["depth"]
        self.attention: Attention | None = None
        if arm.attention:
            del self.rollup
            self.attention = Attention(size["width"], paths)
            if not shared:
                del self.value["rollup"]
                self.value["attention"] = Attention(size["width"], paths)
        for part in arm.without:
            delattr(self, part)
        if "view" in arm.without and not shared:
            del self.value["view"]
        kept = [size[part] for part in ("context", "path", "view") if part not in arm.without]
        view = 0 if "view" in arm.without else size["view"]
        self.policy["hidden"] = nn.Linear(size["width"] + sum(kept) + size["position"], size["policy_hidden"])
        self.value["hidden"] = nn.Linear(size["width"] + size["position"] + view, size["value_hidden"])

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, value_logits = self.outputs(inputs)
        return logits, torch.sigmoid(value_logits)

    def outputs(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits of the policy, float32 [M, moves], and of the value, float32 [B, 1]."""
        without, root = self.arm.without, inputs["root"]
        paths = self._paths(inputs["path"]) if self.attention is not None or "path" not in without else inputs["path"]
        if self.attention is None:
            table = self._table(self.embedding, self.rollup, inputs)
            septs = table[inputs["sept"]]
        else:
            septs = self.attention(self.embedding, paths, inputs)
        parts = [septs]
        if "context" not in without:
            contexts = functional.relu(self.context(table[inputs["ancestors"]].flatten(1)))
            parts.append(contexts[inputs["parent"]])
        if "path" not in without:
            parts.append(functional.relu(self.path(paths)))
        if "view" not in without:
            parts.append(self._view(self.view, inputs["views"])[inputs["view"]])
        shown = self._shown(self.grids, None, inputs)
        hidden = functional.relu(self.policy["hidden"](torch.cat([*parts, shown[inputs["position"]]], 1)))
        logits: Tensor = self.policy["output"](hidden)
        if self.arm.shared:
            of_root = [septs[root], shown]
            if "view" not in without:
                of_root.append(parts[-1][root])
        else:
            of_root = self._roots(paths, inputs)
        value: Tensor = self.value["output"](functional.relu(self.value["hidden"](torch.cat(of_root, 1))))
        return logits, value

    def _roots(self, paths: Tensor, inputs: Mapping[str, Tensor]) -> list[Tensor]:
        """What the value network sees of each position by its own encoder: sept of the root, grids and view of the root, float32 [B, …]."""
        own, root, embedding = self.value, inputs["root"], self.value.get_parameter("embedding")
        if "attention" in own:
            sept = own["attention"](embedding, paths, inputs)[root]
        else:
            sept = self._table(embedding, own["rollup"], inputs)[inputs["sept"][root]]
        seen = [sept, self._shown(own["grids"], None, inputs)]
        if "view" in own:
            seen.append(self._view(own["view"], inputs["views"][inputs["view"][root]]))
        return seen


def shape_of(arm: Arm, game: minuet.Game, factor: float = 1.0) -> dict[str, Any]:
    """Sizes of an arm's layers. All widths are proportional to `factor`, but that of the attention; 1 is the size of new runs."""
    rows = game.layout["clan"]
    widths = {
        "width": 64, "rollup": 128, "context": 128, "path": 64, "filters": 64, "reduced": 8, "position": 128, "view_filters": 16,
        "view_reduced": 4, "view": 64, "policy_hidden": 256, "value_hidden": 128,
    }  # fmt: skip
    sizes = {name: max(1, round(factor * width)) for name, width in widths.items()}
    if arm.attention:
        sizes["width"] = ATTENTION_WIDTH
    limits = {name: rows[name] for name in ("depth", "roles", "moves", "symbols")}
    return {**limits, "values": VALUES, "grids": 3, "flags": 1, "convolutions": 3, "shared": arm.shared, **sizes}


def parameters_of(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def equal_shape(arm: Arm, game: minuet.Game, parameters: int) -> dict[str, Any]:
    """Sizes of an arm that give about this many parameters. Raises ValueError if no factor comes near enough."""

    def count(factor: float) -> int:
        with torch.device("meta"):
            return parameters_of(ArmNetwork(shape_of(arm, game, factor), arm))

    low, high = 0.25, 4.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if count(middle) < parameters else (low, middle)
    nearest = min((low, high), key=lambda factor: abs(count(factor) - parameters))
    if abs(count(nearest) - parameters) > TOLERANCE * parameters:
        raise ValueError(f"no sizes give {arm.name} about {parameters} parameters; the nearest have {count(nearest)}")
    return shape_of(arm, game, nearest)


def network_of(name: str, game: minuet.Game, seed: int) -> ArmNetwork:
    """A new network of an arm. All arms have about as many parameters as `two` has in new runs."""
    two = ARMS["two"]
    arm = ARMS[name]
    if arm == two:
        shape = shape_of(two, game)
    else:
        with torch.device("meta"):
            parameters = parameters_of(ArmNetwork(shape_of(two, game), two))
        shape = equal_shape(arm, game, parameters)
    network = ArmNetwork(shape, arm)
    initialise(network, seed)
    return network


def initialise(network: ArmNetwork, seed: int) -> None:
    """Gives all weights their first values by the learner's rule: He et al. (2015), where planes and paths count the inputs that can be 1
    at a time, and small last layers. Layers of the attention keep the variance of their inputs; those that add to tokens begin smaller."""
    generator = torch.Generator().manual_seed(seed)
    active = {"path": network.shape["depth"], "grids.conv0": 9 * network.shape["grids"], "view.conv": 9}
    for name, weights in network.named_parameters():
        layer = name.removesuffix(".weight")
        with torch.no_grad():
            if layer.endswith("embedding"):
                weights.normal_(0.0, 1.0, generator=generator)
            elif weights.ndim > 1:
                inputs = active.get(layer.removeprefix("value.").removeprefix("attention."), weights[0].numel())
                weights.normal_(0.0, scale_of(layer) * math.sqrt(2.0 / inputs), generator=generator)
            elif layer.endswith("bias"):
                weights.zero_()


def scale_of(layer: str) -> float:
    """Scale of a layer's first weights, relative to He's."""
    if layer in ("policy.output", "value.output"):
        return 0.1
    if "blocks" in layer and layer.endswith(("mixed", "output")):
        return math.sqrt(0.5 / (2 * LAYERS))
    if layer.endswith(("rollup.output", "inputs")):
        return math.sqrt(0.5)
    return 1.0
