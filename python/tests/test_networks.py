"""Networks of checkpoints, and publishing."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from running import Minuet
from torch import nn

import minuet
from minuet.torch import Expansion, ExportedDataset, FishEye, NetworkEvaluator, Tower
from minuet.torch.checkpoint import read_checkpoint
from minuet.torch.publishing import positions

SHAPES = {
    "connect-four": {"policy": {"dense": {"channels": 8}}, "value_head": "scalar"},
    "go": {"policy": {"planes": {"planes": 1, "globals": 1}}, "value_head": "wdl", "global_pooling": 4},
    "othello": {"policy": {"dense": {"channels": 8}}, "value_head": "wdl"},
    "chess": {"policy": {"planes": {"planes": 73}}, "value_head": "scalar", "global_pooling": 4},
    "paco-sako": {"policy": {"dense": {"channels": 8}}, "value_head": "wdl", "global_pooling": 4},
}


def tower(name, **more):
    game = minuet.Game(name)
    shape = {
        "height": game.height,
        "width": game.width,
        "global_pooling": 0,
        "planes": game.planes,
        "actions": game.actions,
        "blocks": 3,
        "filters": 12,
        "value_channels": 2,
        "value_hidden": 16,
        **SHAPES[name],
        **more,
    }
    torch.manual_seed(5)
    network = Tower(shape)
    # Running statistics that are not those of a new network.
    network.train()
    with torch.no_grad():
        network(torch.from_numpy(game.expand(positions(game, 64))))
    return game, network.eval()


class Networks(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_expansion_in_torch_equals_the_reference_in_every_game_of_planes(self):
        checked = 0
        for name in minuet.games():
            for options in range(8 if name == "paco-sako" else 1):
                game = minuet.Game(name, options)
                if game.planes is None:
                    continue
                rows = positions(game, 100, seed=options)
                planes = Expansion(game.layout)(torch.from_numpy(rows.astype(np.int32)))
                self.assertTrue((planes.numpy() == game.expand(rows)).all(), name)
                checked += 1
        self.assertGreaterEqual(checked, 12)

    def test_a_published_tower_is_loaded_again_and_equals_its_onnx_file(self):
        for name in SHAPES:
            game, network = tower(name)
            store = str(self.folder / name)
            version = minuet.publish(network, store, game, 3)
            loaded = minuet.load_network(store)
            self.assertEqual(loaded.manifest["version"], version)
            rows = positions(game, 20, seed=9)
            _, files = read_checkpoint(store, version, ["model.onnx"])
            session = onnxruntime.InferenceSession(files["model.onnx"], providers=["CPUExecutionProvider"])
            logits, values = session.run(["policy_logits", "value"], {"indices": rows.astype(np.int32)})
            with torch.inference_mode():
                by_torch = loaded(torch.from_numpy(game.expand(rows)))
            np.testing.assert_allclose(logits, by_torch[0].numpy(), atol=2e-4)
            np.testing.assert_allclose(values, by_torch[1].numpy(), atol=1e-4)
            in_folder = minuet.load_network(self.folder / name / "versions" / version)
            empty = torch.zeros(1, game.planes, game.height, game.width)
            self.assertTrue(torch.equal(in_folder(empty)[0], loaded(empty)[0]))

    def test_networks_that_cannot_be_published_are_refused_and_nothing_is_visible(self):
        game, network = tower("connect-four")
        store = str(self.folder / "refused")

        class Loud(nn.Module):
            def forward(self, planes):
                logits, value = network(planes)
                return logits, 3.0 * value / value.abs()

        with torch.no_grad():
            broken = tower("connect-four")[1]
            broken.value.output.bias.fill_(float("nan"))
        for module, words in ((Loud(), "tanh"), (broken, "not finite")):
            with self.assertRaisesRegex(minuet.CheckpointError, words):
                minuet.publish(module, store, game, 1)
        with self.assertRaises(minuet.CheckpointError):
            minuet.load_network(store)
        with self.assertRaises(minuet.RowError):
            minuet.publish(network, store, minuet.Game("generator"), 1)

    def test_a_fish_eye_network_of_the_learner_equals_its_onnx_file(self):
        self.fish_eye(0, {})

    def test_a_fish_eye_network_that_takes_examples_equals_its_onnx_file(self):
        pairs = [{"input": [[color]], "output": [[color, color]]} for color in (3, 4, 5)]
        self.fish_eye(1, {"second_target": [[5]], "examples": pairs}, "game.options=1", "game.rules.tasks=50")

    def fish_eye(self, options, problem, *settings):
        run = Minuet(self.folder, "generator")
        self.addCleanup(run.stop)
        run.start_store(*settings)
        run.start(
            "learner", "model.blocks=2", "model.filters=16", "learner.batch_size=64", 'learner.device="cpu"', "learner.threads=1",
            'learner.precision="f32"', *settings,
        )  # fmt: skip
        network = run.wait("learner", lambda: minuet.load_network(run.checkpoints))
        self.assertIsInstance(network, FishEye)
        game, random = minuet.Game("generator", options), np.random.default_rng(6)
        # Every third position has no examples, even if the network takes them.
        fields = [problem if number % 3 else {} for number in range(20)]
        states = [game.start(target=[[1, 2], [3, 4]], **more) for more in fields]
        for number, state in enumerate(states):
            for _ in range(number):
                actions = [action for action in state.legal_actions().tolist() if not self.ends(state, action)]
                state.play(int(random.choice(actions)))
        batch = minuet.Batch(states)
        inputs = game.inputs(batch.rows(), batch.row_lengths())
        _, files = read_checkpoint(run.checkpoints, network.manifest["version"], ["model.onnx"])
        session = onnxruntime.InferenceSession(files["model.onnx"], providers=["CPUExecutionProvider"])
        logits, values = session.run(["policy_logits", "value"], inputs)
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        with torch.inference_mode():
            by_torch = network(tensors)
        self.assertGreater(logits.std(), 0.0)
        np.testing.assert_allclose(logits, by_torch[0].numpy(), atol=1e-4)
        np.testing.assert_allclose(values, by_torch[1].numpy(), atol=1e-4)

        evaluator = NetworkEvaluator(network)
        priors, evaluated = evaluator(batch)
        np.testing.assert_allclose(evaluated, values.ravel(), atol=1e-4)
        # The last position by hand: its imps are the last ones, and its entries are moves of imps.
        entries = states[-1].legal_entries()
        own = logits[inputs["root"][-1] :].ravel()[entries]
        expected = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
        np.testing.assert_allclose(priors[-len(entries) :], expected, atol=1e-4)
        search = minuet.Search(states[3], evaluator, visits=30)
        search.run()
        self.assertEqual(search.visits_done, 30)

    @staticmethod
    def ends(state, action):
        after = state.copy()
        after.play(action)
        return after.outcome is not None

    def test_a_damaged_checkpoint_and_a_wrong_place_are_named(self):
        game, network = tower("connect-four")
        version = minuet.publish(network, str(self.folder / "store"), game, 1)
        checkpoint = self.folder / "store" / "versions" / version
        weights = checkpoint / "weights.safetensors"
        bytes_ = bytearray(weights.read_bytes())
        bytes_[-1] ^= 1
        weights.write_bytes(bytes_)
        for place in (checkpoint, self.folder / "store"):
            with self.assertRaises(minuet.CheckpointError):
                minuet.load_network(place)
        with self.assertRaisesRegex(minuet.CheckpointError, "neither"):
            minuet.load_network(self.folder)

    def test_an_incomplete_export_is_refused(self):
        with self.assertRaisesRegex(minuet.CheckpointError, "not a complete export"):
            ExportedDataset(self.folder, 8)


if __name__ == "__main__":
    unittest.main()
