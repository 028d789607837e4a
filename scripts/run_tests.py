#!/usr/bin/env python3
"""Run commands of tests one after the other, and print at the end which failed and what was skipped.

    python3 scripts/run_tests.py --command 'python3 -m unittest discover -s scripts/tests' --command 'cargo test'

Every command runs, also after one that failed. A test that cannot run on this machine adds a line to the file that the
variable MINUET_SKIPS names; this script makes that file and prints its lines last. Exit code: 0 if all commands
succeeded, 1 if one failed. With MINUET_FORBID_SKIPS=1, as in CI, a skipped test fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", action="append", required=True, help="a command line for the shell")
    commands = parser.parse_args().command
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "skips"
        file.touch()
        environment = {**os.environ, "MINUET_SKIPS": str(file)}
        failed = [command for command in commands if subprocess.run(command, shell=True, env=environment).returncode != 0]
        skips = file.read_text().splitlines()
    print(f"\ntests: {time.monotonic() - began:.0f} s, {len(failed)} of {len(commands)} commands failed, {len(skips)} skipped")
    for line in skips:
        print(f"  skipped: {line}")
    for command in failed:
        print(f"  failed: {command}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
