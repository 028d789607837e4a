#!/usr/bin/env python3
"""Play the newest checkpoint of a run of a game of OpenSpiel against OpenSpiel's MCTS bot, with random rollouts or its own AlphaZero.

    python3 scripts/processor_seconds.py 1200 python -m minuet up "openspiel:oware"
    python scripts/openspiel_match.py runs/openspiel-oware --games 100 --visits 100 --rollouts 1000

    python3 scripts/processor_seconds.py 1200 python -m open_spiel.python.examples.alpha_zero --game oware --path DIR --evaluators 0 --max_steps 0
    python scripts/openspiel_match.py runs/openspiel-oware --games 100 --visits 100 --alphazero DIR

Needs the Python package of Minuet, PyTorch and `open_spiel`; its AlphaZero needs JAX, Flax, Optax, Orbax and Chex. Games come in pairs: both sides play the same opening of random actions with
both colours. Prints one JSON object: the score of the network from 0 to 1, wins, draws and losses, and the difference in Elo with its
interval of 95 %, from the scores of the pairs. A match without a loss has no upper bound, and the bounds are null then.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import pyspiel
from open_spiel.python.algorithms import mcts

import minuet
from minuet._minuet import add_own_game
from minuet.own import Adapter
from minuet.source import Source
from minuet.torch import NetworkEvaluator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--games", type=int, default=100, help="number of games, two for each opening (default: %(default)s)")
    parser.add_argument("--visits", type=int, default=100, help="of the network's search for each action (default: %(default)s)")
    parser.add_argument("--rollouts", type=int, default=1000, help="of the bot for each action, one from each leaf (default: %(default)s)")
    parser.add_argument("--alphazero", type=Path, help="folder of a training of OpenSpiel's AlphaZero, whose last network plays with as many visits")
    parser.add_argument("--opening-plies", type=int, default=4, help="random actions at the beginning (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of openings and searches (default: %(default)s)")
    arguments = parser.parse_args()

    known = json.loads((arguments.run / "game.json").read_text())
    source = Source.load(known["rules"])
    adapter = Adapter(source.rules, source)
    add_own_game(json.dumps(adapter.continued(known)), adapter)
    theirs = pyspiel.load_game(known["rules"].removeprefix("openspiel:"))
    network = minuet.load_network(arguments.run / "checkpoints")
    scores = play(minuet.Game(known["name"]), theirs, NetworkEvaluator(network), arguments)
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()}
    print(json.dumps({"game": known["name"], "checkpoint": network.manifest["version"], **settings, **summary(scores)}))


class Match:
    """One game: the state of both libraries, and the side of the network."""

    def __init__(self, game: minuet.Game, theirs: Any, opening: list[int], side: int, seed: int, bot: Any) -> None:
        self.ours, self.theirs, self.side, self.seed, self.bot = game.start(), theirs.new_initial_state(), side, seed, bot
        for action in opening:
            self.play(action)

    def play(self, action: int) -> None:
        self.ours.play(action)
        self.theirs.apply_action(action)

    def score(self) -> float:
        return (1 + self.theirs.returns()[self.side]) / 2


def play(game: minuet.Game, theirs: Any, evaluator: NetworkEvaluator, arguments: argparse.Namespace) -> list[float]:
    """Return the scores of the network, two for each opening. The searches of all games share batches."""
    draws = random.Random(arguments.seed)
    their_network = arguments.alphazero and alphazero(arguments.alphazero, theirs)
    matches = []
    for pair in range(arguments.games // 2):
        opening = opening_of(theirs, arguments.opening_plies, draws)
        for side in (0, 1):
            seed = arguments.seed * 100_000 + 2 * pair + side
            if their_network is None:
                rollouts = pyspiel.RandomRolloutEvaluator(1, seed)
                # The constant of exploration and the solver are those of OpenSpiel's own examples.
                bot = pyspiel.MCTSBot(theirs, rollouts, 2.0, arguments.rollouts, 1000, True, seed, False)
            else:
                bot = mcts.MCTSBot(theirs, 1.41, arguments.visits, their_network, solve=False, child_selection_fn=mcts.SearchNode.puct_value)
            matches.append(Match(game, theirs, opening, side, seed, bot))
    while running := [match for match in matches if not match.theirs.is_terminal()]:
        mine = [match for match in running if match.theirs.current_player() == match.side]
        searches = [minuet.Search(match.ours, evaluator, arguments.visits, seed=match.seed) for match in mine]
        minuet.run_searches(searches)
        for match, search in zip(mine, searches, strict=True):
            match.play(search.choose())
        for match in running:
            if not match.theirs.is_terminal() and match.theirs.current_player() != match.side:
                match.play(match.bot.step(match.theirs))
    return [match.score() for match in matches]


def alphazero(folder: Path, theirs: Any) -> Any:
    """Return the last network of a training of OpenSpiel's AlphaZero, as an evaluator of its searches."""
    from open_spiel.python.algorithms.alpha_zero import alpha_zero, evaluator

    settings = json.loads((folder / "config.json").read_text())
    model = alpha_zero._init_model_from_config(alpha_zero.Config(**settings))
    # The number of the newest weights; each 25th is kept as well.
    model.load_checkpoint(-1)
    return evaluator.AlphaZeroEvaluator(theirs, model)


def opening_of(theirs: Any, plies: int, draws: random.Random) -> list[int]:
    """Return random actions after which the game still runs."""
    while True:
        state, actions = theirs.new_initial_state(), list[int]()
        while len(actions) < plies and not state.is_terminal():
            actions.append(draws.choice(state.legal_actions()))
            state.apply_action(actions[-1])
        if not state.is_terminal():
            return actions


def summary(scores: list[float]) -> dict[str, Any]:
    """Return the score and the difference in Elo of all games."""
    pairs = [(one + other) / 2 for one, other in zip(scores[::2], scores[1::2], strict=True)]
    mean = statistics.mean(pairs)
    margin = 1.96 * statistics.stdev(pairs) / math.sqrt(len(pairs))
    counts = {name: scores.count(score) for name, score in (("wins", 1.0), ("draws", 0.5), ("losses", 0.0))}
    return {"score": mean, **counts, "elo": elo(mean), "elo_interval": [elo(mean - margin), elo(mean + margin)]}


def elo(score: float) -> float | None:
    """Return the difference in Elo for a score. None for a score that no difference has."""
    return round(400 * math.log10(score / (1 - score)), 1) if 0 < score < 1 else None


if __name__ == "__main__":
    main()
