#!/usr/bin/env python3
"""Find a program that Debian packages, or fetch it without installing it.

    python3 scripts/debian_program.py kubectl       # prints the path of a kubectl

A program on the PATH is taken. Otherwise the package is fetched with apt, which checks its signature, and unpacked into the
user's cache; nothing is installed. Exit code 3: the program is not there and cannot be fetched. A test then counts as
skipped.

MINUET_CACHE   folder of the cache (default: $XDG_CACHE_HOME/minuet or ~/.cache/minuet)
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from python_env import UNREACHABLE, cache_folder

# Name: package, and the program's place in the package. All are static or need the C library alone, or are scripts.
PROGRAMS = {
    "debootstrap": ("debootstrap", "usr/sbin/debootstrap"),
    "gnugo": ("gnugo", "usr/games/gnugo"),
    "kubectl": ("kubernetes-client", "usr/bin/kubectl"),
    "prometheus": ("prometheus", "usr/bin/prometheus"),
    "promtool": ("prometheus", "usr/bin/promtool"),
}


class Unreachable(Exception):
    """The program is neither installed nor can be fetched."""


def run(*command: str, folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Unreachable(f"there is no {command[0]} here") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Unreachable(lines[-1] if lines else f"{command[0]} gave no message")


def fetch(package: str, folder: Path) -> None:
    """Unpack `package` into `folder`, which appears only when it is complete."""
    print(f"debian_program: fetching {package} into {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        # apt gives up its privileges for a download, and then could not write into a folder of this user.
        run("apt-get", "download", "-o", "APT::Sandbox::User=root", package, folder=Path(scratch))
        (file,) = Path(scratch).glob("*.deb")
        run("dpkg-deb", "--extract", str(file), "unpacked", folder=Path(scratch))
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "unpacked").rename(folder)


def program(name: str) -> Path:
    """Return the path of a program, fetched if it is not installed."""
    # Debian keeps programs of administrators, and for some users games, out of the PATH.
    if found := shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin:/usr/games"):
        return Path(found)
    package, place = PROGRAMS[name]
    folder = cache_folder() / "debian" / package
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / place).exists():
            fetch(package, folder)
    return folder / place


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(PROGRAMS))
    name = parser.parse_args().name
    try:
        print(program(name))
    except Unreachable as error:
        print(f"debian_program: {name} cannot be fetched: {error}", file=sys.stderr)
        return UNREACHABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
