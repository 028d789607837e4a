"""The commands of the wheel in the environment into which it was installed, without a clone."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from running import PATIENCE
from test_own_run import TINY

COMMANDS = Path(sys.executable).parent


def run(name, *words, **options):
    """Runs a command of the wheel to its end, in an environment that names neither programs nor libraries."""
    own = {"MINUET_PROGRAMS", "ORT_DYLIB_PATH", "LD_LIBRARY_PATH"}
    variables = {name: value for name, value in os.environ.items() if name not in own}
    command = [COMMANDS / name, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=PATIENCE, **options)


class Installed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def trained(self, *words):
        """Trains until a network was published, and returns the steps of all checkpoints."""
        sets = [f"--set={setting}" for setting in TINY]
        more = ["--run", self.folder / "run", "--json", "--no-studio", "--for", "25s"]
        done = run("minuet", "up", *words, *more, *sets, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return [event["step"] for event in events if event["event"] == "checkpoint"]

    def test_a_game_of_minuet_is_trained_by_the_programs_of_the_wheel(self):
        self.assertGreater(max(self.trained("--game", "connect-four")), 0)

    def test_a_game_in_python_is_trained_by_the_same_command(self):
        self.assertEqual(run("minuet", "new", "my_game.py", cwd=self.folder).returncode, 0)
        self.assertGreater(max(self.trained("my_game.py")), 0)

    def test_every_role_has_a_command(self):
        for role in ("actor", "inference-server", "learner", "replay-store"):
            done = run(f"minuet-{role}", "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--config", done.stdout)

    def test_the_doctor_finds_programs_and_networks_of_the_wheel(self):
        checks = {check["name"]: check for check in json.loads(run("minuet", "doctor", "--json").stdout)["checks"]}
        for name in ("programs", "onnxruntime"):
            self.assertEqual(checks[name]["state"], "ok", checks[name])
        done = run("minuet", "query", "connect-four", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
