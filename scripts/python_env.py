#!/usr/bin/env python3
"""Make a Python environment for tests that use programs of others as clients.

    python3 scripts/python_env.py chess      # prints the path of an interpreter that has scripts/python/chess.txt

Environments lie in the user's cache, one for each content of a requirements file, so that a second clone, and a
second run without a network, fetch nothing. Exit code 3: the environment is not in the cache, and the package index cannot
be reached or python3 makes no environments (Debian and Ubuntu: package python3-venv). A test then counts as skipped.

MINUET_CACHE   folder of the cache (default: $XDG_CACHE_HOME/minuet or ~/.cache/minuet)
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from fetch_libraries import cache_folder

REQUIREMENTS = Path(__file__).resolve().parent / "python"
UNREACHABLE = 3


class Unreachable(Exception):
    """The environment is neither in the cache nor can be fetched."""


def folder_for(name: str, requirements: str) -> Path:
    """Return the folder of an environment; it depends on the interpreter and on the list of packages."""
    digest = hashlib.sha256(f"{sys.version}\n{requirements}".encode()).hexdigest()[:12]
    return cache_folder() / "python" / f"{name}-{digest}"


def install(folder: Path, requirements: Path) -> None:
    """Make the environment in `folder`, which a virtual environment cannot leave later. The file .complete, written last,
    marks a complete one."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
    except subprocess.CalledProcessError as error:
        # Without ensurepip, which Debian keeps in another package, the new interpreter gets no pip.
        shutil.rmtree(folder, ignore_errors=True)
        raise Unreachable(f"python3 makes no virtual environment here; install python3-venv ({error})") from error
    command = [
        str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-input", "--requirement", str(requirements),
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, stdout=sys.stderr, stderr=errors)
        errors.seek(0)
        output = errors.read().strip()
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = output.splitlines()[-1] if output else "pip gave no message"
        raise Unreachable(f"its packages cannot be fetched: {last}")
    (folder / ".complete").touch()


def interpreter(name: str) -> Path:
    requirements = REQUIREMENTS / f"{name}.txt"
    if not requirements.is_file():
        known = ", ".join(sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))
        sys.exit(f"python_env: there is no {requirements}; there are: {known}")
    folder = folder_for(name, requirements.read_text())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            print(f"python_env: fetching what scripts/python/{name}.txt names", file=sys.stderr)
            install(folder, requirements)
    return folder / "bin" / "python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a file in scripts/python, without .txt")
    name = parser.parse_args().name
    try:
        print(interpreter(name))
    except Unreachable as error:
        print(f"python_env: the environment of scripts/python/{name}.txt cannot be made: {error}", file=sys.stderr)
        return UNREACHABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
