"""Minuet with PyTorch: rows to planes, networks of checkpoints, data sets, publishing.

| module | content |
|---|---|
| `planes` | `Expansion`: index rows to planes, as the ONNX graph expands them |
| `tower` | `Tower`: the network that the learner trains on planes |
| `fish_eye` | `FishEye`: the network that the learner trains on the generator game |
| `checkpoint` | `load_network` |
| `data` | `ReplayDataset`, `ExportedDataset` |
| `evaluator` | `NetworkEvaluator`: a module as evaluator of a search |
| `publishing` | `publish`: a module as checkpoint |
"""

from .checkpoint import load_network
from .data import ExportedDataset, ReplayDataset
from .evaluator import NetworkEvaluator
from .fish_eye import FishEye
from .planes import Expansion
from .publishing import publish
from .tower import Tower

__all__ = [
    "ExportedDataset",
    "Expansion",
    "FishEye",
    "NetworkEvaluator",
    "ReplayDataset",
    "Tower",
    "load_network",
    "publish",
]
