"""`minuet.Analysis` against the role: answers, asyncio, errors, a restart, and the example of the guide."""

import asyncio
import contextlib
import io
import os
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from running import PATIENCE, ROOT, free_ports, program_of

import minuet


class Role:
    """`minuet analysis` on a free port, with a search without a network."""

    def __init__(self, folder, game):
        self.address, self.game, self.process = f"127.0.0.1:{free_ports(1)[0]}", game, None
        self.log = Path(folder) / "log"
        self.start()

    def start(self):
        settings = [f'analysis.address="{self.address}"', f'game.name="{self.game}"', 'analysis.model="uct"']
        with open(self.log, "a") as log:
            command = [program_of("minuet"), "analysis", "--supervised", *(f"--set={setting}" for setting in settings)]
            runtime = ROOT / "third_party" / "ort" / "lib" / "libonnxruntime.so"
            environment = {**os.environ, "ORT_DYLIB_PATH": str(runtime)}
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)

    def client(self, **options):
        deadline = time.monotonic() + PATIENCE
        while True:
            client = minuet.Analysis(self.address, **options)
            try:
                client.describe()
                return client
            except minuet.ServerError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the role does not answer: {error}\n{self.log.read_text()}") from error
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        code = self.process.wait(60)
        self.process.stdin.close()
        return code


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.role = Role(cls.enterClassContext(tempfile.TemporaryDirectory()), "chess")
        cls.addClassCleanup(cls.role.stop)
        cls.analysis = cls.role.client()

    def test_answers_have_moves_and_proofs(self):
        self.assertEqual(self.analysis.describe()["game"], "chess")
        [mate] = self.analysis.analyze(start="6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", visits=3000, lines=2, include=["priors", "tree"])
        self.assertEqual((mate.proven, mate.moves[0].text, mate.moves[0].action, len(mate.moves)), ("win", "Ra8#", "a1a8", 2))
        self.assertAlmostEqual(sum(each["prior"] for each in mate.priors), 1.0, places=3)
        self.assertEqual((mate.tree[0]["visits"], mate.values), (mate.visits, ()))

    def test_turns_are_answered_in_their_order(self):
        answers = self.analysis.analyze(["e4", "e5", "Nf3"], turns=[3, 0, 1], visits=30)
        self.assertEqual([(each.turn, each.to_move, each.visits) for each in answers], [(3, "second", 30), (0, "first", 30), (1, "second", 30)])
        [again] = self.analysis.analyze(["e4", "e5", "Nf3"], visits=30)
        self.assertEqual(again.moves, answers[0].moves)

    def test_a_query_with_an_error_names_the_field(self):
        for arguments, words in (({"visits": 0}, "visits: must be"), ({"moves": ["e5"]}, "moves.0."), ({"rules": {"castling": False}}, "rules:")):
            with self.assertRaisesRegex(minuet.ServerError, words) as caught:
                self.analysis.analyze(**arguments)
            self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        with self.assertRaises(minuet.SettingsError):
            self.analysis.analyze(visits=-1)

    def test_many_calls_wait_at_the_same_time_and_a_cancelled_one_ends_its_search(self):
        async def all_at_once():
            calls = [asyncio.ensure_future(self.analysis.analyze_async(["e4"], visits=50 + number, seed=number)) for number in range(300)]
            endless = asyncio.ensure_future(self.analysis.analyze_async(["d4"], visits=4_000_000))
            answers = await asyncio.gather(*calls)
            endless.cancel()
            return [answer.visits for [answer] in answers]

        self.assertEqual(asyncio.run(all_at_once()), [50 + number for number in range(300)])

    def test_a_search_that_takes_too_long_ends_at_the_deadline(self):
        hasty = self.role.client(timeout=0.3)
        with self.assertRaises(minuet.ServerError) as caught:
            hasty.analyze(visits=4_000_000)
        self.assertEqual(caught.exception.code, "DEADLINE_EXCEEDED")

    def test_the_example_of_the_guide_runs(self):
        page = (ROOT / "docs" / "guide" / "analysis.md").read_text()
        block = next(part for part in page.split("```python\n")[1:] if "minuet.Analysis" in part).split("```")[0]
        self.assertIn("127.0.0.1:50053", block)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.replace("127.0.0.1:50053", self.role.address), "docs/guide/analysis.md", "exec"), {})
        self.assertEqual(len(printed.getvalue().splitlines()), 2)


class Restart(unittest.TestCase):
    def test_calls_outlast_a_restart_of_the_service(self):
        role = Role(self.enterContext(tempfile.TemporaryDirectory()), "connect-four")
        self.addCleanup(role.stop)
        analysis = role.client(timeout=100.0)
        [before] = analysis.analyze(visits=100)
        found = []
        caller = threading.Thread(target=lambda: found.extend(analysis.analyze(visits=300_000, lines=1)))
        caller.start()
        self.assertEqual(role.stop(), 0)
        role.start()
        caller.join()
        self.assertEqual((found[0].visits > before.visits, found[0].position), (True, before.position))


if __name__ == "__main__":
    unittest.main()
