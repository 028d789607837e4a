#!/usr/bin/env python3
"""Train Connect Four with other people's programs, to compare Minuet with them: Gumbel AlphaZero in JAX, rules of Pgx, search of mctx.

    python=$(python3 scripts/python_env.py peer)
    $python scripts/peer.py --out DIR --minutes 1,2,4,8,15 --seed 1
    target/release/minuet arena --game connect-four DIR/minute-1.onnx,visits=100 uct,visits=100 --games 200
    target/release/minuet bench accuracy --game connect-four --model DIR/minute-1.onnx --positions 100 --visits 1 --visits 100

A minute is 117 seconds of processor time of this process, all threads together: 0.975 of two cores for a minute. Imports, self-play,
training and writing of networks count. The self-test and the compilation of the training functions do not count; each line of output
says how long the compilation took. After each of the minutes the program writes the network as ONNX file, with a description for
`inference.models` with it, and prints a line of JSON with the progress of the training.

An iteration plays 8 moves in each of 256 games and then trains on random samples of the last 16 iterations. The search has 32
simulations for each move; mctx's `gumbel_muzero_policy` chooses the moves and makes the policy targets (completed values). New games
replace finished ones. The value target is the result of the game; a position of a game that still runs has none.

Before it trains, the program compares the ONNX file of a random network with the same network in JAX. `--self-test` does only that. The
code is in `scripts/peer_trainer`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from peer_trainer.network import fold
from peer_trainer.onnx_file import write_network
from peer_trainer.self_test import self_test
from peer_trainer.settings import ROOT, Settings
from peer_trainer.training import DEVICES, compiled, start

#: Seconds of processor time that count as a minute.
MINUTE = 117.0


def main() -> None:
    arguments = arguments_of_command()
    settings = Settings(simulations=arguments.simulations, samples=arguments.samples, random_plies=arguments.random_plies)

    # One device for each core, each with one thread, takes less processor time than one device with many threads. JAX reads the flags
    # when it begins to compute, and the import of Pgx computes.
    flags = f"--xla_force_host_platform_device_count={settings.devices} --xla_cpu_multi_thread_eigen=false"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"
    jax.config.update("jax_platforms", "cpu")
    import pgx

    env = pgx.make("connect_four")
    mesh = Mesh(np.array(jax.devices()[: settings.devices]), (DEVICES,))
    imports = time.process_time()
    tested = self_test(settings, env, arguments.minuet, arguments.seed)
    print(json.dumps({"self_test": tested, "settings": asdict(settings), "seed": arguments.seed}), flush=True)
    if not arguments.self_test:
        arguments.out.mkdir(parents=True, exist_ok=True)
        train(settings, env, mesh, arguments, imports)


def arguments_of_command() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = Settings()
    parser.add_argument("--out", type=Path, help="folder of the networks")
    parser.add_argument("--minutes", type=minutes_of, default=[1.0, 2.0, 4.0, 8.0, 15.0], help="when to write networks, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minuet", type=Path, default=ROOT / "target" / "release" / "minuet", help="program for the self-test")
    parser.add_argument("--self-test", action="store_true", help="only test that Minuet and JAX see the same positions")
    parser.add_argument("--random-plies", type=int, default=usual.random_plies, help="each game begins with 0 to this many random moves")
    parser.add_argument("--simulations", type=int, default=usual.simulations, help="for each move")
    parser.add_argument("--samples", type=float, default=usual.samples, help="trained for each position")
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


def train(settings: Settings, env: Any, mesh: Mesh, arguments: argparse.Namespace, imports: float) -> None:
    """Train until the last of the minutes, and write a network after each. `imports` is the processor time that the imports took."""
    began, began_wall = time.process_time() - imports, time.time()
    learner, players = start(settings, env, mesh, arguments.seed)
    before, before_wall = time.process_time(), time.time()
    programs = compiled(settings, env, mesh, learner, players)
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
        name = f"minute-{minutes:g}"
        write_network(arguments.out / f"{name}.onnx", fold(learner.parameters, learner.statistics), step)
        positions = iterations * settings.games * settings.steps
        line = {
            "minutes": minutes,
            "network": f"{name}.onnx",
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


if __name__ == "__main__":
    main()
