#!/usr/bin/env python3
"""Train Connect Four or 9×9 Go with other people's programs, to compare Minuet with them: Gumbel AlphaZero in JAX, rules of Pgx,
search of mctx.

    python=$(python3 scripts/python_env.py peer)
    $python scripts/peer.py --out DIR --minutes 1,2,4,8,15 --seed 1
    target/release/minuet arena --game connect-four DIR/minute-1.onnx,visits=100 uct,visits=100 --games 200
    target/release/minuet bench accuracy --game connect-four --model DIR/minute-1.onnx --positions 100 --visits 1 --visits 100

    $python scripts/peer.py --game go_9x9 --out DIR --minutes 1,2,4,8,15 --seed 1
    target/release/minuet arena --game go:9 "gtp:$python scripts/peer_gtp.py --network DIR/minute-1.npz --simulations 400,name=peer" uct,visits=400

A minute is 117 seconds of processor time of this process, all threads together: 0.975 of two cores for a minute. Imports, self-play,
training and writing of networks count. The self-test, the first positions and the compilation of the training functions do not count;
each line of output says how long the last two took. After each of the minutes the program writes the network and prints a line of JSON
with the progress of the training.

An iteration plays some moves in each game and then trains on random samples of the last iterations. mctx's `gumbel_muzero_policy`
chooses the moves and makes the policy targets (completed values). New games replace finished ones. The value target is the result of the
game; a position of a game that still runs has none. In Go the first games begin after random moves, so that the first results are known
soon, and training turns and mirrors the boards. The settings of each game are in `scripts/peer_trainer/settings.py`; each is an option.

A network of Connect Four is an ONNX file, with a description for `inference.models` with it. One of Go is a NumPy archive: it sees the last
eight positions, which Minuet's rows do not hold, so that it plays by GTP (`scripts/peer_gtp.py`).

Before it trains, the program tests itself; `--self-test` does only that. In Connect Four it compares the ONNX file of a random network with
the same network in JAX, and in Go the rules of Minuet and of Pgx. The code is in `scripts/peer_trainer`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from peer_trainer.go_self_test import go_self_test
from peer_trainer.network import fold
from peer_trainer.onnx_file import write_network
from peer_trainer.self_test import self_test
from peer_trainer.settings import CONNECT_FOUR, ROOT, USUAL, Game, Settings, Tree
from peer_trainer.training import DEVICES, compiled, start
from peer_trainer.weights_file import write_weights

#: Seconds of processor time that count as a minute.
MINUTE = 117.0


def main() -> None:
    arguments = arguments_of_command()
    game = next(game for game in USUAL if game.name == arguments.game)
    changes = {field.name: getattr(arguments, field.name) for field in fields(Settings)}
    settings = replace(USUAL[game], **{name: value for name, value in changes.items() if value is not None})

    # One device for each core, each with one thread, takes less processor time than one device with many threads. JAX reads the flags
    # when it begins to compute, and the import of Pgx computes.
    # On a busy machine one device may wait long for the other; JAX would abort after 40 seconds.
    flags = f"--xla_force_host_platform_device_count={settings.devices} --xla_cpu_multi_thread_eigen=false"
    patience = "--xla_cpu_collective_call_terminate_timeout_seconds=3600"
    os.environ["XLA_FLAGS"] = f"{flags} {patience} {os.environ.get('XLA_FLAGS', '')}"
    jax.config.update("jax_platforms", "cpu")
    import pgx

    env = pgx.make(arguments.game)
    mesh = Mesh(np.array(jax.devices()[: settings.devices]), (DEVICES,))
    imports = time.process_time()
    if game is CONNECT_FOUR:
        tested = self_test(settings, env, arguments.minuet, arguments.seed)
    else:
        tested = go_self_test(env, arguments.minuet, arguments.seed)
    print(json.dumps({"game": game.name, "self_test": tested, "settings": asdict(settings), "seed": arguments.seed}), flush=True)
    if not arguments.self_test:
        arguments.out.mkdir(parents=True, exist_ok=True)
        train(game, settings, env, mesh, arguments, imports)


def arguments_of_command() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=[game.name for game in USUAL], default=CONNECT_FOUR.name, help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="folder of the networks")
    parser.add_argument("--minutes", type=minutes_of, default=[1.0, 2.0, 4.0, 8.0, 15.0], help="when to write networks, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minuet", type=Path, default=ROOT / "target" / "release" / "minuet", help="program for the self-test")
    parser.add_argument("--self-test", action="store_true", help="only run the self-test")
    for field in fields(Settings):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type={"int": int, "float": float}[str(field.type)], help="see scripts/peer_trainer/settings.py")
    arguments = parser.parse_args()
    if not arguments.self_test and arguments.out is None:
        parser.error("--out is missing")
    return arguments


def minutes_of(text: str) -> list[float]:
    """Return the numbers of a list with commas. Raise ValueError if one is not greater than 0."""
    minutes = [float(part) for part in text.split(",")]
    if min(minutes) <= 0:
        raise ValueError("a minute must be greater than 0")
    return minutes


def train(game: Game, settings: Settings, env: Any, mesh: Mesh, arguments: argparse.Namespace, imports: float) -> None:
    """Train until the last of the minutes, and write a network after each. `imports` is the processor time that the imports took."""
    began, began_wall = time.process_time() - imports, time.time()
    before, before_wall = time.process_time(), time.time()
    learner, players = start(game, settings, env, mesh, arguments.seed)
    programs = compiled(game, settings, env, mesh, learner, players)
    compilation, compilation_wall = time.process_time() - before, time.time() - before_wall
    iterations = games = 0
    for minutes in sorted(arguments.minutes):
        while (spent := time.process_time() - began - compilation) < minutes * MINUTE or iterations == 0:
            players, result, known, finished = programs.play(learner, players)
            for number in range(settings.updates):
                learner, losses = programs.update(learner, players, result, known, np.int32(number))
            iterations, games = iterations + 1, games + int(finished)
            jax.block_until_ready(learner)
        step = iterations * settings.updates
        network = write(game, arguments.out / f"minute-{minutes:g}", fold(learner.parameters, learner.statistics), step)
        positions = iterations * settings.games * settings.steps
        line = {
            "minutes": minutes,
            "network": network.name,
            "processor_seconds": round(spent, 1),
            "wall_seconds": round(time.time() - began_wall - compilation_wall, 1),
            "compilation_processor_seconds": round(compilation, 1),
            "positions": positions,
            "games": games,
            "samples": step * settings.batch,
            "simulations": positions * settings.simulations,
            "steps": step,
            "policy_loss": round(float(losses[0]), 4),
            "value_loss": round(float(losses[1]), 4),
        }
        print(json.dumps(line), flush=True)


def write(game: Game, path: Path, weights: Tree, step: int) -> Path:
    """Write a network. Return the path with the extension of its kind of file."""
    if game is CONNECT_FOUR:
        network = path.with_name(f"{path.name}.onnx")
        write_network(network, weights, step)
    else:
        network = path.with_name(f"{path.name}.npz")
        write_weights(network, weights)
    return network


if __name__ == "__main__":
    main()
