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
        for vector in lines("paco-sako/random_games.jsonl.gz")[::3]:
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

    def test_legal_moves_of_the_generator_game_equal_the_vectors(self):
        game = minuet.Game("generator", illegal="strict", cycles="allow")
        checked = 0
        for vector in lines("generator/clans.jsonl.gz"):
            state = game.start(vector["packed"])
            legal = set(state.legal_actions().tolist())
            for step in vector["steps"]:
                imp, move, packed = step[:3]
                if packed is None:
                    continue
                action = state.action([imp, move])
                self.assertIn(action, legal)
                after = state.copy()
                after.play(action)
                if after.outcome is None:
                    self.assertEqual(json.loads(after.position)["clan"], packed)
                checked += 1
        self.assertGreater(checked, 100)

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
