#!/usr/bin/env python3
"""Count the lines of Rust by crate: code, tests, comments.

    python3 scripts/count_lines.py            # prints a table; its last line is the sum
    python3 scripts/count_lines.py games      # of these crates only

Blank lines are not counted. Tests are files in a folder `tests` or named `tests.rs`, the crates `test-support` and `deploy`, and
everything after the first line `#[cfg(test)]` of another file.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("files", "code", "tests", "comments")


def count(path: str, text: str) -> dict[str, int]:
    """Return the number of lines of each kind in a file. `path` is relative to the root."""
    is_test = "/tests/" in path or path.endswith("tests.rs") or path.startswith(("test-support/", "deploy/"))
    lines = dict.fromkeys(KINDS, 0) | {"files": 1}
    for line in map(str.strip, text.splitlines()):
        is_test = is_test or line.startswith("#[cfg(test)]")
        if line.startswith("//"):
            lines["comments"] += 1
        elif line:
            lines["tests" if is_test else "code"] += 1
    return lines


def main() -> None:
    names = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    crates: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    for name in names:
        crate = name.split("/")[0]
        if (ROOT / name).exists() and crate in (sys.argv[1:] or [crate]):
            for kind, number in count(name, (ROOT / name).read_text()).items():
                crates[crate][kind] += number
    rows = sorted(crates.items(), key=lambda entry: -entry[1]["code"])
    rows.append(("sum", {kind: sum(counts[kind] for counts in crates.values()) for kind in KINDS}))
    for crate, counts in rows:
        print(f"{crate:17}" + "".join(f"  {kind} {counts[kind]:6}" for kind in KINDS))


if __name__ == "__main__":
    main()
