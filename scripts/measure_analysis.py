#!/usr/bin/env python3
"""Compare minuet analyze with self-play and with minuet query, on the shipped network of Paco Ŝako.

    python3 scripts/measure_analysis.py [ROUNDS]     # one JSON object; needs target/release/minuet and minuet-bench

Rounds alternate, and evaluations are divided by the processor time of both sides, so that other work on the machine counts little.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

MINUET = "target/release/minuet"
GAME = "paco-sako"
SECONDS = 15
AT_ONCE = 64


def self_play() -> tuple[float, float]:
    """Return fresh evaluations a second, and a second of processor time."""
    command = [MINUET, "bench", "selfplay", "--game", GAME, "--model", f"networks/{GAME}", "--visits", "200"]
    command += ["--seconds", str(SECONDS), "--warm-up", "4", "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(printed)
    fresh = found["fresh_evaluations_per_second"]
    return fresh, fresh / (found["actor_cores"] + found["inference_cores"] + found["replay_cores"])


def positions(count: int) -> list[list[int]]:
    """Return the actions of games whose moves are drawn."""
    draws = random.Random(1)
    rules = subprocess.Popen([MINUET, "rules"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    games = []
    for _ in range(count):
        actions: list[int] = []
        for _ in range(draws.randrange(2, 30)):
            print(json.dumps({"id": 1, "game": GAME, "actions": actions, "dead_end": "forbid"}), file=rules.stdin)
            answer = json.loads(rules.stdout.readline())
            if answer["outcome"] or not answer["legal"]:
                break
            actions.append(draws.choice(answer["legal"]))
        games.append(actions)
    rules.stdin.close()
    rules.wait()
    return games


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def analysis(games: list[list[int]]) -> tuple[float, float]:
    """Return the same with 64 queries of 200 visits at once."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([MINUET, "analyze", "--game", GAME], **pipes) as engine:
        for number, moves in enumerate(games):
            query = {"id": number, "moves": moves, "visits": 200, "lines": 1}
            if number < AT_ONCE:
                print(json.dumps(query), file=engine.stdin)
                continue
            answer = json.loads(engine.stdout.readline())
            print(json.dumps(query), file=engine.stdin)
            if number == 2 * AT_ONCE:
                began, used, fresh = time.monotonic(), processor_seconds(engine.pid), 0
            elif number > 2 * AT_ONCE:
                fresh += answer.get("fresh", 0)
                if time.monotonic() - began > SECONDS:
                    break
        took, used = time.monotonic() - began, processor_seconds(engine.pid) - used
        engine.kill()
    return fresh / took, fresh / used


def seconds(command: list[str], text: str = "") -> float:
    began = time.monotonic()
    subprocess.run(command, input=text, text=True, capture_output=True, check=True)
    return time.monotonic() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    asked = json.dumps({"id": 1, "moves": ["e2 e4"], "visits": 100}) + "\n"
    query = [MINUET, "query", GAME, "--visits", "100", "e2 e4"]
    analyze = [MINUET, "analyze", "--game", GAME]
    seconds(query), seconds(analyze, asked)  # Choices of the provider are measured once.
    alone = [(seconds(query), seconds(analyze, asked)) for _ in range(5 * rounds)]
    games = positions(3000)
    pairs = [(self_play(), analysis(games)) for _ in range(rounds)]
    median = lambda pairs, place: statistics.median(pair[place] for pair in pairs)
    print(json.dumps({
        "self_play": [round(statistics.median(one[at] for one, _ in pairs)) for at in (0, 1)],
        "analysis": [round(statistics.median(two[at] for _, two in pairs)) for at in (0, 1)],
        "ratio": [round(statistics.median(two[at] / one[at] for one, two in pairs), 3) for at in (0, 1)],
        "query_seconds": round(median(alone, 0), 3),
        "analyze_seconds": round(median(alone, 1), 3),
        "ratio_alone": round(statistics.median(two / one for one, two in alone), 3),
    }))


if __name__ == "__main__":
    main()
