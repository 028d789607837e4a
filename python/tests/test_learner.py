"""A learner in PyTorch trains against a running Minuet; its data, its checkpoints and the clients on the way."""

import asyncio
import io
import json
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from running import ROOT, Minuet, program_of
from test_networks import tower

import minuet
from minuet.torch import Expansion, ExportedDataset, NetworkEvaluator, ReplayDataset
from minuet.torch.checkpoint import read_checkpoint
from minuet.torch.publishing import positions

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import connect_four  # noqa: E402


def play_match(one, other, games, visits, seed):
    """Score of `one`, in [0, 1]: pairs of games from random openings of four actions, once with each colour."""
    random = np.random.default_rng(seed)
    game = connect_four.GAME
    openings = []
    while len(openings) < games // 2:
        state = game.start()
        for _ in range(4):
            state.play(int(random.choice(state.legal_actions())))
        if state.outcome is None:
            openings.append(state)
    running = [(state.copy(), side) for state in openings for side in (0, 1)]
    score = 0.0
    while running:
        for evaluator, is_one in ((one, True), (other, False)):
            mine = [(state, side) for state, side in running if (state.to_move == side) == is_one and state.outcome is None]
            searches = [minuet.Search(state, evaluator, visits, seed=seed, game=number) for number, (state, _) in enumerate(mine)]
            minuet.run_searches(searches)
            for (state, _), search in zip(mine, searches):
                state.play(search.choose())
        for state, side in running:
            if state.outcome is not None:
                score += 0.5 + 0.5 * (state.value if side == 0 else -state.value)
        running = [each for each in running if each[0].outcome is None]
    return score / games


class Learning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.run_ = Minuet(cls.folder)
        cls.addClassCleanup(cls.run_.stop)
        cls.store = cls.run_.start_store()
        cls.learner = connect_four.Learner(cls.run_.store, cls.run_.checkpoints)
        cls.first = cls.learner.publish()
        cls.evaluator = cls.run_.start_inference()
        cls.run_.start("actor")
        cls.learner.wait_for(500)

    def network_of(self, version):
        network = connect_four.Network()
        _, files = read_checkpoint(self.run_.checkpoints, version, ["weights.safetensors"])
        from safetensors.torch import load

        network.load_state_dict(load(files["weights.safetensors"]))
        return network.eval()

    def test_the_learner_gets_past_its_own_first_checkpoint(self):
        before = self.learner.train(50, 128, 4.0, 1500)
        for _ in range(3):
            after = self.learner.train(100, 128, 4.0, 1500)
            last = self.learner.publish()
        self.assertLess(after, before)
        label, _ = read_checkpoint(self.run_.checkpoints, "latest", [])
        self.assertEqual(label["version"], last)
        self.assertEqual(label["step"], 350)
        one, other = (NetworkEvaluator(self.network_of(version)) for version in (last, self.first))
        score = play_match(one, other, 40, 24, seed=3)
        print(f"the last checkpoint scores {score:.2f} against the first", flush=True)
        self.assertGreater(score, 0.65)
        # The server serves the new checkpoint, and the actors play with it.
        self.run_.wait("inference-server", lambda: self.served(last))
        self.run_.wait("actor", lambda: self.played(last))
        self.played(self.first)

    def served(self, version):
        found = self.evaluator.describe()["version"]
        if found != version:
            raise minuet.ServerError(f"serves {found}")

    def played(self, version):
        self.store.stats(awaits_positions=True)
        if next(self.store.games(model_versions=[version]), None) is None:
            raise minuet.ServerError(f"no game was played with {version}")

    def test_evaluations_equal_those_of_the_published_module(self):
        game = connect_four.GAME
        states = [game.start()]
        for column in (3, 3, 2, 4, 1):
            state = states[-1].copy()
            state.play(column)
            states.append(state)
        pinned = minuet.Evaluator(self.run_.inference, self.first)
        evaluation = pinned.evaluate(states)
        self.assertEqual(evaluation.version, self.first)
        priors, values = NetworkEvaluator(self.network_of(self.first))(minuet.Batch(states))
        np.testing.assert_allclose(evaluation.values, values, atol=1e-4)
        np.testing.assert_allclose(evaluation.priors, priors, atol=1e-3)
        entries, of_first = evaluation.policy(0)
        self.assertEqual(entries.tolist(), list(range(7)))
        self.assertAlmostEqual(float(of_first.sum()), 1.0, places=2)

        by_text = pinned.evaluate([state.position for state in states])
        batch = minuet.Batch(states)
        by_rows = pinned.evaluate_rows(batch.rows(), *batch.legal())
        later = asyncio.run(pinned.evaluate_rows_async(batch.rows(), *batch.legal()))
        for other in (by_text, by_rows, later, asyncio.run(self.both(pinned, states))):
            self.assertEqual(other.values.tolist(), evaluation.values.tolist())
            self.assertEqual(other.priors.tolist(), evaluation.priors.tolist())

        many = pinned.evaluate(minuet.Batch([states[number % 6] for number in range(2500)]))
        self.assertEqual(many.values[:6].tolist(), many.values[2496:2500].tolist() + many.values[4:6].tolist())

    @staticmethod
    async def both(evaluator, states):
        one, _ = await asyncio.gather(evaluator.evaluate_async(states), evaluator.evaluate_async(states[:2]))
        return one

    def test_a_search_asks_the_server(self):
        search = minuet.Search(connect_four.GAME.start(), self.evaluator, visits=50)
        search.run()
        self.assertEqual(search.visits.sum(), 50)

    def test_games_of_the_store_are_listed_filtered_and_replayed(self):
        listed = list(self.store.games())
        self.assertGreater(len(listed), 10)
        lengths = [game.positions for game in self.store.games("length", newest_first=True)]
        self.assertEqual(lengths[: len(listed)], sorted(lengths, reverse=True)[: len(listed)])
        long = next(iter(self.store.games(min_positions=10)))
        record = self.store.game(long.id)
        self.assertEqual(len(record.actions), long.positions)
        state = connect_four.GAME.start()
        for row, action in zip(record.row_table(), record.actions):
            self.assertEqual(state.row().tolist(), row.tolist())
            state.play(int(action))
        self.assertEqual(state.value, record.score)
        exported = {game.id: game for game in self.store.records(ids=[long.id])}
        self.assertEqual(exported[long.id].actions.tolist(), record.actions.tolist())

    def test_games_hold_what_the_searches_found(self):
        listed = next(self.store.games(model_versions=[self.first]))
        record = self.store.game(listed.id)
        decisions = record.decisions
        self.assertEqual(len(record.policy_surprises), len(record.actions))
        self.assertEqual(record.model_versions[record.model_of_position[0]], self.first)
        # The network's own answer at the start. A search may have asked about the mirrored board.
        pinned = minuet.Evaluator(self.run_.inference, self.first)
        evaluation = pinned.evaluate(connect_four.GAME.start())
        self.assertAlmostEqual(float(decisions.evaluations[0]), float(evaluation.values[0]), delta=2e-3)
        priors = record.priors(7)
        np.testing.assert_allclose(priors.sum(axis=1)[decisions.kinds == 1], 1.0, atol=0.02)
        nearest = min(np.abs(priors[0] - expected).max() for expected in (evaluation.priors, evaluation.priors[::-1]))
        self.assertLess(nearest, 4e-3)
        values, state = record.action_values(7), connect_four.GAME.start()
        visited, unvisited = np.cumsum(record.visit_counts), np.cumsum(decisions.unvisited_counts)
        for ply, action in enumerate(record.actions):
            entries = record.visit_entries[visited[ply] - record.visit_counts[ply] : visited[ply]]
            others = decisions.unvisited_entries[unvisited[ply] - decisions.unvisited_counts[ply] : unvisited[ply]]
            if decisions.kinds[ply]:
                self.assertEqual(sorted([*entries, *others]), state.legal_entries().tolist())
                self.assertEqual([*entries, *others][decisions.played[ply]], action)
                self.assertEqual(np.flatnonzero(~np.isnan(values[ply])).tolist(), sorted(entries))
            state.play(int(action))
        self.assertGreater((decisions.kinds == 1).sum(), 3)
        self.assertLessEqual(np.nanmax(np.abs(values)), 1.001)

    def test_batches_bring_what_the_searches_found(self):
        options = {"seed": 6, "purpose": "trained"}
        (batch,) = self.store.sample(300, 1, decisions=True, **options)
        records = {record.sequence: record for record in self.store.records()}
        priors, values = batch.priors(7), batch.action_values(7)
        for number, (sequence, ply) in enumerate(zip(batch.games.tolist(), batch.plies.tolist())):
            record = records[sequence]
            np.testing.assert_array_equal(priors[number], record.priors(7)[ply])
            np.testing.assert_array_equal(values[number], record.action_values(7)[ply])
            self.assertEqual(batch.decisions.evaluations[number], record.decisions.evaluations[ply])
        # Nobody owns squares in this game.
        self.assertEqual((batch.territories.shape, batch.territories.dtype), ((0, 0), np.int8))
        self.assertEqual((len(batch.territory_positions), len(batch.territory_scores)), (0, 0))
        self.assertEqual((record.territory.size, record.territory_score), (0, 0.0))
        (plain,) = self.store.sample(300, 1, **options)
        self.assertIsNone(plain.decisions)
        with self.assertRaisesRegex(minuet.EvaluationError, "decisions=True"):
            plain.priors(7)
        (sample,) = ReplayDataset(self.store, connect_four.GAME, 32, 1, decisions=True)
        self.assertEqual([sample[name].shape for name in ("priors", "action_values", "evaluations")], [(32, 7), (32, 7), (32,)])

    def test_batches_are_the_same_for_a_seed_and_reach_torch(self):
        one, again = (next(iter(self.store.sample(64, 1, seed=5, purpose="trained"))) for _ in range(2))
        self.assertEqual(one.positions, 64)
        connect_four.GAME.check_rows(one.row_table())
        np.testing.assert_allclose(one.policies(7).sum(axis=1), 1.0, rtol=1e-5)
        self.assertTrue((np.abs(one.results) <= 1.0).all())
        loader = torch.utils.data.DataLoader(
            ReplayDataset(self.store, connect_four.GAME, 32, 3), batch_size=None
        )
        samples = list(loader)
        self.assertEqual([sample["policy"].shape for sample in samples], [(32, 7)] * 3)
        self.assertEqual(pickle.loads(pickle.dumps(self.store)).stats().keys(), self.store.stats().keys())
        workers = torch.utils.data.DataLoader(
            ReplayDataset(self.store, connect_four.GAME, 32, 5), batch_size=None, num_workers=2, multiprocessing_context="fork"
        )
        self.assertEqual([len(sample["rows"]) for sample in workers], [32] * 5)
        planes = Expansion(connect_four.GAME.layout)(samples[0]["rows"])
        expected = connect_four.GAME.expand(samples[0]["rows"].numpy().astype(np.uint32))
        self.assertTrue((planes.numpy() == expected).all())

    def test_the_published_onnx_file_equals_the_module(self):
        manifest, files = read_checkpoint(self.run_.checkpoints, self.first, ["model.onnx"])
        self.assertEqual(manifest["files"]["model.onnx"]["bytes"], len(files["model.onnx"]))
        session = onnxruntime.InferenceSession(files["model.onnx"], providers=["CPUExecutionProvider"])
        rows = connect_four.GAME.batch(5).rows()
        logits, values = session.run(["policy_logits", "value"], {"indices": rows.astype(np.int32)})
        with torch.inference_mode():
            expected = self.network_of(self.first)(torch.from_numpy(connect_four.GAME.expand(rows)))
        np.testing.assert_allclose(logits, expected[0].numpy(), atol=1e-4)
        np.testing.assert_allclose(values, expected[1].numpy(), atol=1e-4)

    def test_an_export_of_the_store_is_a_data_set(self):
        folder = Path(self.folder) / "experience"
        command = [program_of("minuet"), "games", "export", "--numpy", folder, "--store", self.run_.store]
        subprocess.run(command, check=True, capture_output=True)
        samples = list(ExportedDataset(folder, 64, seed=2))
        described = json.loads((folder / "games.json").read_text())
        self.assertEqual(sum(len(sample["rows"]) for sample in samples), described["positions"])
        record = self.store.game(described["games"][0]["id"])
        rows = np.load(folder / "rows.npy")
        self.assertEqual(rows[: len(record.actions)].tolist(), record.row_table().tolist())
        for sample in samples[:3]:
            connect_four.GAME.check_rows(sample["rows"].numpy().astype(np.uint32))
            np.testing.assert_allclose(sample["policy"].sum(dim=1), 1.0, rtol=1e-5)
        first = {tuple(row.tolist()) for row in samples[0]["rows"]}
        again = {tuple(row.tolist()) for row in next(iter(ExportedDataset(folder, 64, seed=2)))["rows"]}
        self.assertEqual(first, again)

    def test_a_network_of_the_rust_learner_equals_its_onnx_file(self):
        self.learner.wait_for(1500)
        store = str(Path(self.folder) / "rust")
        self.run_.start(
            "learner", f'checkpoints.store="{store}"', "model.blocks=3", "model.filters=16",
            "model.global_pooling=4", 'model.value_head="wdl"', "learner.batch_size=64", "learner.min_positions=1000",
            "learner.checkpoint_steps=10", 'learner.device="cpu"', "learner.threads=1",
            'learner.precision="f32"', 'learner.folder="rust-learner"',
        )  # fmt: skip

        def trained():
            network = minuet.load_network(store)
            if network.manifest["step"] < 10:
                raise minuet.CheckpointError("the learner has not trained yet")
            return network

        network = self.run_.wait("learner", trained)
        _, files = read_checkpoint(store, network.manifest["version"], ["model.onnx"])
        session = onnxruntime.InferenceSession(files["model.onnx"], providers=["CPUExecutionProvider"])
        rows = positions(connect_four.GAME, 50)
        logits, values = session.run(["policy_logits", "value"], {"indices": rows.astype(np.int32)})
        with torch.inference_mode():
            expected = network(torch.from_numpy(connect_four.GAME.expand(rows)))
        np.testing.assert_allclose(logits, expected[0].numpy(), atol=1e-4)
        np.testing.assert_allclose(values, expected[1].numpy(), atol=1e-4)
        # That learner is still at work: it holds the label.
        with self.assertRaisesRegex(minuet.CheckpointError, "another learner"):
            minuet.publish(network, store, connect_four.GAME, 1, timeout=2.0)

    def test_the_tutorial_runs(self):
        text = (ROOT / "docs" / "guide" / "python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 7)
        self.learner.wait_for(1500)
        names = {"__name__": "tutorial"}
        # A run's folder as `minuet up` has it, whose learner has trained a tower.
        mine = Path(self.folder) / "mine"
        mine.mkdir()
        (mine / "run.toml").write_text(self.run_.config.read_text())
        (mine / "addresses.json").write_text(json.dumps({"inference": self.run_.inference, "replay": self.run_.store}))
        minuet.publish(tower("connect-four")[1], str(mine / "checkpoints"), connect_four.GAME, 1)
        written = io.StringIO()
        for block in blocks:
            for name, here in (("runs/mine", str(mine)), ("runs/from-python", str(Path(self.folder) / "tutorial"))):
                block = block.replace(name, here)
            with redirect_stdout(written):
                exec(compile(block, "docs/guide/python.md", "exec"), names)
        self.assertIn("not legal", written.getvalue())

    def test_mistakes_are_typed_exceptions_with_a_sentence(self):
        with self.assertRaisesRegex(minuet.ModelError, "plays connect-four .* othello"):
            self.evaluator.evaluate(minuet.Game("othello").batch(1))
        rows = connect_four.GAME.batch(1).rows()
        rows[0, 0] = 4000
        with self.assertRaisesRegex(minuet.ServerError, "position 0") as caught:
            self.evaluator.evaluate_rows(rows, np.arange(7), np.array([7]))
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        with self.assertRaisesRegex(minuet.RowError, "43 values|42 values"):
            self.evaluator.evaluate_rows(rows[:, :-1], np.arange(7), np.array([7]))
        with self.assertRaisesRegex(minuet.RowError, "counts sum"):
            self.evaluator.evaluate_rows(connect_four.GAME.batch(1).rows(), np.arange(6), np.array([7]))
        with self.assertRaises(minuet.ServerError) as caught:
            minuet.Evaluator(self.run_.inference, "no-such-model")
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaisesRegex(minuet.SettingsError, "sorted"):
            next(self.store.games("colour"))
        with self.assertRaisesRegex(minuet.SettingsError, "colour"):
            next(self.store.games(colour="white"))
        with self.assertRaisesRegex(minuet.SettingsError, "not the id of a game"):
            self.store.game("12")
        with self.assertRaises(minuet.ServerError) as caught:
            self.store.game("0" * 32)
        self.assertEqual(caught.exception.code, "NOT_FOUND")


if __name__ == "__main__":
    unittest.main()
