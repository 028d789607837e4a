"""Tables of the ablation: solve rates with intervals, differences from the whole network, sizes and speeds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Quantile of the normal distribution for intervals of 95 %.
Z = 1.959964
Result = dict[str, Any]
Numbers = NDArray[np.float64]


def wilson(solved: int, problems: int) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %."""
    share, spread = solved / problems, Z * Z / problems
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / problems + spread / (4 * problems))
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_interval(each: Numbers) -> tuple[float, float, float]:
    """Mean and its interval, 95 %."""
    mean, half = float(each.mean()), Z * float(each.std(ddof=1)) / math.sqrt(len(each))
    return mean, mean - half, mean + half


def difference(results: list[Result], others: list[Result], what: str) -> tuple[float, float, float] | None:
    """Mean difference of two arms over all problems, and its interval, 95 %. Both arms play the same problems with the same seeds, so
    the differences of single problems, means over the seeds, count. The interval does not hold what other seeds would change. None
    without a common seed."""
    mine, theirs = ({result["seed"]: result for result in group if what in result["sets"][0]} for group in (results, others))

    def by_problem(result: Result) -> Numbers:
        return np.concatenate([each[what] for each in result["sets"]]).astype(np.float64)

    each = [by_problem(mine[seed]) - by_problem(theirs[seed]) for seed in mine if seed in theirs]
    return mean_interval(np.mean(each, axis=0)) if each else None


def read(folder: Path) -> list[Result]:
    """The results that are there, each with those of its search, if it has them."""
    found = []
    for path in sorted(folder.glob("[0-9]*-*.json")):
        if path.name.endswith(".search.json"):
            continue
        result, searched = json.loads(path.read_text()), path.with_suffix(".search.json")
        if searched.exists():
            result["searched"] = json.loads(searched.read_text())
            for each, solved in zip(result["sets"], result["searched"].pop("solved"), strict=True):
                each["search"] = solved
        found.append(result)
    return found


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_report(folder: Path, order: list[str]) -> str:
    """Writes results.json and report.md into `folder`, of the results that are there. Returns the text of the latter."""
    found = read(folder)
    by_arm = {arm: [result for result in found if result["arm"] == arm] for arm in order}
    by_arm = {arm: results for arm, results in by_arm.items() if results}
    options = json.loads((folder / "options.json").read_text())
    speeds = json.loads((folder / "speed.json").read_text())
    arms = {arm: {**totals(results), **speed(speeds[arm])} for arm, results in by_arm.items()}
    if "two" in by_arm:
        for arm, results in by_arm.items():
            compared = {what: difference(results, by_arm["two"], what) for what in ("search", "alone", "policy_loss", "value_loss")}
            arms[arm]["less_two"] = compared
    (folder / "results.json").write_text(json.dumps({"options": options, "arms": arms, "results": found}, indent=1) + "\n")
    text = "\n\n".join([
        sizes(arms),
        f"Solved with {options['visits']} visits a move, in %, with intervals of 95 %:",
        rates(arms, "search"),
        "Solved without a search:",
        rates(arms, "alone"),
        "Policy loss on the known solutions of the held-out problems, in nats, with intervals of 95 %:",
        losses(arms),
    ])
    (folder / "report.md").write_text(text + "\n")
    return text


def speed(rounds: dict[str, list[float]]) -> dict[str, float]:
    """Medians over the rounds."""
    return {f"{name}_per_second": float(np.median(each)) for name, each in rounds.items()}


def totals(results: list[Result]) -> dict[str, Any]:
    """Figures of an arm over its seeds."""
    sets = []
    for number, first in enumerate(results[0]["sets"]):
        one: dict[str, Any] = {"kind": first["kind"], "level": first["level"]}
        for way in ("search", "alone"):
            solved = [result["sets"][number][way] for result in results if way in result["sets"][number]]
            if not solved:
                continue
            each = np.concatenate(solved)
            one[way] = {"solved": int(each.sum()), "problems": len(each), "interval": wilson(int(each.sum()), len(each))}
        for loss in ("policy_loss", "value_loss"):
            one[loss] = mean_interval(np.mean([result["sets"][number][loss] for result in results], axis=0))
        sets.append(one)
    mean = {name: float(np.mean([result[name] for result in results])) for name in ("samples", "training_seconds")}
    losses = np.mean([result["losses"] for result in results], axis=0).tolist()
    return {"seeds": [result["seed"] for result in results], "parameters": results[0]["parameters"], **mean, "losses": losses, "sets": sets}


def sizes(arms: dict[str, Any]) -> str:
    """Table of sizes, speeds and losses. Seconds are of processor time."""
    head = ["arm", "seeds", "parameters", "samples", "training s", "samples/s", "evaluations/s", "policy loss", "value loss"]
    rows = [
        [
            arm, str(len(own["seeds"])), f"{own['parameters']:,}", f"{own['samples']:,.0f}", f"{own['training_seconds']:.0f}",
            f"{own['samples_per_second']:.0f}", f"{own['evaluations_per_second']:.0f}", f"{own['losses'][0]:.3f}",
            f"{own['losses'][1]:.4f}",
        ]
        for arm, own in arms.items()
    ]  # fmt: skip
    return table(head, rows)


def rates(arms: dict[str, Any], way: str) -> str:
    """Table of solve rates by set, and of the mean difference from `two`."""
    rows = []
    for arm, own in arms.items():
        row = [arm]
        for each in own["sets"]:
            if way not in each:
                row.append("")
                continue
            low, high = (round(100 * bound) for bound in each[way]["interval"])
            row.append(f"{100 * each[way]['solved'] / each[way]['problems']:.0f} ({low}–{high})")
        rows.append([*row, less_two(arm, own, way, 100, 1)])
    return table(head(arms), rows)


def losses(arms: dict[str, Any]) -> str:
    """Table of policy losses by set, and of the mean difference from `two`."""
    rows = []
    for arm, own in arms.items():
        row = [f"{mean:.2f} ±{high - mean:.2f}" for mean, _, high in (each["policy_loss"] for each in own["sets"])]
        rows.append([arm, *row, less_two(arm, own, "policy_loss", 1, 3)])
    return table(head(arms), rows)


def head(arms: dict[str, Any]) -> list[str]:
    sets = next(iter(arms.values()))["sets"] if arms else []
    return ["arm", *[f"{each['kind']} {each['level']}" for each in sets], "all, less two's"]


def less_two(arm: str, own: dict[str, Any], what: str, scale: float, digits: int) -> str:
    found = own.get("less_two", {}).get(what)
    if arm == "two" or found is None:
        return ""
    mean, low, high = (f"{scale * number:+.{digits}f}" for number in found)
    return f"{mean} ({low} to {high})"
