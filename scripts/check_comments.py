#!/usr/bin/env python3
"""Flag Rust doc comments that cannot be understood alone, because they open with a pronoun or a question word.

An editor shows a doc comment without the code around it. "Whether it is." says nothing there; "True if the queue
is full." does. A comment should open with a subject or a verb: "Returns …", "Number of …", "True if …", "Error: …".

    python3 scripts/check_comments.py              # print every hit as PATH:LINE: TEXT
    python3 scripts/check_comments.py --count      # print a table: hits by crate
    python3 scripts/check_comments.py proto onnx   # these folders only

Comments that must open with such a word are listed in scripts/comment_exceptions.txt, each with its reason.
Exit code: 1 if there is a hit (0 while ENFORCED is False), 2 if the list of exceptions is wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# True: a hit is an error. False: hits are counted, and the exit code is 0.
ENFORCED = True

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = Path(__file__).resolve().parent / "comment_exceptions.txt"

OPENINGS = (
    "It", "Its", "They", "Them", "Their", "The same", "What", "Whether", "Who", "How", "Where", "So many", "As it", "Same",
)  # fmt: skip
_OPENING = re.compile(r"(?:" + "|".join(sorted(map(re.escape, OPENINGS), key=len, reverse=True)) + r")\b")
# A line of a doc comment, and its text. Four slashes are an ordinary comment.
_DOC_LINE = re.compile(r"^\s*(///(?!/)|//!)(.*)$")


class ListError(Exception):
    """The list of exceptions has a line that is malformed or matches nothing."""


@dataclass(frozen=True)
class Hit:
    path: str
    line: int
    text: str

    @property
    def crate(self) -> str:
        return self.path.split("/", 1)[0]


def first_lines(source: str) -> list[tuple[int, str]]:
    """Return the first line of each doc comment in `source`: its line number (from 1) and its text without the slashes."""
    found = []
    kind_before, is_open = None, False
    for number, line in enumerate(source.splitlines(), 1):
        match = _DOC_LINE.match(line)
        kind = match[1] if match else None
        if kind != kind_before:
            is_open = kind is not None
        kind_before = kind
        if match and is_open and match[2].strip():
            found.append((number, match[2].strip()))
            is_open = False
    return found


def hits_in(path: str, source: str) -> list[Hit]:
    return [Hit(path, line, text) for line, text in first_lines(source) if _OPENING.match(text)]


def read_exceptions(text: str) -> dict[tuple[str, str], str]:
    """Read lines of the form `path | beginning of the comment | reason`; return the reasons by path and beginning."""
    exceptions = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise ListError(f"line {number}: expected `path | beginning of the comment | reason`")
        exceptions[parts[0], parts[1]] = parts[2]
    return exceptions


def without_exceptions(hits: list[Hit], exceptions: dict[tuple[str, str], str]) -> list[Hit]:
    """Return the hits that no exception covers. An exception that covers no hit is an error, so that the list stays short."""
    used = set()
    kept = []
    for hit in hits:
        covering = [key for key in exceptions if key[0] == hit.path and hit.text.startswith(key[1])]
        used.update(covering)
        if not covering:
            kept.append(hit)
    for path, beginning in exceptions:
        if (path, beginning) not in used:
            raise ListError(f"no doc comment of {path} begins with `{beginning}`: remove the exception")
    return kept


def rust_files(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*.rs"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return sorted(path for path in listed.stdout.split("\0") if path and (root / path).is_file())


def table(hits: list[Hit]) -> str:
    counts = Counter(hit.crate for hit in hits)
    width = max(map(len, [*counts, "total"]))
    rows = [*sorted(counts.items(), key=lambda row: (-row[1], row[0])), ("total", len(hits))]
    return "\n".join(f"{name:<{width}} {count:>5}" for name, count in rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", help="folders below the root to check (default: all)")
    parser.add_argument("--count", action="store_true", help="print a table of hits by crate")
    options = parser.parse_args(arguments)
    hits = [hit for path in rust_files(ROOT) for hit in hits_in(path, (ROOT / path).read_text(encoding="utf-8"))]
    try:
        hits = without_exceptions(hits, read_exceptions(EXCEPTIONS.read_text(encoding="utf-8")))
    except ListError as error:
        print(f"{EXCEPTIONS.relative_to(ROOT)}: {error}", file=sys.stderr)
        return 2
    if options.folder:
        folders = tuple(folder.rstrip("/") + "/" for folder in options.folder)
        hits = [hit for hit in hits if hit.path.startswith(folders)]
    if options.count:
        print(table(hits))
    elif ENFORCED or options.folder:
        for hit in hits:
            print(f"{hit.path}:{hit.line}: {hit.text}")
    if hits and not options.count:
        print(f"check_comments: {len(hits)} doc comments open with a pronoun or a question word", file=sys.stderr)
    return 1 if hits and ENFORCED else 0


if __name__ == "__main__":
    sys.exit(main())
