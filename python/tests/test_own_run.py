"""Runs of games of one's own: `python -m minuet up my_game.py` and the other commands."""

import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request
from pathlib import Path

from running import PATIENCE, PROGRAMS, ROOT, program_of

#: Settings of a run that publishes a trained checkpoint within seconds.
TINY = [
    "model.blocks=1", "model.filters=8", "model.value_hidden=8", "model.global_pooling=0", "model.value_head=scalar",
    "search.visits=6", "actor.games_per_thread=16", 'inference.provider="cpu"', "inference.max_batch=64",
    "learner.batch_size=32", "learner.threads=1", "learner.min_positions=200", "learner.checkpoint_steps=5",
    "learner.warmup_steps=2", "learner.samples_per_position=2.0", "checkpoints.poll_ms=100", "replay.min_free_mib=0",
]  # fmt: skip
ENVIRONMENT = {
    **os.environ,
    "MINUET_PROGRAMS": str(PROGRAMS),
    "ORT_DYLIB_PATH": str(ROOT / "third_party" / "ort" / "lib" / "libonnxruntime.so"),
}


def minuet(*words, variables=None, **options):
    """Runs a command to its end, with more environment variables."""
    command = [sys.executable, "-P", "-m", "minuet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT | (variables or {}), timeout=PATIENCE, **options)


class Run:
    """A running `python -m minuet up --json`. `stop` ends it."""

    def __init__(self, *words, settings=(), cwd=None):
        for role in ("minuet-learner", "minuet-replay-store", "minuet-inference-server"):
            program_of(role)
        sets = [f"--set={setting}" for setting in (*TINY, *settings)]
        command = [sys.executable, "-P", "-m", "minuet", "up", *map(str, words), "--json", "--no-studio", *sets]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=cwd)
        self.events, self.past = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def wait_for(self, kind, fits=lambda event: True):
        """Returns the next event of a kind that fits. Events that do not fit are kept for later calls."""
        for event in self.past:
            if event["event"] == kind and fits(event):
                self.past.remove(event)
                return event
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event is None:
                raise AssertionError(f"no event {kind}; the last ones are {self.past[-5:]}")
            if event["event"] == kind and fits(event):
                return event
            self.past.append(event)

    def stop(self):
        """Ends the run as Ctrl-C does, and returns the last event."""
        self.process.send_signal(signal.SIGINT)
        last = self.wait_for("stopped")
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        return last

    def kill(self):
        self.process.kill()
        self.process.wait()


class OwnRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "my_game.py"
        self.assertEqual(minuet("new", self.file).returncode, 0)
        self.run_folder = self.folder / "run"

    def start(self, *words, **options):
        run = Run(*words, **options)
        self.addCleanup(run.kill)
        return run

    def change(self, old, new):
        text = self.file.read_text()
        self.assertIn(old, text)
        self.file.write_text(text.replace(old, new))

    def change_in_actors(self, line):
        """Adds a line to the end of `play` that counts in the roles of a run alone, so that the start of the run does not find it."""
        self.change("        self.player = 1 - self.player\n", f"        self.player = 1 - self.player\n        if '--supervised' in sys.argv:\n            {line}\n")
        self.change("import numpy as np\n", "import sys\n\nimport numpy as np\n")

    def done(self, *words, code=0, **options):
        ended = minuet(*words, **options)
        self.assertEqual(ended.returncode, code, f"{words}: {ended.stdout}{ended.stderr}")
        return ended.stdout + ended.stderr

    def test_a_game_trains_through_kills_and_goes_on_and_every_command_knows_it(self):
        first = self.start(self.file, "--run", self.run_folder)
        self.assertEqual(first.wait_for("started")["game"], "five-in-a-row")
        pid = first.wait_for("role-started", lambda event: event["name"] == "actor-1")["pid"]
        step = first.wait_for("checkpoint", lambda event: event["step"] > 0)["step"]
        os.kill(pid, signal.SIGKILL)
        first.wait_for("role-exited", lambda event: event["name"] == "actor-1")
        first.wait_for("role-ready", lambda event: event["name"] == "actor-1")
        step = first.wait_for("checkpoint", lambda event: event["step"] > step)["step"]
        kept = first.stop()
        self.assertEqual(kept["killed"], [])

        run = ("--run", self.run_folder)
        checked = self.done("games", "check", "--newest", "20", "--strict", *run)
        self.assertIn("search reproduced", checked)
        games = [json.loads(line) for line in self.done("games", "list", "--json", "--limit", "3", *run).splitlines()]
        self.assertEqual({game["game"] for game in games}, {"five-in-a-row"})
        self.assertRegex(self.done("games", "show", games[0]["id"], *run), r"0  0  action \d+ ")
        asked = json.loads(self.done("query", self.run_folder, "24", "--visits", "20", "--json"))
        self.assertEqual((asked["game"], asked["legal"], asked["visits"]), ("five-in-a-row", 48, 20))
        played = self.done("play", self.file, "--opponent", f"{self.run_folder},visits=4", input="24\nhint\nquit\n")
        self.assertIn("1", played)
        match = self.done("arena", f"{self.run_folder},visits=4", "random", "--games", "4", "--json", "--folder", self.folder / "match")
        self.assertEqual(json.loads(match)["games"], [4, 4])
        self.look_at_the_studio()

        self.change("# A position and", "# Each position and")
        second = self.start(self.file, "--run", self.run_folder)
        self.assertFalse(second.wait_for("started")["new"])
        warned = second.wait_for("warning", lambda event: "is not that of the last start" in event["text"])
        self.assertIn("my_game.py", warned["text"])
        second.wait_for("checkpoint", lambda event: event["step"] > step)
        self.assertGreaterEqual(second.stop()["games"], kept["games"])

        self.change("SIZE = 7", "SIZE = 6")
        refused = self.done("up", self.file, "--run", self.run_folder, code=2)
        self.assertIn("the size of the board is 6×6, and was 7×7", refused)

    def look_at_the_studio(self):
        command = [sys.executable, "-P", "-m", "minuet", "studio", "--run", str(self.run_folder)]
        studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(studio.stdout.close)
        self.addCleanup(studio.wait)
        self.addCleanup(studio.kill)
        url = re.search(r"http://\S+", studio.stdout.readline())[0]
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            self.assertIn("five-in-a-row", page.read().decode())

    def test_a_rare_exception_ends_its_game_and_not_the_run(self):
        self.change_in_actors("assert self.stones.sum() != 9 or not self.stones[0, 3, 3], 'nine with d4'")
        run = self.start(self.file, "--run", self.run_folder)
        run.wait_for("checkpoint", lambda event: event["step"] > 0)
        run.stop()
        log = "".join(file.read_text() for file in self.run_folder.glob("logs/actor-*.log"))
        actions = [int(action) for action in re.search(r"AssertionError: nine with d4\n+Actions that lead there: \[([\d, ]*)\]", log)[1].split(",")]
        self.assertEqual((len(actions), 24 in actions[::2]), (9, True))
        self.assertIn("in play", log)
        self.assertIn("a game ends without a record", log)
        checked = minuet("games", "check", "--newest", "50", "--strict", "--run", self.run_folder)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_rules_that_always_fail_end_the_run(self):
        self.change_in_actors("1 / int(self.stones.sum() < 6)")
        run = self.start(self.file, "--run", self.run_folder)
        failed = run.wait_for("role-failed", lambda event: event["name"] == "actor-1")
        self.assertIn("the rules of five-in-a-row failed in 20 games in a row, the last time with: ZeroDivisionError", "\n".join(failed["last_lines"]))
        run.wait_for("stopped")
        self.assertEqual(run.process.wait(PATIENCE), 1)

    def fail_in_matches(self, condition):
        """Makes the rules fail after the random games at the start of a command, where the condition does not hold."""
        self.change("class FiveInARow:\n", "class FiveInARow:\n    plays = 0\n")
        end = "        self.player = 1 - self.player\n"
        self.change(end, f"{end}        FiveInARow.plays += 1\n        assert FiveInARow.plays < 3000 or {condition}, 'nine with d4'\n")

    def test_a_game_of_a_match_in_which_the_rules_fail_does_not_count(self):
        self.fail_in_matches("self.stones.sum() != 9 or not self.stones[0, 3, 3]")
        match = ("arena", self.file, "random", "uct,visits=8", "--games", "60", "--threads", "1", "--folder", self.folder / "match")
        ended = minuet(*match, "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        report = json.loads(ended.stdout)
        failed = report["endings"]["rules-failed"]
        self.assertEqual((report["ended"], report["games"], report["players"][0]["games"]), ("complete", [60, 60], 60 - failed))
        self.assertRegex(ended.stderr, r"in play\n(.*\n)+AssertionError: nine with d4\n+Actions that lead there: \[")
        # Without the fault the same command plays these games.
        self.change("'nine with d4'", "'nine with d4' if False else ''")
        self.change("FiveInARow.plays < 3000 or ", "")
        self.change("self.stones.sum() != 9 or not self.stones[0, 3, 3]", "True")
        self.assertEqual(json.loads(minuet(*match, "--json").stdout)["players"][0]["games"], 60)

    def test_rules_that_always_fail_end_a_match(self):
        self.fail_in_matches("self.stones.sum() < 6")
        match = ("arena", self.file, "random", "uct,visits=8", "--games", "200", "--folder", self.folder / "match")
        self.assertIn("the rules of five-in-a-row failed in 20 games in a row, the last time with: AssertionError: nine with d4", self.done(*match, code=2))

    def test_commands_know_the_game_or_say_why_they_cannot(self):
        self.assertIn("49", self.done("perft", self.file, "--depth", "1"))
        asked = '{"id": 1, "game": "five-in-a-row", "start": null, "actions": [24]}\n'
        self.assertEqual(len(json.loads(self.done("rules", self.file, input=asked))["legal"]), 48)
        settings = self.done("config", self.file)
        self.assertIn("# five-in-a-row has no settings of its own: those of other games of two players apply", settings)
        self.assertIn("filters = 32\n", settings)
        for command in ("lab", "bench", "plan", "solve", "uci", "gtp"):
            self.assertIn(f"`{command}` cannot play a game in Python", self.done(command, self.file, code=2))
        puzzle = ROOT / "python" / "examples" / "peg_solitaire.py"
        self.assertIn("nothing to compare its players on", self.done("arena", puzzle, "random", "uct,visits=4", "--games", "2", code=1))

    def test_the_usual_programs_must_be_there(self):
        missing = self.done("up", self.file, "--run", self.run_folder, "--binaries", self.folder, code=1)
        self.assertIn("MINUET_PROGRAMS", missing)
        self.assertIn("is not a Python file", self.done("up", "other.py", code=2))

    def test_roles_that_are_started_one_by_one_take_a_description_and_settings(self):
        self.run_folder.mkdir()
        described, settings = self.run_folder / "game.json", self.run_folder / "run.toml"
        described.write_text(self.done("describe", self.file))
        settings.write_text(self.done("config", self.file, "--set", "search.visits=7"))
        self.assertIn("a run of five-in-a-row", self.done("config", "--check", settings))
        self.file.unlink()
        for variables, words in (({}, ["--config", settings]), ({"MINUET_CONFIG": str(settings)}, [])):
            ended = minuet("actor", *words, variables=variables)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(f"the description of the game of {self.run_folder}: {self.file} is not a Python file", ended.stderr)

    def test_the_guide_does_what_it_says(self):
        guide = (ROOT / "docs" / "guide" / "your-own-game.md").read_text().partition("## In Rust")[0]
        self.file.unlink()
        for language, block in re.findall(r"```(\w+)\n(.*?)```", guide, re.DOTALL):
            if language == "python":
                command = [sys.executable, "-c", block]
                ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                continue
            for line in block.splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                self.assertEqual(words[:3], ["python", "-m", "minuet"])
                if words[3] != "up":
                    few = ["--games", "20"] if words[3] == "check" else []
                    self.done(*words[3:], *few, cwd=self.folder, input="")
                    continue
                run = self.start(*words[4:], cwd=self.folder)
                run.wait_for("checkpoint", lambda event: event["step"] > 0)
                run.stop()


if __name__ == "__main__":
    unittest.main()
