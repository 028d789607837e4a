"""The report at the end of `make test`: failures and skips."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "run_tests.py"


def run(*commands: str) -> subprocess.CompletedProcess:
    arguments = [part for command in commands for part in ("--command", command)]
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, env=os.environ)


class RunTests(unittest.TestCase):
    def test_skips_are_counted_and_printed_last(self) -> None:
        done = run('echo "a disk is filled: no mount here" >> "$MINUET_SKIPS"', "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("0 of 2 commands failed, 1 skipped\n  skipped: a disk is filled: no mount here\n", done.stdout)

    def test_a_failure_does_not_keep_the_next_command_from_running(self) -> None:
        done = run("false", "echo second")
        self.assertEqual(done.returncode, 1)
        self.assertIn("second", done.stdout)
        self.assertTrue(done.stdout.endswith("1 of 2 commands failed, 0 skipped\n  failed: false\n"), done.stdout)


if __name__ == "__main__":
    unittest.main()
