"""Networks of checkpoints, publishing, servers that cannot be used."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import onnxruntime
import torch
from running import Minuet
from torch import nn

import minuet
from minuet.evaluator import game_of_layout
from minuet.torch import Expansion, ExportedDataset, Tower
from minuet.torch.checkpoint import read_checkpoint
from minuet.torch.publishing import positions

SHAPES = {
    "connect-four": {"policy": {"dense": {"channels": 8}}, "value_head": "scalar"},
    "othello": {"policy": {"dense": {"channels": 8}}, "value_head": "wdl", "squeeze_excitation": 4},
    "chess": {"policy": {"planes": {"planes": 73}}, "value_head": "scalar", "global_pooling": 4},
    "paco-sako": {"policy": {"dense": {"channels": 8}}, "value_head": "wdl", "squeeze_excitation": 4, "global_pooling": 4},
}


def tower(name, **more):
    game = minuet.Game(name)
    shape = {
        "planes": game.planes,
        "actions": game.actions,
        "blocks": 3,
        "filters": 12,
        "squeeze_excitation": 0,
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
            self.assertTrue(torch.equal(in_folder(torch.zeros(1, game.planes, 8, 8))[0], loaded(torch.zeros(1, game.planes, 8, 8))[0]))

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

    def test_a_store_that_asks_for_a_token_is_told_it(self):
        (self.folder / "tokens").write_text("reader sample secret-of-the-reader-0123456789\n")
        (self.folder / "token").write_text("secret-of-the-reader-0123456789\n")
        (self.folder / "wrong").write_text("another-secret-0123456789-0123456789\n")
        run = Minuet(self.folder, security='tokens = "tokens"')
        self.addCleanup(run.stop)
        store = run.start_store(security={"token": str(self.folder / "token")})
        self.assertEqual(store.stats()["games"], 0)
        for security in ({}, {"token": str(self.folder / "wrong")}):
            with self.assertRaises(minuet.ServerError) as caught:
                minuet.ReplayStore(run.store, security=security).stats()
            self.assertIn(caught.exception.code, ("UNAUTHENTICATED", "PERMISSION_DENIED"))

    def test_a_model_of_a_newer_minuet_is_refused_with_a_sentence(self):
        layout = minuet.Game("connect-four").layout
        for change, words in (
            ({"game": "go"}, "does not know"),
            ({"options": 3}, "does not write"),
            ({"actions": 9}, "update minuet"),
            ({"new_field": 1}, "update minuet"),
        ):
            with self.assertRaisesRegex(minuet.ModelError, words):
                game_of_layout({**layout, **change}, "server")
        newer = {"version": "1", "game": "connect-four", "layout": json.dumps({**layout, "new": 1}), "actions": 7, "step": 1}
        with mock.patch.object(minuet.evaluator, "EvaluatorClient") as client:
            client.return_value.describe.return_value = newer
            with self.assertRaisesRegex(minuet.ModelError, "update minuet"):
                minuet.Evaluator("127.0.0.1:1")

    def test_a_dead_server_is_a_server_error_with_its_code(self):
        for call in (
            lambda: minuet.Evaluator("127.0.0.1:9", timeout=5.0),
            lambda: minuet.ReplayStore("127.0.0.1:9", timeout=5.0).stats(),
        ):
            with self.assertRaisesRegex(minuet.ServerError, "127.0.0.1:9") as caught:
                call()
            self.assertIn(caught.exception.code, ("UNAVAILABLE", "DEADLINE_EXCEEDED"))
        with self.assertRaisesRegex(minuet.SettingsError, "host:port"):
            minuet.ReplayStore("nowhere")
        with self.assertRaisesRegex(minuet.SettingsError, "plaintext"):
            minuet.ReplayStore("10.0.0.1:1")
        with self.assertRaisesRegex(minuet.SettingsError, "security"):
            minuet.ReplayStore("127.0.0.1:1", security={"colour": 1})

    def test_an_incomplete_export_is_refused(self):
        with self.assertRaisesRegex(minuet.CheckpointError, "no complete export"):
            ExportedDataset(self.folder, 8)


if __name__ == "__main__":
    unittest.main()
