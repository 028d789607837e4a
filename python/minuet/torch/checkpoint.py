"""Networks of checkpoints as PyTorch modules."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors

from .._minuet import CheckpointError, ModelError, fetch
from .fish_eye import FishEye
from .tower import Tower

WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
MODEL = "model.onnx"
#: Prefix of averaged weights in the optimiser's file. A checkpoint that has them was exported with them.
AVERAGE = "average/"


def read_checkpoint(place: str | Path, version: str, names: list[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and files of a checkpoint, with their digests checked: from a checkpoint's folder, a run's folder, or a model store
    (a folder or s3://). Raises CheckpointError."""
    folder = Path(place)
    if (folder / "manifest.json").is_file():
        return _in_folder(folder, names)
    store = str(place)
    if (folder / "run.toml").is_file():
        run = tomllib.loads((folder / "run.toml").read_text())
        store = run.get("checkpoints", {}).get("store", "checkpoints")
        if "://" not in store:
            store = str(folder / store)
    if "://" not in store and not (Path(store) / "versions").is_dir():
        raise CheckpointError(f"{place} is neither a run's folder, nor a model store, nor a checkpoint")
    manifest, files = fetch(store, version, names)
    return json.loads(manifest), files


def _in_folder(folder: Path, names: list[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        schema, listed = manifest["schema"], manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder / 'manifest.json'} is not a manifest: {error}") from error
    if schema != 1:
        raise CheckpointError(f"{folder / 'manifest.json'} has schema {schema}, this version of minuet reads 1")
    files = {}
    for name in names:
        if name not in listed:
            continue
        try:
            files[name] = (folder / name).read_bytes()
        except OSError as error:
            raise CheckpointError(f"{folder / name} cannot be read: {error}") from error
        if hashlib.sha256(files[name]).hexdigest() != listed[name]["sha256"]:
            raise CheckpointError(f"{folder / name} is damaged: its SHA-256 is not that of the manifest")
    return manifest, files


def load_network(place: str | Path, version: str = "latest") -> Tower | FishEye:
    """Network of a checkpoint as a module in evaluation mode. It computes what the checkpoint's ONNX file computes.

    A `Tower` takes planes, float32 [n, planes, height, width], and gives logits, float32 [n, actions], and values, float32 [n, 1]. Networks
    of the generator game are a `FishEye`, which takes the inputs that `Game.inputs` makes of rows. `place` is a checkpoint's folder, a run's
    folder or a model store; `version` a label or a version. The module has the attributes `manifest` and `layout`.

    Raises CheckpointError, or ModelError if the network is of a kind that this version of minuet does not know.
    """
    manifest, files = read_checkpoint(place, version, [WEIGHTS, OPTIMIZER])
    checkpoint = f"checkpoint {manifest['version']} of {place}"
    network = _network(manifest, checkpoint)
    if WEIGHTS not in files:
        raise ModelError(f"{checkpoint} has no {WEIGHTS}; load its {MODEL} with ONNX Runtime instead")
    tensors = load_tensors(files[WEIGHTS])
    averages = load_tensors(files[OPTIMIZER]) if OPTIMIZER in files else {}
    tensors.update(
        (name.removeprefix(AVERAGE), tensor) for name, tensor in averages.items() if name.startswith(AVERAGE)
    )
    try:
        network.load_state_dict({name: tensors[name] for name in network.state_dict()})
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"{checkpoint} has other variables than its shape says: {error}") from error
    network.manifest = manifest
    network.layout = manifest["layout"]
    return network.eval()


def _network(manifest: dict[str, Any], checkpoint: str) -> Tower | FishEye:
    """A network of the manifest's shape, with random weights."""
    shape: Any = manifest.get("network")
    layout = manifest.get("layout", {})
    try:
        if "planes" in layout and "policy" in shape:
            return Tower(shape)
        if "clan" in layout and "rollup" in shape:
            return FishEye(shape)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{checkpoint} has a network that this version of minuet does not know: {error!r}") from error
    raise ModelError(f"{checkpoint} has a network that this version of minuet does not know; load its {MODEL} with ONNX Runtime instead")
