"""The script that counts lines of Rust."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import count_lines  # noqa: E402

FILE = """//! A module.

fn one() -> u32 { // not a comment line
    1
}

#[cfg(test)]
mod tests {
    // A comment of a test.
}
"""


class CountLines(unittest.TestCase):
    def counts(self, path):
        counts = count_lines.count(path, FILE)
        return counts["code"], counts["tests"], counts["comments"]

    def test_code_ends_at_the_first_test_attribute(self):
        self.assertEqual(self.counts("games/src/lib.rs"), (3, 3, 2))

    def test_files_of_tests_have_no_code(self):
        for path in ("games/tests/rules.rs", "games/src/tests.rs", "test-support/src/lib.rs", "deploy/src/lib.rs"):
            self.assertEqual(self.counts(path), (0, 6, 2))


if __name__ == "__main__":
    unittest.main()
