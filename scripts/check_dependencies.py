#!/usr/bin/env python3
"""Check the crates of Cargo.lock: where they come from, their licences, and known faults.

    python3 scripts/check_dependencies.py         # print every hit

Sources: crates.io only, with a checksum. Licences: those in ALLOWED. Known faults: scripts/advisories.toml.
Exit code: 1 if there is a hit.
"""

from __future__ import annotations

import re
import sys
import tomllib

import dependencies

ADVISORIES = dependencies.ROOT / "scripts" / "advisories.toml"
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"

# Permissive licences, which allow Minuet's own (MIT).
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


def is_allowed(expression: str) -> bool:
    """True if an SPDX expression can be satisfied with allowed licences. `/` is an old form of OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def either() -> bool:
        nonlocal at
        result = both()
        while at < len(words) and words[at] == "OR":
            at += 1
            result = both() or result
        return result

    def both() -> bool:
        nonlocal at
        result = one()
        while at < len(words) and words[at] == "AND":
            at += 1
            result = one() and result
        return result

    def one() -> bool:
        nonlocal at
        if at >= len(words):
            return False
        word = words[at]
        at += 1
        if word == "(":
            result = either()
            at += 1
            return result
        if at + 1 < len(words) and words[at] == "WITH":
            word = f"{word} WITH {words[at + 1]}"
            at += 2
        return word in ALLOWED

    return either() and at == len(words)


def number(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without a pre-release or build part."""
    return tuple(int(part) for part in re.split(r"[-+]", version)[0].split("."))


def matches(version: str, ranges: str) -> bool:
    """True if a version lies in all of the ranges, for example `>= 0.9.3, < 0.10.0`."""
    for each in ranges.split(","):
        relation, limit = each.split()
        one, other = number(version), number(limit)
        if not {">=": one >= other, "<": one < other}[relation]:
            return False
    return True


def source_hits(packages: list[dependencies.Locked]) -> list[str]:
    return [
        f"{package.name} {package.version}: not from crates.io with a checksum: {package.source}"
        for package in packages
        if package.source is not None and (package.source != CRATES_IO or not package.checksum)
    ]


def licence_hits(packages: list[dict]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: licence {package['license']!r}"
        for package in packages
        if not is_allowed(package["license"] or "")
    ]


def advisory_hits(packages: list[dependencies.Locked], advisories: list[dict]) -> list[str]:
    hits = []
    for advisory in advisories:
        safe = advisory["patched"] + advisory.get("unaffected", [])
        affected = [
            package
            for package in packages
            if package.name == advisory["crate"] and not any(matches(package.version, ranges) for ranges in safe)
        ]
        if "accepted" not in advisory:
            hits += [f"{each.name} {each.version}: {advisory['id']}: {advisory['title']}" for each in affected]
        elif not affected:
            hits.append(f"{advisory['crate']}: {advisory['id']} is accepted, and no version is affected; remove it")
    return hits


def main() -> int:
    packages = dependencies.locked((dependencies.ROOT / "Cargo.lock").read_text())
    advisories = tomllib.loads(ADVISORIES.read_text())["advisory"]
    hits = source_hits(packages)
    hits += licence_hits(dependencies.metadata()["packages"])
    hits += advisory_hits(packages, advisories)
    for hit in hits:
        print(f"check_dependencies: {hit}", file=sys.stderr)
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
