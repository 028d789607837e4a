#!/usr/bin/env python3
"""Draw the README's picture of strength from the tables of docs/results/strength.md.

    make plots
    $(python3 scripts/python_env.py simulate) scripts/strength_picture.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "strength.md"
PICTURE = ROOT / "docs" / "pictures" / "strength.svg"
#: Section, column, label, colour (Okabe and Ito 2008) and marker of each curve.
CURVES = [
    ("Fifteen minutes of Connect Four on two slow cores", 4, "Minuet", "#0072b2", "o"),
    ("Connect Four compared with Pgx and mctx", 5, "Gumbel AlphaZero (Pgx, mctx), on faster cores", "#d55e00", "s"),
]
ELO = re.compile(r"\+(\d+) \((\d+) to (\d+)\)")


def points(section: str, column: int) -> list[list[float]]:
    """Minutes, Elo and the ends of its interval in the first table of a section whose column has them."""
    text = PAGE.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ")[0]
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > column and (elo := ELO.fullmatch(cells[column])):
            found.append([float(cells[0]), *map(float, elo.groups())])
    if not found:
        sys.exit(f"strength_picture: {PAGE} has no Elo in column {column} of {section}")
    return found


def main() -> None:
    pyplot.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "minuet", "font.size": 12}
    figure, axes = pyplot.subplots(figsize=(8, 3.8), layout="constrained")
    for section, column, label, colour, marker in CURVES:
        minutes, elo, low, high = zip(*points(section, column))
        axes.plot(minutes, elo, marker=marker, color=colour, label=label)
        axes.fill_between(minutes, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set(xlabel="minutes of two cores, from nothing", ylabel="Elo over uniform UCT", title="Connect Four", ylim=(0, 900), xscale="log")
    axes.set_xticks([1, 2, 4, 8, 15], ["1", "2", "4", "8", "15"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
