#!/usr/bin/env python3
"""Print a bill of materials of the images, as CycloneDX 1.5 JSON.

    python3 scripts/sbom.py         # the CPU images
    python3 scripts/sbom.py --gpu   # the GPU images

It lists the crates that the programs are built from, build dependencies included, and the wheels that the native libraries
come from, each with its SHA-256.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable

import dependencies
import fetch_libraries

# Members of the workspace that are not in the images. The GPU images also lack the Python package.
LEFT_OUT = {"bench", "deploy", "test-support"}
GPU_WHEELS = ("cuda-inference.txt", "cuda-learner.txt")


def built_from(metadata: dict, left_out: set[str]) -> list[dict]:
    """Return the packages that the images' programs need to run or to be built, by name and version."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [each for each in metadata["workspace_members"] if packages[each]["name"] not in left_out]
    found = set(waiting)
    while waiting:
        for needed in nodes[waiting.pop()]["deps"]:
            is_used = any(kind["kind"] != "dev" for kind in needed["dep_kinds"])
            if is_used and needed["pkg"] not in found:
                found.add(needed["pkg"])
                waiting.append(needed["pkg"])
    return sorted((packages[each] for each in found), key=lambda package: (package["name"], package["version"]))


def crate(package: dict, checksum: str | None) -> dict:
    component = {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
    }
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component


def wheel(name: str, version: str, sha256: str) -> dict:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }


def wheels(has_gpu: bool) -> Iterable[dict]:
    """Return the wheels of the native libraries. The GPU images also have the CPU libraries of ONNX Runtime."""
    pins = {}
    for library in fetch_libraries.LIBRARIES.values():
        for each in library.wheels:
            pins[each.requirement] = each.sha256
    if has_gpu:
        for file in GPU_WHEELS:
            text = (dependencies.ROOT / "deploy" / "docker" / file).read_text()
            pins.update(re.findall(r"^(\S+==\S+) --hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE))
    for requirement, sha256 in sorted(pins.items()):
        name, version = requirement.split("==")
        yield wheel(name, version, sha256)


def bill(has_gpu: bool) -> dict:
    metadata = dependencies.metadata()
    lock = dependencies.locked((dependencies.ROOT / "Cargo.lock").read_text())
    checksums = {(package.name, package.version): package.checksum for package in lock}
    crates = [
        crate(package, checksums[package["name"], package["version"]])
        for package in built_from(metadata, LEFT_OUT | {"python"} if has_gpu else LEFT_OUT)
        if package["source"] is not None
    ]
    own = next(package for package in metadata["packages"] if package["name"] == "minuet")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "minuet", "version": own["version"]}},
        "components": crates + list(wheels(has_gpu)),
    }


def main() -> int:
    json.dump(bill("--gpu" in sys.argv[1:]), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
