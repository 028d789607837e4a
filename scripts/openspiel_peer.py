#!/usr/bin/env python3
"""Train a game of OpenSpiel with OpenSpiel's own AlphaZero and with Minuet, for the same processor time, and let them play.

    python=$(python3 scripts/python_env.py openspiel)          # and `pip install` the wheel of `make python` into it
    $python scripts/openspiel_peer.py train --game connect_four --out DIR/peer --seconds 1200
    $python scripts/openspiel_peer.py budget --seconds 1200 -- $python -m minuet up openspiel:connect_four --run DIR/run
    $python scripts/openspiel_peer.py match --game connect_four --peer DIR/peer --run DIR/run --visits 100 --games 100

Seconds are processor time of a command with all its processes, start and compilation included. OpenSpiel's AlphaZero (in Python, networks in
JAX) runs with the settings of its example but for those in `SETTINGS`, which suit two cores; it evaluates one position at a time. `match`
gives both players the same number of visits: OpenSpiel's `MCTSBot` with its network, and Minuet's search with the newest checkpoint of the
run. Each pair of games begins with the same two random moves and changes colours. It prints a line of JSON with Minuet's results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: What differs from OpenSpiel's example: self-play on both cores, no evaluation games, a network that two cores carry, one file of weights.
SETTINGS = {"actors": 2, "evaluators": 0, "nn_width": 64, "nn_depth": 4, "max_simulations": 100, "max_steps": 0, "checkpoint_freq": 1}
#: OpenSpiel's example, where the loop needs a value.
EXAMPLE = {
    "learning_rate": 1e-3, "weight_decay": 1e-4, "decouple_weight_decay": False, "train_batch_size": 128, "replay_buffer_size": 2**13,
    "replay_buffer_reuse": 4, "uct_c": 1.41, "policy_alpha": 1.0, "policy_epsilon": 0.25, "temperature": 1.0, "temperature_drop": 10,
    "evaluation_window": 50, "eval_levels": 7, "nn_model": "resnet", "observation_shape": None, "output_size": None, "quiet": True,
    "verbose": False, "nn_api_version": "linen",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train with OpenSpiel's AlphaZero")
    loop = commands.add_parser("loop", help="the training itself, which `train` starts")
    budget = commands.add_parser("budget", help="run a command, and send it SIGINT after its processor time")
    match = commands.add_parser("match", help="play the two against each other")
    for command in (train, loop, match):
        command.add_argument("--game", required=True, help="as OpenSpiel names it, e.g. breakthrough(rows=6,columns=6)")
    for command in (train, loop):
        command.add_argument("--out", type=Path, required=True)
    for command in (train, budget):
        command.add_argument("--seconds", type=float, required=True)
    budget.add_argument("words", nargs="+")
    match.add_argument("--peer", type=Path, required=True)
    match.add_argument("--run", type=Path, required=True)
    match.add_argument("--visits", type=int, default=100)
    match.add_argument("--games", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.command == "train":
        run_for(arguments.seconds, [sys.executable, __file__, "loop", "--game", arguments.game, "--out", str(arguments.out)])
    elif arguments.command == "budget":
        run_for(arguments.seconds, arguments.words)
    elif arguments.command == "loop":
        learn(arguments.game, arguments.out)
    else:
        play_match(arguments)


def run_for(seconds: float, words: list[str]) -> None:
    """Run a command in a group of its own, and end it once its processes have taken this much processor time."""
    began = time.monotonic()
    process = subprocess.Popen(words, start_new_session=True)
    used = 0.0
    while process.poll() is None and used < seconds:
        time.sleep(0.5)
        used = max(used, processor_seconds(process.pid))
    ended = process.poll() is None
    if ended:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    if not ended and process.returncode:
        sys.exit(f"{words[0]} ended with {process.returncode} after {used:.0f} s of processor time")
    print(json.dumps({"processor_seconds": round(used), "seconds": round(time.monotonic() - began)}))


def processor_seconds(session: int) -> float:
    """Return the processor time of all processes of a session, and of their children that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(int(fields[at]) for at in range(11, 15))
    return ticks / os.sysconf("SC_CLK_TCK")


def learn(game: str, out: Path) -> None:
    from open_spiel.python.algorithms.alpha_zero import alpha_zero
    from open_spiel.python.utils import spawn

    out.mkdir(parents=True, exist_ok=True)
    with spawn.main_handler():
        alpha_zero.alpha_zero(alpha_zero.Config(game=game, path=str(out.resolve()), **EXAMPLE, **SETTINGS))


class Peer:
    """OpenSpiel's search with the network that its AlphaZero saved last."""

    def __init__(self, folder: Path, game: Any, visits: int, seed: int):
        import numpy as np
        from open_spiel.python.algorithms import mcts
        from open_spiel.python.algorithms.alpha_zero import evaluator, utils

        steps = [int(path.name.rsplit("-", 1)[-1]) for path in folder.glob("checkpoint-*") if path.name.rsplit("-", 1)[-1].isdigit()]
        self.step = max(steps)
        kind = utils.api_selector(EXAMPLE["nn_api_version"]).Model
        model = kind.build_model(
            EXAMPLE["nn_model"], game.observation_tensor_shape(), game.num_distinct_actions(), SETTINGS["nn_width"], SETTINGS["nn_depth"],
            EXAMPLE["weight_decay"], EXAMPLE["learning_rate"], str(folder.resolve()), decouple_weight_decay=False,
        )  # fmt: skip
        model.load_checkpoint(self.step)
        self.evaluator = evaluator.AlphaZeroEvaluator(game, model)
        self.bot = mcts.MCTSBot(
            game, EXAMPLE["uct_c"], visits, self.evaluator, solve=True, random_state=np.random.RandomState(seed), child_selection_fn=mcts.SearchNode.puct_value,
        )  # fmt: skip

    def step_of(self, state: Any) -> int:
        return int(self.bot.step(state))


class Minuet:
    """Minuet's search with the newest checkpoint of a run."""

    def __init__(self, folder: Path, game: str, visits: int, seed: int):
        import minuet
        import minuet.own
        import onnxruntime
        from minuet import from_openspiel

        self.visits, self.seed, self.module = visits, seed, minuet
        self.game = minuet.own.add(from_openspiel.load(game).rules)
        path = max((folder / "checkpoints" / "versions").glob("*/model.onnx"))
        self.version = path.parent.name
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.searches = 0

    def evaluate(self, batch: Any) -> tuple[Any, Any]:
        import numpy as np

        logits, values = self.session.run(["policy_logits", "value"], {"indices": batch.rows().astype(np.int32)})
        return batch.priors(logits), values

    def step_of(self, actions: list[int]) -> int:
        state = self.game.start()
        for action in actions:
            state.play(action)
        self.searches += 1
        search = self.module.Search(state, self.evaluate, self.visits, seed=self.seed, game=self.searches)
        search.run()
        return int(search.choose())


def play_match(arguments: argparse.Namespace) -> None:
    import pyspiel

    game = pyspiel.load_game(arguments.game)
    peer = Peer(arguments.peer, game, arguments.visits, 1)
    ours = Minuet(arguments.run, arguments.game, arguments.visits, 1)
    results = [0, 0, 0]
    for number in range(arguments.games):
        draw = random.Random(number // 2)
        state, actions = game.new_initial_state(), []
        while not state.is_terminal():
            if len(actions) < 2:
                action = draw.choice(state.legal_actions())
            elif state.current_player() == number % 2:
                action = ours.step_of(actions)
            else:
                action = peer.step_of(state)
            state.apply_action(action)
            actions.append(action)
        score = state.returns()[number % 2]
        results[0 if score > 0 else 2 if score < 0 else 1] += 1
    report = {"game": arguments.game, "visits": arguments.visits, "wins": results[0], "draws": results[1], "losses": results[2]}
    print(json.dumps({**report, "run": ours.version, "peer_step": peer.step}))


if __name__ == "__main__":
    main()
