#!/usr/bin/env python3
"""Pack the wheel: the Python package, the programs of all roles, the networks that come with Minuet. Needs Python 3.11 (tomllib).

    python3 scripts/wheel.py            # from target/release into target/wheels; prints the wheel's path
    python3 scripts/wheel.py --programs FOLDER --out FOLDER

It compiles nothing: `make wheel` does that before. The wheel's tag names the oldest glibc that its programs run with, which is that of
the system where they were built, or older. The same files give the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Programs of the wheel. The other roles are commands of `minuet`, and scripts start them: four copies of what they share would be
#: half of the wheel.
PROGRAMS = ("minuet", "minuet-learner")
ROLES = ("actor", "inference-server", "replay-store")
SCRIPT = '#!/bin/sh\nexec "$(dirname "$0")/minuet" {role} "$@"\n'


def project() -> dict[str, dict]:
    """Return what python/wheel.toml says, with the version of the workspace."""
    found = tomllib.loads((ROOT / "python" / "wheel.toml").read_text())["project"]
    return found | {"version": version()}


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def metadata(described: dict) -> str:
    """Return the text of METADATA."""
    lines = [
        "Metadata-Version: 2.4", f"Name: {described['name']}", f"Version: {described['version']}",
        f"Summary: {described['description']}", f"License-Expression: {described['license']}", "License-File: LICENSE",
        f"Requires-Python: {described['requires-python']}",
        *(f"Requires-Dist: {needed}" for needed in described["dependencies"]),
    ]  # fmt: skip
    for extra, needed in described["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {each} ; extra == '{extra}'" for each in needed)]
    return "\n".join([*lines, ""])


def oldest_glibc(programs: list[Path]) -> str:
    """Return the version of glibc that the newest of the programs' symbols needs, e.g. 2.31."""
    minors = {int(minor) for path in programs for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", path.read_bytes())}
    if not minors:
        sys.exit(f"wheel: {programs[0]} does not name a version of glibc; build the programs for Linux with glibc")
    return f"2.{max(minors)}"


def gathered(programs: Path, package: Path, folder: Path) -> list[Path]:
    """Copy all files of the package into `folder`, programs stripped. Return the native ones."""
    hidden = shutil.ignore_patterns("__pycache__", "bin", "networks", "*.so")
    shutil.copytree(package, folder, ignore=hidden)
    shutil.copytree(ROOT / "networks", folder / "networks")
    (folder / "bin").mkdir()
    native = []
    for source, target in [("lib_minuet.so", "_minuet.abi3.so"), *((name, f"bin/{name}") for name in PROGRAMS)]:
        if not (programs / source).is_file():
            sys.exit(f"wheel: there is no {programs / source}; run `make wheel`, which builds it")
        subprocess.run(["strip", "-o", str(folder / target), str(programs / source)], check=True)
        native.append(folder / target)
    for role in ROLES:
        script = folder / "bin" / f"minuet-{role}"
        script.write_text(SCRIPT.format(role=role))
        script.chmod(0o755)
    return native


def pack(files: dict[str, bytes], programs: set[str], record: str, out: Path) -> None:
    """Write the wheel. `programs` are names of files that may be executed, `record` is the name of the list of all files."""
    lines = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in [*sorted(files), record]:
            content = files.get(name, b"")
            if name == record:
                content = "".join([*lines, f"{record},,\n"]).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (stat.S_IFREG | (0o755 if name in programs else 0o644)) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)


def build(programs: Path, out: Path) -> Path:
    """Pack the wheel into `out` and return its path."""
    described = project()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "minuet"
        native = gathered(programs, ROOT / "python" / "minuet", folder)
        files = {str(path.relative_to(scratch)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        executable = {str(path.relative_to(scratch)) for path in (folder / "bin").iterdir()}
        tag = f"cp311-abi3-manylinux_{oldest_glibc(native).replace('.', '_')}_x86_64"
    about = f"minuet-{described['version']}.dist-info"
    scripts = [f"{name} = {target}\n" for name, target in described["scripts"].items()]
    files |= {
        f"{about}/METADATA": metadata(described).encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: scripts/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{about}/entry_points.txt": "".join(["[console_scripts]\n", *scripts]).encode(),
        f"{about}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("minuet-*.whl"):
        old.unlink()
    wheel = out / f"minuet-{described['version']}-{tag}.whl"
    pack(files, executable, f"{about}/RECORD", wheel)
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target" / "release", help="folder of what cargo has built")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "wheels")
    arguments = parser.parse_args()
    print(build(arguments.programs, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
