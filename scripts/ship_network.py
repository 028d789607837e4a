#!/usr/bin/env python3
"""Copy the last rated checkpoint of a run to networks/<game>/, where it becomes the network that comes with Minuet.

    target/release/minuet lab lab/networks/connect-four.toml
    $(python3 scripts/python_env.py minuet) scripts/ship_network.py lab/networks/connect-four.toml

The folders `medium` and `beginner` within it get earlier checkpoints of the same run of the laboratory. The laboratory does not rate the
generator game, so its network comes from a run of `minuet up`; the script plays the match against the reference itself:

    $(python3 scripts/python_env.py minuet) scripts/ship_network.py --run runs/generator --visits 64 --reference uct,visits=256

The folder has the form of a checkpoint's folder: model.onnx and manifest.json. The weights in model.onnx are rounded to half precision,
and cast to single precision when the network is loaded; a test plays with the result. The optimiser's state and the weights for further
training stay behind. run.toml has the settings of the run that differ from the defaults; provenance.json has the experiment, the commit, what the run spent, and its
measurements of strength. If a run began with the weights of the network that comes with Minuet (`learner.start_from`), the network before becomes
`medium`, `beginner` stays as it is, and the provenance contains that of the network before. `reference` is the last opponent of the experiment,
of a random mover and uniform UCT with at most 1,000 visits, that lost four fifths of its points. A test plays it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
# Largest size of a network that comes with Minuet, in bytes.
MAX_BYTES = 2 << 20
# Least number of values of a tensor that is stored in half precision.
LEAST_HALVED = 1024
# Share of the points against the reference.
SAFE_SCORE = 0.8
# Levels with the share of the training steps after which their checkpoints were made.
LEVELS = {"medium": 1 / 7, "beginner": 1 / 50}
# Games against the reference of a run of `minuet up`: in a game of problems, and in a game of two players.
PROBLEMS = 240
GAMES = 100
# Opponents that stay the same when a network is shipped, and whose match takes no minutes in a test.
REFERENCES = ("random", "uct,visits=100", "uct,visits=1000")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", type=Path, nargs="?", help="file of an experiment with one arm and one seed")
    parser.add_argument("--folder", type=Path, help="folder of the experiment's runs (default: runs/lab/ and the name of the file)")
    parser.add_argument("--run", type=Path, help="folder of a stopped run of `minuet up`, instead of an experiment")
    parser.add_argument("--visits", type=int, default=100, help="visits for each move in the match of --run (default: 100)")
    parser.add_argument("--reference", help="opponent in the match of --run, e.g. uct,visits=256")
    arguments = parser.parse_args()
    if arguments.run is not None and arguments.reference is not None:
        return ship_run(arguments.run, arguments.visits, arguments.reference)
    if arguments.experiment is None:
        parser.error("name an experiment, or --run and --reference")
    experiment = tomllib.loads(arguments.experiment.read_text())
    if len(experiment["arm"]) != 1 or len(experiment["seeds"]) != 1:
        return fail(f"{arguments.experiment} has several arms or seeds; a network comes from one run")
    runs = arguments.folder or Path("runs/lab") / arguments.experiment.stem
    run = runs / f"{experiment['arm'][0]['name']}-{experiment['seeds'][0]}"
    state = json.loads((run / "lab.json").read_text())
    if not state["ratings"]:
        return fail(f"no checkpoint of {run} was rated yet: minuet lab continues it")
    measured = state["ratings"][-1]
    beaten = [match["against"] for match in measured["matches"] if match["score"] >= SAFE_SCORE and match["against"] in REFERENCES]
    if not beaten:
        return fail(f"the network scores {SAFE_SCORE} against no other opponent of {arguments.experiment}")

    # A game has one network, whatever the size of its board.
    target = ROOT / "networks" / experiment["game"].split(":")[0]
    versions = run / "checkpoints/versions"
    provenance = ship_with_levels(run, versions / measured["version"], measured["spent"]["steps"], target)
    provenance |= {
        "experiment": str(arguments.experiment),
        "commit": commit(),
        "seed": experiment["seeds"][0],
        "visits_in_matches": experiment["rating"]["visits"],
        "reference": beaten[-1],
        "spent": measured["spent"],
        "matches": measured["matches"],
    }
    provenance |= {key: measured[key] for key in ("optimal_alone", "optimal_searched") if measured.get(key) is not None}
    write_json(target / "provenance.json", provenance)
    return 0


def ship_run(run: Path, visits: int, reference: str) -> int:
    """Copy the newest checkpoint of a run of `minuet up`, and play GAMES games against the reference."""
    newest = max((run / "checkpoints/versions").iterdir(), key=lambda version: version.name)
    manifest = json.loads((newest / "manifest.json").read_text())
    game = manifest["game"]
    target = ROOT / "networks" / game
    provenance = ship_with_levels(run, newest, manifest["step"], target)
    games = PROBLEMS if game == "generator" else GAMES
    match = ["arena", "--game", game, f"{game},visits={visits}", reference, "--games", str(games), "--json"]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ROOT / "target/release/minuet"), *match, "--folder", str(Path(folder) / "match")]
        played = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    pairing = json.loads(played.stdout)["pairings"][0]
    score = pairing["estimate"]["score"]
    if score <= 0.5:
        return fail(f"the network scores {score} against {reference}, so it is not worth shipping")
    provenance |= {
        "run": f"minuet up --game {game}",
        "commit": commit(),
        "seed": tomllib.loads((run / "run.toml").read_text())["run"]["seed"],
        "visits_in_matches": visits,
        "reference": reference,
        "spent": {key: manifest[name] for key, name in (("steps", "step"), ("samples", "positions_seen"), ("games", "games_seen"))},
        "matches": [{"against": reference, **result(pairing)}],
    }
    write_json(target / "provenance.json", provenance)
    return 0


def before(run: Path, target: Path) -> dict:
    """Return the provenance of the network that the run began with, as `start_from` and `before`; empty for random weights."""
    start = tomllib.loads((run / "run.toml").read_text())["learner"].get("start_from", "")
    if not start:
        return {}
    found = {"start_from": start}
    if start == target.name:
        found["before"] = json.loads((target / "provenance.json").read_text())
    return found


def result(pairing: dict) -> dict:
    """Return the result of a match in the form of the laboratory's: problems solved, or games won, drawn and lost."""
    score = pairing["estimate"]["score"]
    if "problems" in pairing:
        return {"score": score, "problems": pairing["problems"]}
    games = [pairing[key] for key in ("wins", "draws", "losses")]
    return {"games": games, "score": score, **{key: pairing["estimate"][key] for key in ("elo", "elo_interval")}}


def ship_levels(run: Path, last: int, target: Path) -> None:
    """Write the checkpoints nearest to the levels' shares of `last` training steps to folders within `target`."""
    steps = {int(path.name.split("-")[0]): path for path in (run / "checkpoints/versions").iterdir()}
    for level, share in LEVELS.items():
        ship(run, steps[min(steps, key=lambda step: abs(step - share * last))], target / level)


def commit() -> str:
    """Return the short id of the commit that is checked out."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def ship_with_levels(run: Path, checkpoint: Path, last: int, target: Path) -> dict:
    """Write a checkpoint and the levels of its run, whose training ended after `last` steps. Return what `before` returns."""
    provenance = before(run, target)
    if "before" in provenance:
        (target / "medium").mkdir(exist_ok=True)
        for name in ("model.onnx", "manifest.json", "run.toml"):
            shutil.copyfile(target / name, target / "medium" / name)
    ship(run, checkpoint, target)
    if not provenance:
        ship_levels(run, last, target)
    return provenance


def ship(run: Path, checkpoint: Path, target: Path) -> None:
    """Write a checkpoint of a run to the folder `target`. Exits if the checkpoint cannot be used."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    model = (checkpoint / "model.onnx").read_bytes()
    if hashlib.sha256(model).hexdigest() != manifest["files"]["model.onnx"]["sha256"]:
        sys.exit(f"ship_network: {checkpoint / 'model.onnx'} is damaged: its digest is not that of the manifest")
    model = halved(model)
    if len(model) > MAX_BYTES:
        sys.exit(f"ship_network: {checkpoint / 'model.onnx'} has {len(model)} bytes; the limit is {MAX_BYTES}")
    digest = hashlib.sha256(model).hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(model)
    manifest["version"] = f"{manifest['step']:012}-{digest[:8]}"
    manifest["files"] = {"model.onnx": {"sha256": digest, "bytes": len(model)}}
    write_json(target / "manifest.json", manifest)
    short = [str(ROOT / "target/release/minuet"), "config", "--short", str(run / "run.toml")]
    (target / "run.toml").write_bytes(subprocess.run(short, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{target}: {manifest['version']}, {len(model)} bytes")


def halved(model: bytes) -> bytes:
    """Return the ONNX file with its large tensors in half precision, each cast to single precision before its use."""
    graph_of = onnx.load_from_string(model)
    graph = graph_of.graph
    casts = []
    for place, tensor in enumerate(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or values.size < LEAST_HALVED:
            continue
        half = f"{tensor.name}.half"
        casts.append(helper.make_node("Cast", [half], [tensor.name], name=f"{tensor.name}.cast", to=TensorProto.FLOAT))
        graph.initializer[place].CopyFrom(numpy_helper.from_array(values.astype(numpy.float16), half))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(casts + nodes)
    onnx.checker.check_model(graph_of)
    return graph_of.SerializeToString()


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def fail(reason: str) -> int:
    print(f"ship_network: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
