"""The ablation of the fish-eye network (`examples/fish_eye_ablation.py`)."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

import numpy as np
import torch

import minuet
from minuet.torch import FishEye

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import fish_eye_ablation as ablation  # noqa: E402
from fish_eye_arms import ARMS, TOLERANCE, ArmNetwork, Attention, network_of, parameters_of, shape_of, values_of  # noqa: E402
from fish_eye_report import difference, wilson  # noqa: E402


class Ablation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        positions = []
        for number in range(6):
            positions += ablation.samples_of(6, "pair" if number % 2 else "draw", 1, number)
        cls.batch = ablation.Batch(positions)
        cls.networks = {arm: network_of(arm, ablation.GAME, 3) for arm in ARMS}

    def outputs(self, arm, **changed):
        with torch.inference_mode():
            return self.networks[arm].outputs({**self.batch.inputs, **changed})

    def assert_equal(self, first, second):
        for one, other in zip(first, second):
            torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)

    def test_all_arms_have_about_as_many_parameters_as_a_new_run(self):
        counts = {arm: parameters_of(network) for arm, network in self.networks.items()}
        self.assertEqual(counts["two"], parameters_of(FishEye(shape_of(ARMS["two"], ablation.GAME))))
        for arm, count in counts.items():
            self.assertLessEqual(abs(count - counts["two"]), TOLERANCE * counts["two"], arm)

    def test_arms_with_all_parts_are_fish_eye_networks(self):
        for arm in ("two", "shared"):
            network = self.networks[arm]
            whole = FishEye(network.shape)
            whole.load_state_dict(network.state_dict())
            with torch.inference_mode():
                self.assert_equal(network(self.batch.inputs), whole(self.batch.inputs))

    def test_a_removed_part_influences_nothing_and_the_others_do(self):
        inputs = self.batch.inputs
        changed = {
            "context": {"ancestors": torch.zeros_like(inputs["ancestors"])},
            "path": {"path": torch.full_like(inputs["path"], 1)},
            "view": {"views": torch.zeros_like(inputs["views"])},
        }
        for part, arrays in changed.items():
            before, after = self.outputs(f"no-{part}"), self.outputs(f"no-{part}", **arrays)
            self.assertTrue(torch.equal(before[0], after[0]) and torch.equal(before[1], after[1]), part)
            self.assertGreater((self.outputs("two")[0] - self.outputs("two", **arrays)[0]).abs().max(), 1e-3, part)
            names = [name for name, _ in self.networks[f"no-{part}"].named_parameters()]
            self.assertFalse([name for name in names if name.startswith((f"{part}.", f"value.{part}."))])
        names = [name for name, _ in self.networks["attention"].named_parameters()]
        self.assertFalse([name for name in names if "rollup" in name or "context" in name])

    def test_attention_is_equivariant_to_the_order_of_imps_and_stays_within_positions(self):
        inputs = self.batch.inputs
        attention, width = self.networks["attention"].attention, self.networks["attention"].shape["width"]
        self.assertIsInstance(attention, Attention)
        embedding, paths = self.networks["attention"].embedding, self.networks["attention"]._paths(inputs["path"])
        ends = torch.cat([inputs["root"][1:], torch.tensor([len(paths)])])
        order = torch.cat([torch.arange(int(end) - 1, int(begin) - 1, -1) for begin, end in zip(inputs["root"], ends)])
        turned = {**inputs, "sept": inputs["sept"][order]}
        with torch.inference_mode():
            before, after = attention(embedding, paths, inputs), attention(embedding, paths[order], turned)
            self.assertEqual(before.shape, (len(paths), width))
            torch.testing.assert_close(before[order], after, atol=2e-5, rtol=1e-4)
            other = paths.clone()
            last = int(inputs["root"][-1])
            other[last:] = 0
            apart = attention(embedding, other, inputs)
            torch.testing.assert_close(before[:last], apart[:last], atol=2e-5, rtol=1e-4)
            self.assertGreater((before[last:] - apart[last:]).abs().max(), 1e-3)

    def test_values_of_imps_are_those_of_the_clan(self):
        state = minuet.Game("generator").start(target=[[1]])
        inputs = {name: torch.from_numpy(array) for name, array in state.game.inputs(state.row(), state.batch().row_lengths()).items()}
        # The lowest byte of each packed imp is its value.
        self.assertEqual(values_of(inputs).tolist(), [imp & 0xFF for imp in json.loads(state.position)["clan"]])

    def test_every_arm_trains(self):
        for arm in ARMS:
            training = ablation.Training(network_of(arm, ablation.GAME, 3))
            first = sum(training.step(self.batch))
            for _ in range(5):
                last = sum(training.step(self.batch))
            self.assertLess(last, first - 0.05, arm)
            self.assertGreater(training.seconds, 0.0)

    def test_samples_of_solutions_end_one_move_before_the_goal(self):
        positions = ablation.samples_of(5, "pair", 2, 0)
        values = [value for _, _, _, value in positions]
        np.testing.assert_allclose(values[::-1], [0.97 ** (1 + left) for left in range(len(values))])
        state, solution = ablation.GAME.problem(5, "pair", seed=2, number=0)
        for (row, entries, right, _), action in zip(positions, solution, strict=True):
            self.assertEqual(row.tolist(), state.row().tolist())
            self.assertEqual(entries[right], state.policy_entry(action))
            self.assertLessEqual(set(state.legal_entries().tolist()), set(entries.tolist()))
            state.play(action)

    def test_a_study_is_done_once_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            options = {"out": Path(folder), "arms": ["two", "no-path"], "seeds": [1]}
            options |= {"samples": 128, "seconds": 0.0, "visits": 2, "problems": 2}
            sets, chunk = ablation.SETS, ablation.CHUNK
            self.addCleanup(lambda: (setattr(ablation, "SETS", sets), setattr(ablation, "CHUNK", chunk)))
            ablation.SETS, ablation.CHUNK = [("draw", 2), ("pair", 2)], 128
            ablation.write(Path(folder) / "speed.json", ablation.speeds(options["arms"], rounds=1, batches=1))
            with contextlib.redirect_stdout(io.StringIO()):
                ablation.Study(Namespace(**options)).run()
            report = (Path(folder) / "report.md").read_text()
            self.assertIn("no-path", report)
            results = json.loads((Path(folder) / "results.json").read_text())
            self.assertEqual([result["arm"] for result in results["results"]], ["no-path", "two"])
            self.assertEqual(len(results["arms"]["two"]["sets"][1]["search"]["interval"]), 2)
            before = (Path(folder) / "1-two.json").stat().st_mtime_ns
            with contextlib.redirect_stdout(io.StringIO()):
                ablation.Study(Namespace(**options)).run()
            self.assertEqual((Path(folder) / "1-two.json").stat().st_mtime_ns, before)
            with self.assertRaises(SystemExit):
                ablation.Study(Namespace(**{**options, "visits": 3}))

    def test_intervals(self):
        np.testing.assert_allclose(wilson(8, 10), (0.4902, 0.9433), atol=1e-4)
        self.assertEqual(wilson(0, 10)[0], 0.0)
        solved = [{"seed": 1, "sets": [{"alone": [True, True, False, False]}]}]
        better = [{"seed": 1, "sets": [{"alone": [True, True, True, False]}]}]
        mean, low, high = difference(better, solved, "alone")
        self.assertEqual(mean, 0.25)
        self.assertLess(low, 0.0 < high and mean)


if __name__ == "__main__":
    unittest.main()
