"""Checks of what is in the role images: their account, their sizes, their bills of materials."""

from __future__ import annotations

import json
import tomllib
import unittest

from .images import BASE_IMAGE, ROLES, ROOT, Images, run, say


def check_images(case: unittest.TestCase, images: Images) -> None:
    inspected = {name: json.loads(run("docker", "image", "inspect", name))[0] for name in images.names}
    for name, image in inspected.items():
        say(f"{name}: {image['Size'] / 1e6:.0f} MB")
        case.assertEqual(image["Config"]["User"], "65532:65532")
        check_bill(case, name)
    base = json.loads(run("docker", "image", "inspect", BASE_IMAGE))[0]["Size"]
    sizes = {role: inspected[f"minuet-{role}:{images.tag}"]["Size"] - base for role in ROLES}
    case.assertLess(max(sizes["actor"], sizes["replay-store"]), 40e6, "an image without native libraries grew")
    case.assertGreater(sizes["learner"], sizes["inference-server"], "only the learner's image contains libtorch")


def check_bill(case: unittest.TestCase, image: str) -> None:
    """Check that the bill of materials in an image names each locked crate with its checksum, and the native libraries."""
    bill = json.loads(run("docker", "run", "--rm", "--entrypoint", "cat", image, "/usr/share/minuet/sbom.cdx.json"))
    case.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
    named = {part["purl"]: part for part in bill["components"]}
    for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        if package["name"] in ("tonic", "tokio", "sled", "tch", "ort", "pyo3"):
            part = named[f"pkg:cargo/{package['name']}@{package['version']}"]
            case.assertEqual(part["hashes"][0]["content"], package["checksum"])
    case.assertTrue(any(purl.startswith("pkg:pypi/torch@") for purl in named), "libtorch is not named")
