"""Rows, planes and legal sets against the vectors of every game, which other programs computed."""

import gzip
import json
import unittest
from pathlib import Path

import numpy as np

import minuet

DATA = Path(__file__).resolve().parents[2] / "games" / "tests" / "data"
COMPATIBLE = {"dead_end": "neutral", "turn_cycles": "allow"}


def lines(name):
    path = DATA / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [json.loads(line) for line in file]


class Vectors(unittest.TestCase):
    def test_rows_of_paco_sako_equal_the_vectors_in_all_representations(self):
        positions = lines("paco-sako/ml_index_representation.jsonl")
        self.assertGreater(len(positions), 100)
        for options in range(8):
            game = minuet.Game("paco-sako", options, **COMPATIBLE)
            for vector in positions:
                repetitions = 0 if vector["kind"] == "game_promotion" else 3
                game = minuet.Game("paco-sako", options, **COMPATIBLE, draw_after_n_repetitions=repetitions)
                state = game.start(vector.get("start_fen"))
                for action in vector["actions"]:
                    state.play(state.action(action))
                self.assertEqual(state.row().tolist(), vector["repr"][str(options)], vector["id"])
                if options == 1:
                    planes = state.planes()
                    self.assertEqual(np.count_nonzero(planes), vector["tensor_nonzero_opts1"])
                    self.assertAlmostEqual(float(planes.sum(dtype=np.float64)), vector["tensor_sum_opts1"], places=3)

    def test_legal_sets_of_paco_sako_equal_the_vectors_before_every_action(self):
        checked = 0
        for vector in lines("paco-sako/random_games.jsonl.gz"):
            repetitions = vector["draw_after_n_repetitions"]
            game = minuet.Game("paco-sako", **COMPATIBLE, draw_after_n_repetitions=repetitions)
            state = game.start(vector["start_fen"])
            code = {state.action(code): code for code in range(1, 133)}
            sets = vector["legal_before"]
            for number, legal in enumerate(sets):
                self.assertEqual([code[action] for action in state.legal_actions().tolist()], legal)
                if number < len(vector["actions"]):
                    state.play(state.action(vector["actions"][number]))
                checked += 1
        self.assertGreater(checked, 1000)

    def test_planes_and_policy_entries_of_chess_equal_those_of_dlchess(self):
        game = minuet.Game("chess", underpromotions=True)
        positions = lines("chess/dlchess_encoding.jsonl.gz")
        batch = []
        expected = []
        for vector in positions:
            state = game.start(vector["start_fen"])
            for move in vector["moves"]:
                state.play(state.action(move))
            if state.outcome is not None:
                continue
            batch.append(state)
            planes = np.zeros((22, 64), np.float32)
            for plane, content in zip(planes, vector["planes_v2"], strict=True):
                if "fill" in content:
                    plane[:] = content["fill"]
                else:
                    plane[content["ones"]] = 1.0
            expected.append(planes.reshape(22, 8, 8))
            entries = {move: place[3] for move, place in vector["moves_v2"].items()}
            ours = {move: state.policy_entry(state.action(move)) for move in entries}
            self.assertEqual(ours, entries, vector["fen"])
            mask = np.zeros(game.actions, bool)
            mask[list(entries.values())] = True
            self.assertTrue((state.legal_mask() == mask).all(), vector["fen"])
        self.assertGreater(len(batch), 150)
        batch = minuet.Batch(batch)
        np.testing.assert_allclose(batch.planes(), np.stack(expected), atol=1e-7)
        np.testing.assert_allclose(game.expand(batch.rows()), np.stack(expected), atol=1e-7)

    def test_notation_of_chess_equals_that_of_python_chess(self):
        game = minuet.Game("chess", underpromotions=True)
        for vector in lines("chess/san.jsonl.gz")[:60]:
            state = game.start(vector["fen"])
            self.assertEqual(len(state.legal_actions()), len(vector["moves"]))
            for move, san in vector["moves"].items():
                self.assertEqual(state.notation([state.action(move)]), san)

    def test_rows_and_legal_moves_of_the_generator_game_equal_the_vectors(self):
        original = minuet.Game("generator", illegal="oops", cycles="allow")
        strict = minuet.Game("generator", illegal="strict", cycles="allow")
        oopses = checked = 0
        for vector in lines("generator/clans.jsonl.gz"):
            state = original.start(vector["packed"])
            legal = state.legal_actions().tolist()
            self.assertEqual(len(legal), vector["n_masked_moves"])
            offered = set(strict.start(vector["packed"]).legal_actions().tolist())
            self.assertLess(offered, set(legal))
            for imp, move, packed in vector["steps"]:
                action = state.action([imp, move])
                self.assertIn(action, legal)
                self.assertEqual(action in offered, packed is not None)
                after = state.copy()
                after.play(action)
                checked += 1
                if packed is None:
                    self.assertEqual((after.ending, after.value), ("oops", 0.0))
                    oopses += 1
                elif after.outcome is None:
                    self.assertEqual(json.loads(after.position)["clan"], packed)
                    self.assertEqual(after.row()[2 : 2 + len(packed)].tolist(), packed)
            self.check_inputs(original, state, vector)
        self.assertGreater(checked, 2000)
        self.assertGreater(oopses, 300)

    def check_inputs(self, game, state, vector):
        """The row and what it expands to: the clan, its picture, the picture of one imp and the path to it."""
        row, imps = state.row(), len(vector["packed"])
        self.assertEqual(row[0], imps)
        self.assertEqual(row[2 : 2 + imps].tolist(), vector["packed"])
        inputs = game.inputs(row, np.array([len(row)], np.uint32))
        self.assertEqual(inputs["grids"][0, 2].tolist(), np.ravel(vector["render"]).tolist())
        imp, path = vector["imp"], vector["path"]
        self.assertEqual(inputs["views"][inputs["view"][imp]].tolist(), np.ravel(vector["imp_render"]).tolist())
        ended = game.layout["clan"]["roles"] - 1
        self.assertEqual(inputs["path"][imp].tolist(), path + [ended] * (inputs["path"].shape[1] - len(path)))

    def test_counts_of_action_sequences_equal_published_ones(self):
        known = {
            "othello": [4, 12, 56, 244, 1396],
            "connect-four": [7, 49, 343, 2401, 16807],
            "chess": [20, 400, 8902],
            "gomoku": [64, 4032],
        }
        for name, counts in known.items():
            states = [minuet.Game(name).start()]
            for count in counts:
                after = []
                for state in states:
                    for action in state.legal_actions():
                        child = state.copy()
                        child.play(int(action))
                        after.append(child)
                self.assertEqual(len(after), count, name)
                states = after


if __name__ == "__main__":
    unittest.main()
