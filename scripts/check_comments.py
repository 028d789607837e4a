#!/usr/bin/env python3
"""Flag Rust doc comments that cannot be understood alone, and words over which readers stumble.

An editor shows a doc comment without the code around it. "Whether it is." says nothing there; "True if the queue
is full." does. A comment should open with a subject or a verb: "Returns …", "Number of …", "True if …", "Error: …".

WORDS are a private vocabulary ("mend", "for good", "asked for"): each has a plain word in its place ("fix",
"permanently", "requested"). They are flagged in comments and strings of Rust, in Python and in Markdown.

    python3 scripts/check_comments.py              # print every hit as PATH:LINE: TEXT
    python3 scripts/check_comments.py --count      # print a table: hits by crate
    python3 scripts/check_comments.py proto onnx   # these folders only

Texts that need such a word are listed in scripts/comment_exceptions.txt, each with its reason.
Exit code: 1 if there is a hit, 2 if the list of exceptions is wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = Path(__file__).resolve().parent / "comment_exceptions.txt"

OPENINGS = (
    "It", "Its", "They", "Them", "Their", "The same", "What", "Whether", "Who", "How", "Where", "So many", "As it", "Same",
)  # fmt: skip
_OPENING = re.compile(r"(?:" + "|".join(sorted(map(re.escape, OPENINGS), key=len, reverse=True)) + r")\b")
# Words that must not come back, and what to write in their place.
WORDS = {
    r"stands?|stood": "is, be, duplicate",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"beside": "next to, with",
    r"greatest": "largest, maximum",
    r"meets?": "satisfies, finds",
    r"(?:go|goes|going|went) on": "continue",
    r"for good": "permanently",
    r"asked for": "requested",
    r"looked at": "checked, read",
    r"(?<!there )is no (?!longer\b|more\b)": "is not a",
    r"names no": "unknown, does not name",
}
_WORD = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in WORDS) + r")(?:\b|(?<= ))", re.IGNORECASE)
# Parts of Rust code: raw strings, strings, characters (so that a quote in one begins no string), comments.
_PARTS = re.compile(r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\\\'])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
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


def words_in(path: str, source: str) -> list[Hit]:
    """Return the lines of `source` with one of WORDS: in Rust only comments and strings count."""
    parts = [(match.start(), match[0]) for match in _PARTS.finditer(source)] if path.endswith(".rs") else [(0, source)]
    hits = []
    for start, part in parts:
        first = source.count("\n", 0, start) + 1
        for number, line in enumerate(part.splitlines(), first):
            if _WORD.search(line):
                hits.append(Hit(path, number, line.strip()))
    return hits


def read_exceptions(text: str) -> dict[tuple[str, str], str]:
    """Read lines of the form `path | part of the line | reason`; return the reasons by path and part."""
    exceptions = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise ListError(f"line {number}: expected `path | part of the line | reason`")
        exceptions[parts[0], parts[1]] = parts[2]
    return exceptions


def without_exceptions(hits: list[Hit], exceptions: dict[tuple[str, str], str]) -> list[Hit]:
    """Return the hits that no exception covers. An exception that covers no hit is an error, so that the list stays short."""
    used = set()
    kept = []
    for hit in hits:
        covering = [key for key in exceptions if key[0] == hit.path and key[1] in hit.text]
        used.update(covering)
        if not covering:
            kept.append(hit)
    for path, part in exceptions:
        if (path, part) not in used:
            raise ListError(f"no hit in {path} has `{part}`: remove the exception")
    return kept


def rust_files(root: Path) -> list[str]:
    return [path for path in files_of(root) if path.endswith(".rs")]


def files_of(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*.rs", "*.py", "*.md"],
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
    hits = []
    for path in files_of(ROOT):
        source = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".rs"):
            hits += hits_in(path, source)
        # This list and its tests contain the words.
        if not path.endswith("check_comments.py"):
            hits += words_in(path, source)
    try:
        hits = without_exceptions(hits, read_exceptions(EXCEPTIONS.read_text(encoding="utf-8")))
    except ListError as error:
        print(f"{EXCEPTIONS.relative_to(ROOT)}: {error}", file=sys.stderr)
        return 2
    if options.folder:
        hits = [hit for hit in hits if hit.path.startswith(tuple(options.folder))]
    if options.count:
        print(table(hits))
    else:
        for hit in hits:
            print(f"{hit.path}:{hit.line}: {hit.text}")
    if hits and not options.count:
        print(f"check_comments: {len(hits)} comments or texts need other words", file=sys.stderr)
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
