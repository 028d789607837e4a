"""The network as ONNX file, in the form of Minuet's own models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx
from onnx import TensorProto, helper

from peer_trainer.settings import CONNECT_FOUR, ROOT, Tree

#: Names of the inputs and outputs, those of Minuet's own models.
INPUT, POLICY, VALUE = "indices", "policy_logits", "value"
#: Minuet's name of the game.
GAME = "connect-four"
ROWS, COLUMNS = CONNECT_FOUR.rows, CONNECT_FOUR.columns
#: Layout of the rows: that of the network that comes with Minuet.
LAYOUT: dict[str, Any] = json.loads((ROOT / "networks" / GAME / "manifest.json").read_text())["layout"]


class Graph:
    """Nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        """Add a constant and return its name."""
        name = f"constant{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, *numbers: int) -> str:
        """Add a constant vector of 64-bit integers and return its name."""
        return self.constant(np.array(numbers, np.int64))

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = name or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def add_board(graph: Graph) -> str:
    """Add the nodes that turn Minuet's index rows into Pgx's observations, channels first. Return the name of the output.

    A row has an entry for each cell, from the bottom row up: squares × plane + square. The planes are own disc, other disc and
    empty. Pgx has a channel for own discs and one for the other player's, and the top row first. The row's last entry is the player to
    move. The network does not use it, because Pgx's observation does not contain it.
    """
    cells = graph.add("Slice", INPUT, graph.integers(0), graph.integers(ROWS * COLUMNS), graph.integers(1))
    squares = LAYOUT.get("height", 8) * LAYOUT.get("width", 8)
    planes = graph.add("Div", cells, graph.constant(np.int32(squares)))
    by_cell = graph.integers(-1, 1, ROWS, COLUMNS)
    discs = [graph.add("Cast", graph.add("Equal", planes, graph.constant(np.int32(plane))), to=TensorProto.FLOAT) for plane in (0, 1)]
    board = graph.add("Concat", *(graph.add("Reshape", disc, by_cell) for disc in discs), axis=1)
    return graph.add("Gather", board, graph.integers(*reversed(range(ROWS))), axis=2)


def add_network(graph: Graph, weights: Tree, x: str) -> None:
    """Add the nodes of `network.forward` with folded weights, from the observation `x` to the outputs."""

    def convolution(number: int, x: str) -> str:
        kernel = weights["kernels"][number]
        edge = kernel.shape[0] // 2
        constants = graph.constant(kernel.transpose(3, 2, 0, 1)), graph.constant(weights["shifts"][number])
        return graph.add("Conv", x, *constants, kernel_shape=list(kernel.shape[:2]), pads=[edge] * 4)

    def dense(name: str, x: str, output: str = "") -> str:
        kernel, bias = weights[name]
        return graph.add("Gemm", x, graph.constant(kernel), graph.constant(bias), name=output)

    last = len(weights["kernels"]) - 1
    x = graph.add("Relu", convolution(0, x))
    for number in range(1, last, 2):
        x = graph.add("Relu", graph.add("Add", x, convolution(number + 1, graph.add("Relu", convolution(number, x)))))
    # The weights of the heads belong to cells with their channels last, as in JAX.
    x = graph.add("Transpose", graph.add("Relu", convolution(last, x)), perm=[0, 2, 3, 1])

    def channels(first: int, end: int) -> str:
        return graph.add("Flatten", graph.add("Slice", x, graph.integers(first), graph.integers(end), graph.integers(3)))

    dense("policy", channels(0, 2), POLICY)
    graph.add("Tanh", dense("value", graph.add("Relu", dense("hidden", channels(2, 3)))), name=VALUE)


def onnx_model(weights: Tree, step: int) -> bytes:
    """Return the ONNX file of folded weights after training step `step`. Its input is Minuet's index row."""
    graph = Graph()
    add_network(graph, jax.tree.map(np.asarray, weights), add_board(graph))

    def described(name: str, kind: int, width: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch", width])

    inputs = [described(INPUT, TensorProto.INT32, ROWS * COLUMNS + 1)]
    outputs = [described(POLICY, TensorProto.FLOAT, COLUMNS), described(VALUE, TensorProto.FLOAT, 1)]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "peer", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    # Minuet's programs take a file with these properties without a description.
    helper.set_model_props(model, {"minuet.layout": json.dumps(LAYOUT), "minuet.game": GAME, "minuet.step": str(step)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def write_network(path: Path, weights: Tree, step: int) -> None:
    """Write the ONNX file, and next to it a description for `inference.models`."""
    path.write_bytes(onnx_model(weights, step))
    description = {"game": GAME, "options": LAYOUT["options"], "input": INPUT, "policy": POLICY, "value": VALUE, "value_kind": "tanh"}
    path.with_suffix(".toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in description.items()))
