#!/usr/bin/env python3
"""Make a Python environment for tests that use programs of others as clients.

    python3 scripts/python_env.py chess      # prints the path of an interpreter that has scripts/python/chess.txt

Environments lie in the user's cache, one for each content of a requirements file, so that a second clone, and a
second run without a network, fetch nothing. A line `# without its dependencies: PACKAGE` installs a package alone; PyTorch
then finds empty libraries in place of those for GPUs, which it needs on machines with GPUs only. Exit code 3: the environment is not in the cache, and the package index cannot
be reached or python3 makes no environments (Debian and Ubuntu: package python3-venv). A test then counts as skipped.

MINUET_CACHE   folder of the cache (default: $XDG_CACHE_HOME/minuet or ~/.cache/minuet)
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from fetch_libraries import cache_folder

REQUIREMENTS = Path(__file__).resolve().parent / "python"
UNREACHABLE = 3
ALONE = "# without its dependencies: "


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
    pip_install(folder, "--requirement", str(requirements))
    alone = [line.removeprefix(ALONE) for line in requirements.read_text().splitlines() if line.startswith(ALONE)]
    if alone:
        pip_install(folder, "--no-deps", *alone)
        for libraries in folder.glob("lib/python*/site-packages/torch/lib"):
            replace_gpu_libraries(libraries)
    (folder / ".complete").touch()


def pip_install(folder: Path, *arguments: str) -> None:
    """Install packages into the environment, or remove it and raise Unreachable."""
    command = [
        str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *arguments,
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, stdout=sys.stderr, stderr=errors)
        errors.seek(0)
        output = errors.read().strip()
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = output.splitlines()[-1] if output else "pip gave no message"
        raise Unreachable(f"its packages cannot be fetched: {last}")


def replace_gpu_libraries(libraries: Path) -> None:
    """Put an empty library in place of each one for GPUs that PyTorch's libraries name and that is not there. Their functions are
    never called without a GPU, and the interpreter is told to look functions up at their first call."""
    site = libraries.parent.parent
    there = {path.name for path in [*libraries.iterdir(), *site.glob("nvidia/**/*.so*")]}
    named = set()
    for library in libraries.glob("*.so"):
        # Names of needed libraries are in the file as C strings.
        named |= set(re.findall(rb"\0(lib(?:cu(?!da\.)|nccl|nv)[A-Za-z_]*\.so\.\d+)(?=\0)", library.read_bytes()))
    for name in sorted(name.decode() for name in named):
        if name not in there:
            command = ["cc", "-shared", "-x", "c", "/dev/null", "-o", str(libraries / name), f"-Wl,-soname,{name}"]
            subprocess.run(command, check=True)
    (site / "late_binding.pth").write_text("import os, sys; sys.setdlopenflags(os.RTLD_LAZY)\n")


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
