#!/usr/bin/env python3
"""Fetch NVIDIA's perf_analyzer, a load generator for servers of the Open Inference Protocol.

    python3 scripts/perf_analyzer.py         # prints the path of a launcher

Its last public binary that runs on Debian 12 is part of the wheel of tritonclient 2.49.0 (the package of its own name on
PyPI is empty). It needs two libraries next to it: libcudart, from a wheel, and libb64, from Debian. All three are kept in the
user's cache and fetched once. Exit code 3: perf_analyzer is not in the cache and cannot be fetched. A test then
counts as skipped.

MINUET_CACHE   folder of the cache (default: $XDG_CACHE_HOME/minuet or ~/.cache/minuet)
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from debian_program import Unreachable, run
from python_env import UNREACHABLE, cache_folder

VERSION = "2.49.0"
# (requirement, platform, sha256, member, place in the folder)
WHEELS = [
    (
        f"tritonclient=={VERSION}",
        "manylinux1_x86_64",
        "e7b40ba11056c93da434bc8a8b302c0a337489923a0a747c5d313314baa26db3",
        f"tritonclient-{VERSION}.data/data/bin/perf_analyzer",
        "bin/perf_analyzer",
    ),
    (
        "nvidia-cuda-runtime-cu12==12.4.127",
        "manylinux2014_x86_64",
        "64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5",
        "nvidia/cuda_runtime/lib/libcudart.so.12",
        "lib/libcudart.so.12",
    ),
]
DEBIAN_PACKAGE = "libb64-0d"


def fetch_wheels(scratch: Path, folder: Path) -> None:
    for requirement, platform, sha256, member, target in WHEELS:
        wheels = scratch / requirement.partition("=")[0]
        wheels.mkdir()
        run(
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", "--platform", platform, "--dest", str(wheels), requirement,
            folder=scratch,
        )  # fmt: skip
        (wheel,) = wheels.iterdir()
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != sha256:
            sys.exit(f"perf_analyzer: {wheel.name}: sha256 is {found}, pinned is {sha256}")
        out = folder / target
        out.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, out.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        out.chmod(0o755)


def fetch_debian(scratch: Path, folder: Path) -> None:
    """apt checks the package's signature itself."""
    run("apt-get", "download", DEBIAN_PACKAGE, folder=scratch)
    (package,) = scratch.glob("*.deb")
    run("dpkg-deb", "--extract", str(package), "package", folder=scratch)
    for library in scratch.glob("package/usr/lib/*/libb64.so.*"):
        shutil.copy(library, folder / "lib")


def launcher() -> Path:
    folder = cache_folder() / f"perf_analyzer-{VERSION}"
    start = folder / "perf_analyzer"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".perf_analyzer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if start.exists():
            return start
        print(f"perf_analyzer: fetching {VERSION} into {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with tempfile.TemporaryDirectory() as scratch:
            fetch_wheels(Path(scratch), folder)
            fetch_debian(Path(scratch), folder)
        # Written last: if the launcher exists, all other files do.
        text = '#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH="$here/lib" exec "$here/bin/perf_analyzer" "$@"\n'
        whole = folder / "launcher"
        whole.write_text(text)
        whole.chmod(0o755)
        whole.rename(start)
    return start


def main() -> int:
    try:
        print(launcher())
    except Unreachable as error:
        print(f"perf_analyzer: cannot be fetched: {error}", file=sys.stderr)
        return UNREACHABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
