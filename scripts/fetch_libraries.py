#!/usr/bin/env python3
"""Fetch the two native libraries that Minuet links or loads: ONNX Runtime and libtorch.

Both come from Python wheels, pinned by version and SHA-256. The needed files go into the
user's cache, so that a second clone fetches nothing. `third_party/` holds links to them.
The Python package has this file too (`minuet.programs`), and fetches with it the library that is not installed.

    python3 scripts/fetch_libraries.py            # both
    python3 scripts/fetch_libraries.py ort        # ONNX Runtime only (all roles but the learner)
    python3 scripts/fetch_libraries.py --check    # report what is in the cache, fetch nothing

An interrupted download continues where it stopped. The wheels come from where pip takes packages: an index of its own
(PIP_INDEX_URL), or a folder with the pinned wheels (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER) for a machine without a network. Environment:
MINUET_CACHE   folder of the cache (default: $XDG_CACHE_HOME/minuet or ~/.cache/minuet); a copy of another machine's serves as well
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THIRD_PARTY = ROOT / "third_party"
ATTEMPTS = 5


@dataclass(frozen=True)
class Wheel:
    """One pinned wheel and the members of it that are kept: (prefix in the wheel, folder in the library)."""

    requirement: str
    sha256: str
    platform: str
    keep: tuple[tuple[str, str], ...]
    abi: str = "cp312"


@dataclass(frozen=True)
class Library:
    name: str
    version: str
    what_for: str
    wheels: tuple[Wheel, ...]
    # name -> content of files that no wheel holds
    written: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


_ORT = "onnxruntime/capi/"
_TORCH = "torch/lib/"

LIBRARIES = {
    "ort": Library(
        name="ort",
        version="1.24.1-openvino",
        what_for="ONNX Runtime with the OpenVINO provider (inference)",
        wheels=(
            Wheel(
                "onnxruntime-openvino==1.24.1",
                "d617fac2f59a6ab5ea59a788c3e1592240a129642519aaeaa774761dfe35150e",
                "manylinux_2_28_x86_64",
                tuple(
                    (_ORT + n, "lib")
                    for n in (
                        "libonnxruntime.so",
                        "libonnxruntime_providers_openvino.so",
                        "libonnxruntime_providers_shared.so",
                        "libopenvino.so",
                        "libopenvino_intel_cpu_plugin.so",
                        "libopenvino_onnx_frontend.so",
                        "libtbb.so.12",
                    )
                ),
            ),
        ),
        links=(("lib/libonnxruntime.so", "libonnxruntime.so.1.24.1"),),
    ),
    "libtorch": Library(
        name="libtorch",
        version="2.11.0",
        what_for="libtorch, CPU files only (the learner)",
        wheels=(
            Wheel(
                "torch==2.11.0",
                "0f68f4ac6d95d12e896c3b7a912b5871619542ec54d3649cf48cc1edd4dd2756",
                "manylinux_2_28_x86_64",
                (
                    (_TORCH + "libc10.so", "lib"),
                    (_TORCH + "libtorch_cpu.so", "lib"),
                    (_TORCH + "libgomp.so.1", "lib"),
                    ("torch/include/", "include"),
                ),
            ),
            Wheel(
                "nvidia-cuda-runtime==13.0.96",
                "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
                "manylinux2014_x86_64",
                (("nvidia/cu13/lib/libcudart.so.13", "lib"),),
                abi="none",
            ),
            Wheel(
                "nvidia-cuda-cupti==13.0.85",
                "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
                "manylinux_2_25_x86_64",
                (("nvidia/cu13/lib/libcupti.so.13", "lib"),),
                abi="none",
            ),
        ),
        # libtorch.so of the wheel needs every CUDA library; this linker script takes its place.
        written=(("lib/libtorch.so", "INPUT(-ltorch_cpu)\n"), ("build-version", "2.11.0\n")),
    ),
}


class SetupError(Exception):
    """A problem that the user can solve; the message tells how."""


def cache_folder() -> Path:
    if chosen := os.environ.get("MINUET_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "minuet"


def digest_of(library: Library) -> str:
    """Return a short digest of the pins, so that a new pin never uses old files."""
    text = json.dumps([[w.requirement, w.sha256, w.keep] for w in library.wheels] + [library.written, library.links])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def locate(wheel: Wheel) -> str:
    """Return the URL of the wheel, after checking that the index offers the pinned file."""
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
        "--ignore-installed", "--no-deps", "--only-binary=:all:", "--implementation", "cp",
        "--python-version", "3.12", "--abi", wheel.abi, "--platform", wheel.platform,
        "--target", tempfile.gettempdir(), "--report", "-", wheel.requirement,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupError(
            f"pip could not find {wheel.requirement}: {done.stderr.strip().splitlines()[-1] if done.stderr else 'no message'}\n"
            "  check the network and pip's index settings (python3 -m pip config list), then run this again"
        )
    found = json.loads(done.stdout)["install"][0]["download_info"]
    offered = found["archive_info"]["hashes"]["sha256"]
    if offered != wheel.sha256:
        raise SetupError(f"{wheel.requirement}: the index offers sha256 {offered}, pinned is {wheel.sha256}")
    return found["url"]


def show_progress(label: str, done: int, total: int, began: float, start: int, last: bool = False) -> None:
    rate = (done - start) / max(time.monotonic() - began, 0.001)
    share = f"{100 * done / total:5.1f} %" if total else "  ?   "
    text = f"  {label}: {share}  {done / 1e6:,.0f} of {total / 1e6:,.0f} MB  {rate / 1e6:.1f} MB/s"
    if sys.stderr.isatty():
        print("\r" + text + " " * 8, end="\n" if last else "", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def fetch_once(url: str, part: Path, label: str) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing left to fetch
            return
        raise
    with answer:
        if have and answer.status != 206:  # the server ignored the range: begin again
            have = 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        began, shown, done = time.monotonic(), 0.0, have
        pause = 0.2 if sys.stderr.isatty() else 10.0
        with part.open("ab" if have else "wb") as out:
            while block := answer.read(1 << 20):
                out.write(block)
                done += len(block)
                if time.monotonic() - shown > pause:
                    shown = time.monotonic()
                    show_progress(label, done, total, began, have)
        show_progress(label, done, total, began, have, last=True)
        if total and done < total:
            raise ConnectionError(f"the connection closed after {done} of {total} bytes")


def sha256_of(path: Path) -> str:
    sum_ = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            sum_.update(block)
    return sum_.hexdigest()


def download(wheel: Wheel, folder: Path) -> Path:
    whole = folder / f"{wheel.sha256}.whl"
    if whole.exists():
        return whole
    label = wheel.requirement.replace("==", " ")
    url = locate(wheel)
    part = whole.with_suffix(".part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            fetch_once(url, part, label)
            break
        except (OSError, urllib.error.URLError) as error:
            if getattr(error, "errno", None) == 28:
                raise SetupError(f"the disk is full while fetching {label} into {folder}; free some space and run this again") from error
            if attempt == ATTEMPTS:
                raise SetupError(f"fetching {label} failed {ATTEMPTS} times: {error}\n  run this again: it continues where it stopped") from error
            print(f"  {label}: {error}; trying again in {2**attempt} s", file=sys.stderr)
            time.sleep(2**attempt)
    found = sha256_of(part)
    if found != wheel.sha256:
        part.unlink()
        raise SetupError(f"{label}: sha256 is {found}, pinned is {wheel.sha256}; the file was removed, run this again")
    part.rename(whole)
    return whole


def unpack(wheel: Wheel, archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as zip_:
        for prefix, target in wheel.keep:
            members = [
                m for m in zip_.namelist()
                if (m.startswith(prefix) if prefix.endswith("/") else m == prefix or m.startswith(prefix + "."))
            ]  # fmt: skip
            if not members:
                raise SetupError(f"{wheel.requirement} holds no {prefix}")
            for member in members:
                inner = member[len(prefix):] if prefix.endswith("/") else Path(member).name
                if member.endswith("/"):
                    continue
                out = folder / target / inner
                out.parent.mkdir(parents=True, exist_ok=True)
                with zip_.open(member) as source, out.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)


def check_machine() -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise SetupError(f"the pinned libraries are for Linux on x86-64; this is {platform.system()} on {platform.machine()}")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        raise SetupError(f"{sys.executable} has no pip: install it (Debian, Ubuntu: apt install python3-pip), then run this again")


def folder_of(library: Library) -> Path:
    """Return the library's folder in the cache."""
    return cache_folder() / f"{library.name}-{library.version}-{digest_of(library)}"


def is_fetched(library: Library) -> bool:
    """True if the library's folder is in the cache."""
    return (folder_of(library) / ".complete").exists()


def fetch(library: Library) -> Path:
    """Make the library's folder in the cache, complete or not at all, unless it is there. Return it."""
    cache = cache_folder()
    final = folder_of(library)
    stamp = final / ".complete"
    if not stamp.exists():
        check_machine()
        print(f"{library.what_for} {library.version}: fetching into {cache} (once)", file=sys.stderr)
        wheels = cache / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        with (cache / f".{library.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another clone may fetch it at the same time
            if not stamp.exists():
                fresh = Path(tempfile.mkdtemp(prefix=f".{library.name}-", dir=cache))
                try:
                    archives = [download(w, wheels) for w in library.wheels]
                    print(f"  unpacking {library.name}", file=sys.stderr)
                    for wheel, archive in zip(library.wheels, archives):
                        unpack(wheel, archive, fresh)
                    for name, content in library.written:
                        (fresh / name).write_text(content)
                    for name, target in library.links:
                        if not (fresh / name).exists():
                            (fresh / name).symlink_to(target)
                    (fresh / ".complete").write_text(library.version + "\n")
                    if final.exists():
                        shutil.rmtree(final)
                    fresh.rename(final)
                    for archive in archives:
                        archive.unlink()
                finally:
                    if fresh.exists():
                        shutil.rmtree(fresh)
    return final


def install(library: Library, check_only: bool) -> bool:
    """Fetch the library and link it into the clone. Return True if it exists."""
    if check_only and not is_fetched(library):
        return False
    final = fetch(library)
    THIRD_PARTY.mkdir(exist_ok=True)
    link = THIRD_PARTY / library.name
    if link.is_symlink() and link.resolve() == final.resolve():
        return True
    if link.is_symlink():
        link.unlink()
    elif link.exists():
        raise SetupError(f"{link} exists and is not a link: move it away and run this again")
    link.symlink_to(final)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="*", choices=[[], *LIBRARIES], help="what to fetch (default: all)")
    parser.add_argument("--check", action="store_true", help="only report what is in the cache")
    arguments = parser.parse_args()
    try:
        missing = False
        for name in arguments.library or LIBRARIES:
            there = install(LIBRARIES[name], arguments.check)
            missing |= not there
            if arguments.check:
                print(f"{name} {LIBRARIES[name].version}: {'present' if there else 'missing'}")
        return 1 if missing else 0
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run it again to continue", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
