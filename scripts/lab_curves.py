#!/usr/bin/env python3
"""Draw the results of an experiment of `minuet lab`: each figure over what was spent, with a band from the lowest to the highest seed.

    $(python3 scripts/python_env.py simulate) scripts/lab_curves.py runs/lab/first-minutes

Writes curve-NAME.svg next to the experiment's result.json.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from matplotlib import pyplot

PERCENT = {"optimal_alone": "optimal moves alone, %", "optimal_searched": "optimal moves with search, %"}


def figures(rated: dict) -> dict[str, float]:
    found = {f"Elo against {match['against']}": match["elo"] for match in rated["matches"]}
    found |= {name: rated[key] and 100 * rated[key] for key, name in PERCENT.items()}
    return {name: value for name, value in found.items() if value is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the experiment, with result.json")
    parser.add_argument("--price", type=float, default=3.0, help="evaluations that cost as much as one sample")
    arguments = parser.parse_args()
    curves: dict[str, dict[str, list[tuple[float, list[float]]]]] = defaultdict(lambda: defaultdict(list))
    for arm in json.loads((arguments.folder / "result.json").read_text()):
        for measured in zip(*(state["ratings"] for _, state in arm["runs"])):
            spent = [rated["spent"]["evaluations"] + arguments.price * rated["spent"]["samples"] for rated in measured]
            for name in figures(measured[0]):
                values = [value for rated in measured if (value := figures(rated).get(name)) is not None]
                curves[name][arm["arm"]].append((sum(spent) / len(spent), values))
    for name, arms in curves.items():
        figure, axes = pyplot.subplots(figsize=(8, 4.4), layout="constrained")
        for arm, points in arms.items():
            across = [spent for spent, _ in points]
            axes.plot(across, [sum(values) / len(values) for _, values in points], marker="o", label=arm)
            axes.fill_between(across, [min(values) for _, values in points], [max(values) for _, values in points], alpha=0.15)
        axes.set(xlabel="evaluations + price × samples", ylabel=name)
        axes.grid(alpha=0.3)
        figure.legend(loc="outside right center")
        figure.savefig(arguments.folder / f"curve-{''.join(letter if letter.isalnum() else '-' for letter in name)}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
