#!/usr/bin/env python3
"""Build the wheel, install it into a clean virtual environment and run the tests of the Python package there.

    python3 scripts/test_python.py             # builds the wheel with `make wheel`
    python3 scripts/test_python.py --wheel W   # tests this wheel

The new environment has the wheel, and sees the packages of scripts/python/minuet.txt. MINUET_PROGRAMS names the folder of the
roles' programs, which some tests start (default: target/release).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import python_env

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "target" / "wheels"


def build() -> Path:
    """Build the wheel and return its path."""
    subprocess.run(["make", "--no-print-directory", "wheel"], cwd=ROOT, check=True)
    (wheel,) = WHEELS.glob("minuet-*.whl")
    return wheel


def environment(folder: Path, python: Path, wheel: Path, others: Path) -> Path:
    """Make a clean environment in `folder` with the wheel, which sees the packages of the environment of `others` too. Return its
    interpreter. `python` has pip."""
    venv.create(folder, with_pip=False)
    own = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "--python", str(own), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    site = next((others.parent.parent / "lib").glob("python*/site-packages"))
    packages = next((folder / "lib").glob("python*/site-packages"))
    # Files of the kind .pth count in folders that `site` adds.
    (packages / "others.pth").write_text(f"import site; site.addsitedir({str(site)!r})\n")
    return own


def test(python: Path, wheel: Path) -> int:
    """Run the tests with the wheel in a clean environment. Return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        own = environment(Path(folder) / "clean", python, wheel, python)
        package = next(own.parent.parent.glob("lib/python*/site-packages/minuet"))
        # The libraries of others have no types, or few.
        lenient = ["--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-calls", "--no-warn-return-any"]
        command = [str(own), "-m", "mypy", "--strict", "--follow-imports=silent", *lenient, str(package)]
        typed = subprocess.run(command, cwd=folder).returncode
        # The native module's list of its own names is not a part of the types.
        allowed = Path(folder) / "allowed"
        allowed.write_text("minuet._minuet.__all__\n")
        command = [str(own), "-P", "-m", "mypy.stubtest", "--concise", "--allowlist", str(allowed), "minuet._minuet"]
        typed = subprocess.run(command, cwd=folder).returncode or typed
        command = [str(own), "-P", "-m", "unittest", "discover", "-s", str(ROOT / "python" / "tests"), "-t", str(ROOT / "python" / "tests")]
        return subprocess.run(command, cwd=folder).returncode or typed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="test this wheel and build none")
    arguments = parser.parse_args()
    try:
        python = python_env.interpreter("minuet")
    except python_env.Unreachable as error:
        reason = f"the Python package was not tested: {error}"
        if os.environ.get("MINUET_FORBID_SKIPS") == "1":
            sys.exit(reason)
        if "MINUET_SKIPS" in os.environ:
            with open(os.environ["MINUET_SKIPS"], "a") as skips:
                skips.write(reason + "\n")
        return 0
    return test(python, arguments.wheel or build())


if __name__ == "__main__":
    sys.exit(main())
