#!/usr/bin/env python3
"""Flag error messages that repeat their source.

The programs print an error with all its sources: `cannot read the file: permission denied`. An error type of thiserror
whose message contains its source's text as well prints that text twice. Such a message must leave its source out.

    python3 scripts/check_errors.py              # print every hit as PATH:LINE: TEXT
    python3 scripts/check_errors.py proto onnx   # these folders only

A field is a source if it has the attribute #[source] or #[from], or the name `source`.
Exit code: 1 if there is a hit.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from check_comments import ROOT, rust_files

_ERROR = re.compile(r"#\[error\(")
_ATTRIBUTE = re.compile(r"\s*#\[")
_NAME = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:struct|enum)\s+)?(\w+)\s*(?:<[^>{(]*>)?\s*([({])")
_SOURCE = re.compile(r"#\[(?:source|from)\b")
_FIELD_NAME = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?(\w+)\s*:(?!:)")
# A placeholder of a format string, without its format: `{0:?}` is `0`. `{{` is a brace.
_PLACEHOLDER = re.compile(r"\{\{|\{([^{}:]*)(?::[^{}]*)?\}")
_STRING = re.compile(r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True)
class Hit:
    path: str
    line: int
    text: str


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def without_text(source: str) -> str:
    """Blank comments and the contents of strings, at the same length, so that brackets can be counted."""
    either = re.compile(f"{_STRING.pattern}|{_COMMENT.pattern}|'(?:\\\\.|[^\\\\'])'", re.DOTALL)
    return either.sub(blank, source)


def closing(code: str, opening: int) -> int:
    """Return the position of the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(code)):
        depth += (code[position] in "([{") - (code[position] in ")]}")
        if depth == 0:
            return position
    return len(code)


def fields(code: str) -> list[str]:
    """Split the fields of a struct or variant at the commas that are in no bracket."""
    found, depth, begin = [], 0, 0
    for position, character in enumerate(code):
        depth += (character in "([{<") - (character in ")]}" or (character == ">" and code[position - 1] != "-"))
        if character == "," and depth == 0:
            found.append(code[begin:position])
            begin = position + 1
    found.append(code[begin:])
    return [field for field in found if field.strip()]


def sources(body: str) -> set[str]:
    """Return the names, or the numbers, of the fields that are sources."""
    names = set()
    for number, field in enumerate(fields(body)):
        plain = re.sub(r"#\[[^\]]*\]", "", field)
        named = _FIELD_NAME.match(plain)
        name = named[1] if named else str(number)
        if name == "source" or _SOURCE.search(field):
            names.add(name)
    return names


def hits_in(path: str, source: str) -> list[Hit]:
    code = without_text(source)
    hits = []
    for match in _ERROR.finditer(code):
        end = closing(code, match.end() - 1)
        message = _STRING.match(source, match.end() + len(source[match.end() :]) - len(source[match.end() :].lstrip()))
        item = end + 2
        while _ATTRIBUTE.match(code, item):
            item = closing(code, code.index("[", item)) + 1
        declared = _NAME.match(code, item)
        if message is None or declared is None:
            continue
        opening = declared.end() - 1
        shown = {name for name in _PLACEHOLDER.findall(message[0]) if name}
        shown.update(re.findall(r"(?<![\w)\]])\.(\w+)", code[message.end() : end]))
        for name in sorted(sources(code[opening + 1 : closing(code, opening)]) & shown):
            line = source.count("\n", 0, match.start()) + 1
            hits.append(Hit(path, line, f"`{declared[1]}` prints its source `{name}` in its own message"))
    return hits


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", help="folders below the root to check (default: all)")
    options = parser.parse_args(arguments)
    hits = [hit for path in rust_files(ROOT) for hit in hits_in(path, (ROOT / path).read_text(encoding="utf-8"))]
    if options.folder:
        folders = tuple(folder.rstrip("/") + "/" for folder in options.folder)
        hits = [hit for hit in hits if hit.path.startswith(folders)]
    for hit in hits:
        print(f"{hit.path}:{hit.line}: {hit.text}")
    if hits:
        print(f"check_errors: {len(hits)} error messages repeat their source", file=sys.stderr)
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
