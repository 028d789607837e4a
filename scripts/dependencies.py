"""The crates that Minuet is built from: what Cargo.lock and `cargo metadata` say about them. Needs Python 3.11 (tomllib)."""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = "x86_64-unknown-linux-gnu"


@dataclass(frozen=True)
class Locked:
    """A package in Cargo.lock. A member of the workspace has no source and no checksum."""

    name: str
    version: str
    source: str | None
    checksum: str | None


def locked(text: str) -> list[Locked]:
    """Read the text of Cargo.lock."""
    return [
        Locked(package["name"], package["version"], package.get("source"), package.get("checksum"))
        for package in tomllib.loads(text)["package"]
    ]


def metadata() -> dict:
    """Return what cargo says about the packages for Linux, with all features."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", PLATFORM]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(ran.stdout)
