#!/usr/bin/env python3
"""Measure what open pages of the studio cost a run at work.

    python3 scripts/studio_cost.py --rounds 5 --seconds 30 -- target/release/minuet up --game connect-four --run target/studio-cost

The run is started, and after a pause the script opens three overviews, closes them, and so on. It prints the visits of self-play per
second with and without the pages, the median of the rounds' ratios, and the studio's share of the machine's processor time meanwhile.
Each round measures closed, open, closed, and compares with the mean of the two, so that a network that grows slower or faster counts
little. Other work on the machine disturbs the ratio, but not the share.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

#: Time that a run gets to reach its usual speed, in seconds.
WARM_UP = 30.0
TICKS = os.sysconf("SC_CLK_TCK")
PAGES = 3


class Tab:
    """An open page: its stream of changes is read until it is closed."""

    def __init__(self, site: str) -> None:
        page = urllib.request.urlopen(site).read().decode()
        (live,) = set(re.findall(r'data-live="([^"]+)"', page))
        self.stream = urllib.request.urlopen(site.rstrip("/") + live)
        self.bytes = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        try:
            while line := self.stream.readline():
                self.bytes += len(line)
        except (OSError, ValueError, AttributeError):
            # The page was closed during the read.
            pass

    def close(self) -> None:
        self.stream.close()


def visits(folder: Path) -> float:
    """Return the visits of all actors since their start."""
    members = json.loads((folder / "addresses.json").read_text())["members"]
    total = 0.0
    for member in members:
        if member["role"] == "actor":
            page = urllib.request.urlopen(f"http://{member['metrics']}/metrics").read().decode()
            total += sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith("minuet_actor_visits_total"))
    return total


def studio_of(launcher: int) -> int:
    """Return the process id of the studio that the launcher has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int(re.search(r"PPid:\s+(\d+)", (folder / "status").read_text()).group(1))
        except (OSError, AttributeError):
            continue
        if parent == launcher and b"studio" in arguments:
            return int(folder.name)
    raise SystemExit("studio_cost: the run has no studio")


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(folder: Path, studio: int, seconds: float) -> tuple[float, float]:
    """Return visits per second, and the studio's share of all cores."""
    began, before, worked = time.monotonic(), visits(folder), cpu_seconds(studio)
    time.sleep(seconds)
    passed = time.monotonic() - began
    share = (cpu_seconds(studio) - worked) / passed / (os.cpu_count() or 1)
    return (visits(folder) - before) / passed, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of each measurement")
    parser.add_argument("command", nargs="+", help="`minuet up` with --run")
    arguments = parser.parse_args()
    folder = Path(arguments.command[arguments.command.index("--run") + 1])
    run = subprocess.Popen([*arguments.command, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        site = next(found.group() for line in run.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
        threading.Thread(target=lambda: [None for _ in run.stdout], daemon=True).start()
        time.sleep(WARM_UP)
        studio = studio_of(run.pid)
        ratios, shares, idle = [], [], []
        for number in range(arguments.rounds):
            closed, share = measure(folder, studio, arguments.seconds)
            idle.append(share)
            tabs = [Tab(site) for _ in range(PAGES)]
            opened, share = measure(folder, studio, arguments.seconds)
            received = sum(tab.bytes for tab in tabs)
            for tab in tabs:
                tab.close()
            again, _ = measure(folder, studio, arguments.seconds)
            ratios.append(opened / ((closed + again) / 2))
            shares.append(share)
            print(json.dumps({
                "round": number, "closed_visits_per_second": [closed, again], "open_visits_per_second": opened,
                "ratio": ratios[-1], "studio_cpu_share": share, "bytes_per_second": received / arguments.seconds,
            }), flush=True)  # fmt: skip
        print(json.dumps({
            "ratio": statistics.median(ratios), "studio_cpu_share": statistics.median(shares),
            "studio_cpu_share_closed": statistics.median(idle),
        }))  # fmt: skip
    finally:
        run.send_signal(signal.SIGINT)
        run.wait()


if __name__ == "__main__":
    main()
