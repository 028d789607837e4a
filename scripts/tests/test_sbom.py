"""The bills of materials, compared with Cargo.lock and the pinned wheels."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import dependencies  # noqa: E402
import sbom  # noqa: E402


def named(package: str, kind: str, deps: list[tuple[str, str | None]]) -> tuple[dict, dict]:
    node = {"id": package, "deps": [{"pkg": each, "dep_kinds": [{"kind": kind}]} for each, kind in deps]}
    return {"id": package, "name": package, "version": "1.0.0", "source": kind}, node


class Sbom(unittest.TestCase):
    def test_what_only_tests_need_is_left_out(self):
        pairs = [
            named("minuet", None, [("used", None), ("tester", "dev")]),
            named("bench", None, [("chart", None)]),
            named("used", "registry", [("builder", "build")]),
            named("builder", "registry", []),
            named("tester", "registry", []),
            named("chart", "registry", []),
        ]
        metadata = {
            "packages": [package for package, _ in pairs],
            "resolve": {"nodes": [node for _, node in pairs]},
            "workspace_members": ["minuet", "bench"],
        }
        found = [package["name"] for package in sbom.built_from(metadata, sbom.LEFT_OUT)]
        self.assertEqual(found, ["builder", "minuet", "used"])

    def test_the_components_are_those_of_the_lock_file_and_the_pinned_wheels(self):
        lock = dependencies.locked((dependencies.ROOT / "Cargo.lock").read_text())
        checksums = {(package.name, package.version): package.checksum for package in lock}
        for has_gpu in (False, True):
            components = sbom.bill(has_gpu)["components"]
            names = {each["name"] for each in components}
            self.assertLessEqual({"tokio", "tonic", "sled", "rustls", "ort", "tch", "torch"}, names)
            self.assertEqual("onnxruntime-gpu" in names, has_gpu)
            self.assertEqual("pyo3" in names, not has_gpu)
            self.assertFalse({"proptest", "criterion", "minuet"} & names)
            for each in components:
                digest = each["hashes"][0]["content"]
                self.assertRegex(digest, r"^[0-9a-f]{64}$")
                if each["purl"].startswith("pkg:cargo/"):
                    self.assertEqual(digest, checksums[each["name"], each["version"]], each["name"])

    def test_every_wheel_of_the_gpu_images_is_listed(self):
        listed = {(each["name"], each["version"]) for each in sbom.wheels(has_gpu=True)}
        for file in sbom.GPU_WHEELS:
            text = (dependencies.ROOT / "deploy" / "docker" / file).read_text()
            for name, version in re.findall(r"^([^#=\s]+)==(\S+)", text, re.MULTILINE):
                self.assertIn((name, version), listed)


if __name__ == "__main__":
    unittest.main()
