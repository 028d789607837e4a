"""What each part of the fish-eye network is worth: networks without one part, trained on the same known solutions.

    python fish_eye_ablation.py --out ablation --samples 100000 --seeds 1 2 3

Every arm (`fish_eye_arms.py`) has about the same number of parameters and gets the same positions in the same order: those of known
solutions of random problems, as the actors record them. It then plays held-out problems, those of `minuet bench generator`, with a
search and alone. Files of `--out` are kept, so a study that was stopped continues with the next arm. At the end, and with
`--report`, it prints tables and writes results.json. With `--seconds` the arms get the same processor time instead of the same samples.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fish_eye_arms import ARMS, ArmNetwork, network_of, parameters_of
from fish_eye_report import write_report
from numpy.typing import NDArray
from torch.nn import functional

import minuet
from minuet.torch import NetworkEvaluator

#: Discount for each move to the solution, share of pairs in percent, and highest level of known solutions, as in a new run.
DISCOUNT, PAIRS, LEVELS = 0.97, 25, 16
BATCH, WARM_UP, LEARNING_RATE, WEIGHT_DECAY, AVERAGE_DECAY, GRADIENT_NORM = 128, 100, 1e-3, 1e-4, 0.95, 5.0
#: Positions that are shuffled together.
CHUNK = 64 * BATCH
#: Seed of the held-out problems, and their kinds and levels.
HELD_OUT_SEED = 4_321_000
SETS = [(kind, level) for kind in ("draw", "pair") for level in (2, 4, 8, 16)]
#: Searches in progress at the same time.
AT_ONCE = 64
SEARCH: dict[str, Any] = {
    "exploration": 1.25, "first_play": "reduction", "first_play_reduction": 0.1, "leaves": 4, "reuse": "keep", "discount": DISCOUNT,
    "max_share": 0.25, "stop_when_solved": True,
}  # fmt: skip

GAME = minuet.Game("generator")
#: Under these rules all moves that the kinds of the imps allow are legal. The learner's softmax is over them.
CANDIDATES = minuet.Game("generator", illegal="oops")


#: A position to train on: its row, the policy entries of its candidates, place of the right one among them, and value.
Sample = tuple[NDArray[np.uint32], NDArray[np.uint16], int, float]


class Batch:
    """Samples as tensors: inputs of the network, and targets."""

    def __init__(self, samples: list[Sample]) -> None:
        rows, entries, right, values = zip(*samples)
        lengths = np.array([len(row) for row in rows], np.uint32)
        self.inputs = {name: torch.from_numpy(array) for name, array in GAME.inputs(np.concatenate(rows), lengths).items()}
        counts = torch.tensor([len(own) for own in entries])
        first_logits = self.inputs["root"].long() * CANDIDATES.layout["clan"]["moves"]
        #: Logits of all candidates back to back, and their places in a table that is padded to the longest list.
        self.logits = torch.from_numpy(np.concatenate(entries).astype(np.int64)) + first_logits.repeat_interleave(counts)
        self.width = int(counts.max())
        before = (counts.cumsum(0) - counts).repeat_interleave(counts)
        self.places = torch.arange(len(before)) - before + (torch.arange(len(counts)) * self.width).repeat_interleave(counts)
        self.right = torch.tensor(right)
        self.values = torch.tensor(values, dtype=torch.float32)[:, None]

    def losses(self, network: ArmNetwork) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross-entropy of the policy over the candidates, and of the value, in nats, of each position: float32 [n] each."""
        logits, values = network.outputs(self.inputs)
        table = logits.new_full((len(self.right) * self.width,), -torch.inf).index_copy(0, self.places, logits.flatten()[self.logits])
        policy = functional.cross_entropy(table.view(-1, self.width), self.right, reduction="none")
        return policy, functional.binary_cross_entropy_with_logits(values, self.values, reduction="none").flatten()


class Solutions:
    """Positions of known solutions of random problems, none of them held out. Equal seeds give equal batches."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chunks: list[list[Sample]] = []

    def batches(self) -> Iterator[Batch]:
        """All batches, from the first. There is no last one."""
        number = 0
        while True:
            if number == len(self.chunks):
                self.chunks.append(self._chunk(number))
            for begin in range(0, CHUNK, BATCH):
                yield Batch(self.chunks[number][begin : begin + BATCH])
            number += 1

    def _chunk(self, number: int) -> list[Sample]:
        random = np.random.default_rng([self.seed, number])
        samples: list[Sample] = []
        problem = number * CHUNK
        while len(samples) < CHUNK:
            kind = "pair" if random.integers(100) < PAIRS else "draw"
            samples += samples_of(int(random.integers(LEVELS)) + 1, kind, self.seed, problem)
            problem += 1
        random.shuffle(samples)
        return samples[:CHUNK]


def samples_of(level: int, kind: str, seed: int, number: int, is_held_out: bool = False) -> list[Sample]:
    """Positions on the known solution of a problem. The value is discounted by the moves that are left."""
    state, solution = CANDIDATES.problem(level, kind, seed=seed, number=number, held_out=is_held_out)
    samples = []
    for place, action in enumerate(solution):
        entries = state.legal_entries()
        right = int(np.searchsorted(state.legal_actions(), action))
        samples.append((state.row(), entries.astype(np.uint16), right, DISCOUNT ** (len(solution) - place)))
        state.play(action)
    return samples


class Training:
    """Trains a network as the learner does. `average` is the moving average of its weights."""

    def __init__(self, network: ArmNetwork) -> None:
        self.network, self.average = network, copy.deepcopy(network)
        decayed = [weights for name, weights in network.named_parameters() if weights.ndim > 1 and not name.endswith("embedding")]
        others = [weights for name, weights in network.named_parameters() if weights.ndim == 1 or name.endswith("embedding")]
        groups: list[dict[str, Any]] = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, foreach=True)
        self.steps, self.seconds = 0, 0.0

    def step(self, batch: Batch) -> tuple[float, float]:
        """Trains on a batch, and returns the losses of policy and value before. Its processor time is added to `seconds`."""
        began = time.process_time()
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (self.steps + 1) / WARM_UP)
        policy, value = (each.mean() for each in batch.losses(self.network))
        self.optimizer.zero_grad()
        (policy + value).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), GRADIENT_NORM)
        self.optimizer.step()
        self.steps += 1
        with torch.no_grad():
            share = max(1.0 - AVERAGE_DECAY, 1.0 / self.steps)
            torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), share)
        self.seconds += time.process_time() - began
        return policy.item(), value.item()


class Counting:
    """Evaluates the leaves of searches, and counts them and the processor time."""

    def __init__(self, network: ArmNetwork) -> None:
        self.evaluator, self.evaluations, self.seconds = NetworkEvaluator(network), 0, 0.0

    def __call__(self, batch: minuet.Batch) -> tuple[NDArray[np.float32], NDArray[Any]]:
        began = time.process_time()
        answer = self.evaluator(batch)
        self.seconds += time.process_time() - began
        self.evaluations += len(batch)
        return answer


class HeldOut:
    """Held-out problems of a kind and level, and the positions on their known solutions."""

    def __init__(self, kind: str, level: int, problems: int) -> None:
        self.kind, self.level, numbers = kind, level, range(problems)
        self.starts = [GAME.problem(level, kind, seed=HELD_OUT_SEED, number=number, held_out=True)[0] for number in numbers]
        solutions = [samples_of(level, kind, HELD_OUT_SEED, number, is_held_out=True) for number in numbers]
        samples = [sample for solution in solutions for sample in solution]
        self.lengths = np.array([len(solution) for solution in solutions])
        self.batches = [Batch(samples[begin : begin + BATCH]) for begin in range(0, len(samples), BATCH)]

    def losses(self, network: ArmNetwork) -> dict[str, list[float]]:
        """Losses of policy and value on the known solution of each problem, means over its positions."""
        with torch.inference_mode():
            each = [np.concatenate(losses) for losses in zip(*(batch.losses(network) for batch in self.batches))]
        begins = np.cumsum(self.lengths) - self.lengths
        policy, value = ((np.add.reduceat(losses, begins) / self.lengths).tolist() for losses in each)
        return {"policy_loss": policy, "value_loss": value}


def solved_by_search(evaluator: Counting, starts: list[minuet.State], visits: int) -> list[bool]:
    """Which problems a search of `visits` visits for each move solves."""
    solved = [False] * len(starts)
    waiting = list(enumerate(starts))[::-1]
    running: dict[int, minuet.Search] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number, start = waiting.pop()
            running[number] = minuet.Search(start, evaluator, visits, seed=HELD_OUT_SEED, game=number, **SEARCH)
        minuet.run_searches(list(running.values()))
        for number, search in list(running.items()):
            action = search.choose()
            if action is None:
                raise RuntimeError(f"the search of problem {number} has no move to choose")
            search.advance(action)
            if search.state.outcome is not None:
                solved[number] = search.state.ending == "solved"
                del running[number]
    return solved


def solved_alone(network: ArmNetwork, starts: list[minuet.State]) -> list[bool]:
    """Which problems are solved by the moves that the network finds likeliest, without a search."""
    evaluator = NetworkEvaluator(network)
    states = [start.copy() for start in starts]
    while running := [state for state in states if state.outcome is None]:
        batch = minuet.Batch(running)
        priors, _ = evaluator(batch)
        ends = np.cumsum(batch.legal()[1])
        for state, own in zip(running, np.split(priors, ends[:-1])):
            state.play(int(state.legal_actions()[own.argmax()]))
    return [state.ending == "solved" for state in states]


class Study:
    """The study: the folder of its results, and its options."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.folder: Path = arguments.out
        self.arms: list[str] = arguments.arms
        self.seeds: list[int] = arguments.seeds
        self.options = {name: getattr(arguments, name) for name in ("samples", "seconds", "visits", "problems")}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "options.json"
        if path.exists() and json.loads(path.read_text()) != self.options:
            raise SystemExit(f"{self.folder} holds a study with other options: {path.read_text()}")
        write(path, self.options)

    def run(self) -> None:
        """For each seed, trains all arms, and then lets them search. Each result is kept at once."""
        if not (self.folder / "speed.json").exists():
            write(self.folder / "speed.json", speeds(self.arms))
        sets = [HeldOut(kind, level, self.options["problems"]) for kind, level in SETS]
        for seed in self.seeds:
            solutions = Solutions(seed)
            for arm in self.arms:
                path = self._path(arm, seed, "json")
                if not path.exists():
                    figures, network = self._trained(arm, seed, solutions)
                    result = {"arm": arm, "seed": seed, "parameters": parameters_of(network), **figures, "sets": judged(network, sets)}
                    write(path, result)
                    loss, alone = (np.mean([each[what] for each in result["sets"]]) for what in ("policy_loss", "alone"))
                    print(f"{arm}, seed {seed}: held-out policy loss {loss:.3f}, {alone:.1%} solved alone", flush=True)
            for arm in self.arms:
                path = self._path(arm, seed, "search.json")
                if not path.exists():
                    _, network = self._trained(arm, seed, solutions)
                    searched = self._searched(network, sets)
                    write(path, searched)
                    print(f"{arm}, seed {seed}: {np.mean(searched['solved']):.1%} solved with a search", flush=True)
        print(write_report(self.folder, list(ARMS)))

    def _path(self, arm: str, seed: int, ending: str) -> Path:
        return self.folder / f"{seed}-{arm}.{ending}"

    def _trained(self, arm: str, seed: int, solutions: Solutions) -> tuple[dict[str, Any], ArmNetwork]:
        """Trains an arm, or reads the weights that were kept. Returns figures of the training and the averaged network."""
        network, path = network_of(arm, GAME, seed), self._path(arm, seed, "pt")
        if path.exists():
            kept = torch.load(path, weights_only=True)
            network.load_state_dict(kept["weights"])
            return kept["figures"], network
        training, reported = Training(network), time.monotonic()
        losses: list[tuple[float, float]] = []
        for batch in solutions.batches():
            losses.append(training.step(batch))
            samples, last = len(losses) * BATCH, np.mean(losses[-100:], axis=0)
            if time.monotonic() - reported > 10:
                reported = time.monotonic()
                progress = f"{samples} samples, {training.seconds:.0f} s, losses {last[0]:.3f} and {last[1]:.4f}"
                print(f"{arm}, seed {seed}: {progress}", flush=True)
            if training.seconds >= self.options["seconds"] if self.options["seconds"] else samples >= self.options["samples"]:
                break
        curve = [np.mean(losses[begin : begin + 50], axis=0).tolist() for begin in range(0, len(losses), 50)]
        figures = {"samples": samples, "training_seconds": training.seconds, "losses": last.tolist(), "curve": curve}
        partial = path.with_suffix(".partial")
        torch.save({"figures": figures, "weights": training.average.state_dict()}, partial)
        partial.rename(path)
        return figures, training.average

    def _searched(self, network: ArmNetwork, sets: list[HeldOut]) -> dict[str, Any]:
        """Which problems of each set a search solves, and the number and processor seconds of its evaluations."""
        evaluator, began = Counting(network), time.process_time()
        solved = [solved_by_search(evaluator, each.starts, self.options["visits"]) for each in sets]
        seconds = {"evaluation_seconds": evaluator.seconds, "search_seconds": time.process_time() - began}
        return {"solved": solved, "evaluations": evaluator.evaluations, **seconds}


def judged(network: ArmNetwork, sets: list[HeldOut]) -> list[dict[str, Any]]:
    """What a network does without a search, by set: losses on the solution of each problem, and which problems it solves."""
    return [
        {"kind": each.kind, "level": each.level, **each.losses(network), "alone": solved_alone(network, each.starts)} for each in sets
    ]


def speeds(arms: list[str], rounds: int = 5, batches: int = 2) -> dict[str, dict[str, list[float]]]:
    """Samples trained and positions evaluated per second of processor time, by arm and round. Rounds of all arms alternate, so that what
    slows the machine for a while slows all of them. Positions are those of known solutions, evaluated 128 at a time."""
    source = Solutions(0).batches()
    shown = [next(source) for _ in range(batches)]
    trainings = {arm: Training(network_of(arm, GAME, 1)) for arm in arms}
    found: dict[str, dict[str, list[float]]] = {arm: {"samples": [], "evaluations": []} for arm in arms}
    for number in range(rounds + 1):
        for arm, training in trainings.items():
            began = time.process_time()
            with torch.inference_mode():
                for batch in shown:
                    training.network(batch.inputs)
            middle = time.process_time()
            for batch in shown:
                training.step(batch)
            ended = time.process_time()
            # The first round warms up.
            if number:
                found[arm]["evaluations"].append(batches * BATCH / (middle - began))
                found[arm]["samples"].append(batches * BATCH / (ended - middle))
    return found


def write(path: Path, content: Any) -> None:
    """Writes a file of JSON, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content) + "\n")
    partial.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--samples", type=int, default=100_000, help="positions that each arm is trained on")
    parser.add_argument("--seconds", type=float, default=0.0, help="processor time for each arm's training steps, in place of --samples")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--visits", type=int, default=64, help="visits for each move of a search")
    parser.add_argument("--problems", type=int, default=100, help="held-out problems of each kind and level")
    parser.add_argument("--report", action="store_true", help="only print the tables of the results that are there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.report:
        print(write_report(arguments.out, list(ARMS)))
    else:
        Study(arguments).run()


if __name__ == "__main__":
    main()
