"""The check of crates, on small lists, and on the workspace itself."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_dependencies as check  # noqa: E402
from dependencies import Locked  # noqa: E402


def crate(name: str, version: str, source: str | None = check.CRATES_IO, checksum: str | None = "ab") -> Locked:
    return Locked(name, version, source, checksum)


class CheckDependencies(unittest.TestCase):
    def test_a_licence_is_allowed_if_one_choice_of_it_is(self):
        allowed = [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
        ]
        for expression in allowed:
            self.assertTrue(check.is_allowed(expression), expression)
        refused = [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(GPL-3.0 OR MPL-2.0) AND MIT",
            "MIT Apache-2.0",
            "Apache-2.0 WITH Other-exception",
        ]
        for expression in refused:
            self.assertFalse(check.is_allowed(expression), expression)

    def test_a_version_is_compared_by_its_numbers(self):
        self.assertTrue(check.matches("1.10.0", ">= 1.9.0"))
        self.assertTrue(check.matches("0.9.4", ">= 0.9.3, < 0.10.0"))
        self.assertFalse(check.matches("0.10.0", ">= 0.9.3, < 0.10.0"))
        self.assertTrue(check.matches("2.0.0-rc.12", ">= 2.0.0"))

    def test_crates_come_from_the_registry_with_a_checksum(self):
        packages = [
            crate("own", "0.1.0", None, None),
            crate("good", "1.0.0"),
            crate("cloned", "1.0.0", "git+https://example.com/cloned#1", None),
            crate("bare", "1.0.0", checksum=None),
        ]
        hits = check.source_hits(packages)
        self.assertEqual([hit.split()[0] for hit in hits], ["cloned", "bare"])

    def test_an_affected_version_is_a_hit_until_it_is_accepted(self):
        advisory = {"id": "A-1", "crate": "a", "title": "bad", "patched": [">= 1.2.0"], "unaffected": ["< 1.0.0"]}
        packages = [crate("a", version) for version in ("0.9.0", "1.1.0", "1.2.0")] + [crate("b", "1.1.0")]
        self.assertEqual(check.advisory_hits(packages, [advisory]), ["a 1.1.0: A-1: bad"])
        accepted = advisory | {"accepted": "only its good part is used"}
        self.assertEqual(check.advisory_hits(packages, [accepted]), [])
        self.assertEqual(len(check.advisory_hits([crate("a", "1.2.0")], [accepted])), 1)

    def test_the_workspace_passes(self):
        self.assertEqual(check.main(), 0)
        licences = [{"name": "a", "version": "1.0.0", "license": None}]
        self.assertEqual(len(check.licence_hits(licences)), 1)


if __name__ == "__main__":
    unittest.main()
