#!/usr/bin/env python3
"""Measure how strong a new run becomes, minute by minute, and draw the README's picture.

    python3 scripts/strength_curve.py train connect-four --folder /tmp/curves      # a new run, without a key
    python3 scripts/strength_curve.py match connect-four --folder /tmp/curves      # its checkpoints against uniform UCT
    $(python3 scripts/python_env.py simulate) scripts/strength_curve.py draw       # docs/pictures/strength.svg

A minute is 120 s of processor time, what two cores have, so that other work on the machine changes nothing. Figures of all games are kept in
studio/src/overview/earlier.json, from which the studio says what an earlier run reached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from bisect import bisect_right
from pathlib import Path

from processor_seconds import spend

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "studio" / "src" / "overview" / "earlier.json"
PICTURE = ROOT / "docs" / "pictures" / "strength.svg"
#: Processor seconds of two cores in a minute.
MINUTE = 120.0
MINUTES = (0.5, 1.0, 2.0)
OPPONENT = "uct,visits=1000"
#: Games with their names, and colours that people with any colour vision can tell apart (Okabe and Ito 2008).
GAMES = {"paco-sako": ("Paco Ŝako", "#0072b2"), "chess": ("chess", "#009e73"), "othello": ("Othello", "#cc79a7"), "connect-four": ("Connect Four", "#d55e00")}


def train(program: Path, game: str, folder: Path) -> None:
    """Train until the last of MINUTES and write the newest checkpoint at each of them into `folder`/GAME.json."""
    run = folder / game
    command = [str(program), "up", "--game", game, "--run", str(run), "--json", "--no-studio", "--set", "checkpoints.keep=100000"]
    times = [(1000 * time.time(), seconds) for seconds in spend(command, MINUTE * MINUTES[-1], subprocess.DEVNULL)]
    events = [json.loads(line) for line in (run / "up" / "metrics.jsonl").read_text().splitlines()]
    checkpoints = [event for event in events if event["event"] == "checkpoint"]
    alarms = [event["text"] for event in events if event["event"].startswith("alarm")]
    chosen = []
    for minutes in MINUTES:
        end = next(at for at, seconds in times if seconds >= MINUTE * minutes)
        newest = checkpoints[bisect_right([event["at_ms"] for event in checkpoints], end) - 1]
        chosen.append({"minutes": minutes, "version": newest["version"], "samples": newest["positions_seen"]})
    (folder / f"{game}.json").write_text(json.dumps({"checkpoints": chosen, "alarms": alarms}, indent=1))


def rate(program: Path, game: str, folder: Path, games: int) -> None:
    """Play each chosen checkpoint against OPPONENT and add the results to FIGURES."""
    chosen = json.loads((folder / f"{game}.json").read_text())["checkpoints"]
    points = []
    for point in chosen:
        player = f"{folder / game}@{point['version']},visits=100"
        into = folder / "matches" / f"{game}-{point['minutes']}"
        command = [str(program), "arena", "--game", game, player, OPPONENT, "--games", str(games), "--json", "--folder", str(into)]
        played = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1])
        pairing = played["pairings"][0]
        low, high = pairing["estimate"]["elo_interval"]
        score = {key: pairing[key] for key in ("wins", "draws", "losses")}
        points.append({**point, **score, "elo": pairing["estimate"]["elo"], "low": low, "high": high})
        print(json.dumps(points[-1]), flush=True)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures[game] = points
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


def draw() -> None:
    from matplotlib import pyplot

    pyplot.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "minuet", "font.size": 12}
    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for game, points in json.loads(FIGURES.read_text()).items():
        name, colour = GAMES[game]
        minutes = [point["minutes"] for point in points]
        # Without a lost game there is only a lower end of the interval, which is drawn with an arrow.
        elo = [point["low"] if point["elo"] is None else point["elo"] for point in points]
        high = [value if point["high"] is None else point["high"] for value, point in zip(elo, points)]
        axes.plot(minutes, elo, marker="o", color=colour, label=name)
        axes.fill_between(minutes, [point["low"] for point in points], high, color=colour, alpha=0.12, linewidth=0)
        open_ended = [(x, y) for x, y, point in zip(minutes, elo, points) if point["high"] is None]
        axes.plot([x for x, _ in open_ended], [y + 25 for _, y in open_ended], "^", color=colour)
    axes.axhline(0, color="#555555", linewidth=1)
    axes.set(xlabel="minutes of two cores, from nothing", ylabel="Elo over uniform UCT with ten times the visits", xlim=(0, MINUTES[-1] + 0.2))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "minuet")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("train", "match"):
        command = commands.add_parser(name)
        command.add_argument("game", choices=GAMES)
        command.add_argument("--folder", type=Path, required=True, help="folder of the runs")
        command.add_argument("--games", type=int, default=100, help="of each match (default: %(default)s)")
    commands.add_parser("draw")
    arguments = parser.parse_args()
    match arguments.command:
        case "train":
            train(arguments.program, arguments.game, arguments.folder)
        case "match":
            rate(arguments.program, arguments.game, arguments.folder, arguments.games)
        case _:
            draw()


if __name__ == "__main__":
    main()
