#!/usr/bin/env python3
"""Run a command until it and its descendants have used some processor time, then interrupt it (SIGINT) and wait for its end.

    python3 scripts/processor_seconds.py 1200 python -m minuet up "openspiel:oware"
    python3 scripts/processor_seconds.py 1200 python -m open_spiel.python.examples.alpha_zero --game oware --path DIR --evaluators 0 --max_steps 0

A budget in processor time gives the same training on a busy machine as on a quiet one, only later. Two cores have 120 s in a minute. The
exit status is that of the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


class Spent:
    """Processor time of a process and its descendants, those that have ended included."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.seconds: dict[int, float] = {}

    def now(self) -> float:
        ticks = os.sysconf("SC_CLK_TCK")
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            found[int(folder.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks)
        for number, (parent, seconds) in found.items():
            while parent != self.root and parent in found:
                parent = found[parent][0]
            if self.root in (number, parent):
                self.seconds[number] = seconds
        return sum(self.seconds.values())


def spend(command: list[str], limit: float, output: int | None = None) -> Iterator[float]:
    """Run a command and yield the processor seconds that it has used, twice a second, until they reach `limit` or the command ends.

    Raises `subprocess.CalledProcessError` if the command fails."""
    process = subprocess.Popen(command, stdout=output)
    spent = Spent(process.pid)
    while process.poll() is None:
        yield (seconds := spent.now())
        if seconds >= limit:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.5)
    if status := process.wait():
        raise subprocess.CalledProcessError(status, command)


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    try:
        for _ in spend(sys.argv[2:], float(sys.argv[1])):
            pass
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode if error.returncode > 0 else 128 - error.returncode)


if __name__ == "__main__":
    main()
