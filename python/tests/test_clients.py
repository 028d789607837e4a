"""The clients against real servers: TLS and tokens, restarts, asyncio, newer servers, dead ones; a store on s3://."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import torch
from running import ROOT, Minuet, skip
from test_networks import tower

import minuet
from minuet.evaluator import game_of_layout
from minuet.torch.checkpoint import read_checkpoint

GAME = minuet.Game("connect-four")


class Changing:
    """A proxy that replaces words in the answers of a server, so that they are those of another server."""

    def __init__(self, address, old, new):
        assert len(old) == len(new), "frames keep their lengths"
        host, port = address.split(":")
        self.server, self.words = (host, int(port)), (old, new)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.server)
            threading.Thread(target=self.carry, args=(client, server, lambda text: text), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, lambda text: text.replace(*self.words)), daemon=True).start()

    @staticmethod
    def carry(one, other, change):
        try:
            while text := one.recv(1 << 16):
                other.sendall(change(text))
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class Plain(unittest.TestCase):
    """A store with games, and an inference server, in plaintext on this machine."""

    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.run_ = Minuet(cls.folder)
        cls.addClassCleanup(cls.run_.stop)
        minuet.publish(tower("connect-four")[1], cls.run_.checkpoints, GAME, 1)
        cls.store = cls.run_.start_store()
        cls.evaluator = cls.run_.start_inference()
        cls.run_.start("actor")

        def played():
            found = cls.store.stats(awaits_positions=True)["positions_inserted"]
            if found < 300:
                raise minuet.ServerError(f"{found} positions")

        cls.run_.wait("actor", played)
        cls.run_.kill("actor")

    def test_calls_outlast_a_restart_of_the_inference_server(self):
        evaluator = minuet.Evaluator(self.run_.inference, timeout=100.0)
        before = evaluator.evaluate(GAME.batch(3))
        self.run_.kill("inference-server")
        found = []
        caller = threading.Thread(target=lambda: found.append(evaluator.evaluate(GAME.batch(3))))
        caller.start()
        self.run_.start("inference-server")
        caller.join()
        self.assertEqual(found[0].values.tolist(), before.values.tolist())

    def test_calls_and_streams_outlast_a_restart_of_the_store(self):
        options = {"seed": 5, "purpose": "trained", "decisions": True}
        expected = list(self.store.sample(20_000, 12, **options))
        summaries = list(self.store.games())
        store = minuet.ReplayStore(self.run_.store, timeout=100.0)
        store.stats()
        stream = store.sample(20_000, 12, **options)
        found = [next(stream)]
        self.run_.kill("replay-store")
        starting = threading.Thread(target=self.run_.start, args=("replay-store",))
        starting.start()
        found += stream
        starting.join()
        for one, other in zip(expected, found, strict=True):
            self.assertEqual(one.number, other.number)
            self.assertTrue((one.games == other.games).all() and (one.plies == other.plies).all())
            self.assertTrue((one.decisions.values == other.decisions.values).all())
        self.assertEqual(list(store.games()), summaries)

    def test_a_thousand_calls_wait_at_the_same_time_without_threads(self):
        states = [GAME.start() for _ in range(7)]
        for column, state in enumerate(states):
            state.play(column)
        expected = self.evaluator.evaluate(states)

        async def all_at_once():
            threads = threading.active_count()
            calls = [asyncio.ensure_future(self.evaluator.evaluate_async(states[number % 7])) for number in range(1000)]
            await asyncio.sleep(0)
            # Threads of earlier tests may end meanwhile.
            self.assertLessEqual(threading.active_count(), threads)
            calls[500].cancel()
            return await asyncio.gather(*calls, return_exceptions=True)

        found = asyncio.run(all_at_once())
        for number, evaluation in enumerate(found):
            if number == 500:
                self.assertIsInstance(evaluation, asyncio.CancelledError)
            else:
                np.testing.assert_allclose(evaluation.values, expected.values[[number % 7]], atol=1e-5)

    def test_an_exception_reaches_the_caller_in_asyncio(self):
        evaluator = minuet.Evaluator(self.run_.inference)
        evaluator.model = "no-such-model"
        with self.assertRaises(minuet.ServerError) as caught:
            asyncio.run(evaluator.evaluate_async(GAME.start()))
        self.assertEqual(caught.exception.code, "NOT_FOUND")

    def test_a_model_of_a_newer_server_is_refused_with_a_sentence(self):
        self.run_.wait("inference-server", lambda: minuet.Evaluator(self.run_.inference))
        for old, new, words in (
            (b'"entries":42', b'"entries":41', "update minuet"),
            (b'"planes":', b'"boards":', "update minuet"),
            (b'"connect-four"', b'"connect-five"', "does not know"),
            (b'"options":1', b'"options":7', "does not write"),
        ):
            proxy = Changing(self.run_.inference, old, new)
            self.addCleanup(proxy.close)
            with self.assertRaisesRegex(minuet.ModelError, words):
                minuet.Evaluator(proxy.address)

    def test_a_layout_of_a_newer_version_is_refused_with_a_sentence(self):
        with self.assertRaisesRegex(minuet.ModelError, "update minuet"):
            game_of_layout({**GAME.layout, "new_field": 1}, "server")

    def test_a_game_of_a_newer_store_is_refused_with_a_sentence(self):
        summary = next(self.store.games())
        result = {"first_won": 1, "second_won": 2, "draw": 3}[summary.result]
        # On the wire: field 4, the number of positions, and field 5, the result.
        old = bytes([0x20, summary.positions, 0x28, result])
        proxy = Changing(self.run_.store, old, old[:3] + b"\x6f")
        self.addCleanup(proxy.close)
        with self.assertRaisesRegex(minuet.ServerError, "results of kind 111.*update minuet"):
            list(minuet.ReplayStore(proxy.address).games())


class Secured(unittest.TestCase):
    """Servers with mutual TLS and tokens, as the Kubernetes manifests have them."""

    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        if shutil.which("openssl") is None:
            skip("openssl is not installed")
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        script = ROOT / "deploy" / "kubernetes" / "secrets.sh"
        for folder in ("secrets", "others"):
            subprocess.run(["sh", script, cls.folder / folder, "notebook"], check=True, capture_output=True)
        cls.run_ = Minuet(cls.folder)
        cls.addClassCleanup(cls.run_.stop)
        minuet.publish(tower("connect-four")[1], cls.run_.checkpoints, GAME, 1)
        cls.store = cls.run_.start_store(*cls.settings("replay-store"), security=cls.client("learner", "replay-store"))
        cls.evaluator = cls.run_.start_inference(*cls.settings("inference-server"), security=cls.client("notebook", "inference-server"))

    @staticmethod
    def settings(role):
        files = {"certificate": f"{role}.crt", "key": f"{role}.key", "client_ca": "ca.crt", "tokens": f"{role}.tokens"}
        return [f'security.{name}="secrets/{file}"' for name, file in files.items()]

    @classmethod
    def client(cls, name, server, folder="secrets"):
        files = {"ca": "ca.crt", "client_certificate": f"{name}.crt", "client_key": f"{name}.key", "token": f"{name}.token"}
        return {**{key: str(cls.folder / folder / file) for key, file in files.items()}, "server_name": server}

    def refused(self, security, server="replay-store"):
        address = self.run_.store if server == "replay-store" else self.run_.inference
        with self.assertRaises(minuet.ServerError) as caught:
            if server == "replay-store":
                minuet.ReplayStore(address, security=security).stats()
            else:
                minuet.Evaluator(address, security=security)
        self.assertIn(address, str(caught.exception))
        return caught.exception.code

    def test_clients_with_certificates_and_tokens_are_served(self):
        self.assertEqual(self.store.stats()["games"], 0)
        evaluation = self.evaluator.evaluate(GAME.batch(2000))
        alone = asyncio.run(self.evaluator.evaluate_async(GAME.start()))
        np.testing.assert_allclose(evaluation.values, np.repeat(alone.values, 2000), atol=1e-5)

    def test_clients_without_certificate_authority_or_tls_are_not_connected(self):
        good = self.client("notebook", "inference-server")
        for change in (
            {"client_certificate": "", "client_key": ""},
            {"ca": str(self.folder / "others" / "ca.crt")},
            {"client_certificate": str(self.folder / "others" / "notebook.crt"), "client_key": str(self.folder / "others" / "notebook.key")},
            {"server_name": "replay-store"},
        ):
            self.assertEqual(self.refused({**good, **change}, "inference-server"), "UNAVAILABLE", change)
        self.assertEqual(self.refused({}, "inference-server"), "UNAVAILABLE")

    def test_tokens_have_rights(self):
        learner = self.client("learner", "replay-store")
        self.assertEqual(self.refused({**learner, "token": ""}), "UNAUTHENTICATED")
        self.assertEqual(self.refused({**learner, "token": str(self.folder / "others" / "learner.token")}), "UNAUTHENTICATED")
        actor = minuet.ReplayStore(self.run_.store, security=self.client("actor", "replay-store"))
        with self.assertRaises(minuet.ServerError) as caught:
            next(actor.sample(8, 1))
        self.assertEqual(caught.exception.code, "PERMISSION_DENIED")

    def test_files_that_cannot_be_used_are_settings_errors(self):
        good = self.client("notebook", "inference-server")
        for change in ({"ca": str(self.folder / "none.crt")}, {"token": str(self.folder / "none")}, {"ca": ""}):
            with self.assertRaises(minuet.SettingsError):
                minuet.Evaluator(self.run_.inference, security={**good, **change})

    def test_the_run_of_the_environment_says_how_to_connect(self):
        keys = self.client("notebook", "inference-server")
        config = self.folder / "client.toml"
        text = self.run_.config.read_text() + "".join(["\n[security]\n", *(f'{key} = "{value}"\n' for key, value in keys.items())])
        config.write_text(text)
        code = "import minuet, sys; print(minuet.Evaluator(sys.argv[1]).evaluate(minuet.Game('connect-four').start()).values[0])"
        command = [sys.executable, "-c", code, self.run_.inference]
        done = subprocess.run(command, env={**os.environ, "MINUET_CONFIG": str(config)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(float(done.stdout), float(self.evaluator.evaluate(GAME.start()).values[0]), places=5)


class WithoutServers(unittest.TestCase):
    def test_a_dead_server_is_a_server_error_with_its_code(self):
        # Without an answer before, a call is not repeated until its deadline.
        for call in (
            lambda: minuet.Evaluator("127.0.0.1:9", timeout=1e9),
            lambda: minuet.ReplayStore("127.0.0.1:9", timeout=1e9).stats(),
            lambda: next(minuet.ReplayStore("127.0.0.1:9", timeout=1e9).sample(8, 1)),
        ):
            with self.assertRaisesRegex(minuet.ServerError, "127.0.0.1:9") as caught:
                call()
            self.assertEqual(caught.exception.code, "UNAVAILABLE")

    def test_a_server_that_does_not_answer_ends_the_call_at_its_deadline(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            store = minuet.ReplayStore(f"127.0.0.1:{silent.getsockname()[1]}", timeout=0.5)
            with self.assertRaisesRegex(minuet.ServerError, "within 0.5 s") as caught:
                store.stats()
            self.assertEqual(caught.exception.code, "DEADLINE_EXCEEDED")

    def test_addresses_and_settings_that_cannot_be_used_are_named(self):
        with self.assertRaisesRegex(minuet.SettingsError, "host:port"):
            minuet.ReplayStore("nowhere")
        with self.assertRaisesRegex(minuet.SettingsError, "plaintext"):
            minuet.ReplayStore("10.0.0.1:1")
        with self.assertRaisesRegex(minuet.SettingsError, "security"):
            minuet.ReplayStore("127.0.0.1:1", security={"colour": 1})
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "run.toml").touch()
            with self.assertRaisesRegex(minuet.SettingsError, "not at work.*minuet up"):
                minuet.ReplayStore(folder)

    def test_checkpoints_travel_through_an_object_store(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import python_env

        try:
            python = python_env.interpreter("objects")
        except python_env.Unreachable as error:
            skip(f"no object store: {error}")
        script = ROOT / "checkpoints" / "tests" / "common" / "s3_server.py"
        server = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        port = server.stdout.readline().strip()
        server.stdout.close()
        self.addCleanup(server.stdin.close)
        store = f"s3://checkpoints/python?endpoint=http://127.0.0.1:{port}&allow_http=true"
        torch.set_num_threads(1)
        network = tower("connect-four")[1]
        credentials = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        os.environ.update(credentials)
        self.addCleanup(lambda: [os.environ.pop(name) for name in credentials])
        version = minuet.publish(network, store, GAME, 4)
        loaded = minuet.load_network(store)
        self.assertEqual(loaded.manifest["version"], version)
        self.assertEqual(read_checkpoint(store, version, [])[0]["step"], 4)
        planes = torch.from_numpy(GAME.batch(3).planes())
        with torch.inference_mode():
            self.assertTrue(torch.equal(loaded(planes)[0], network(planes)[0]))
        with self.assertRaisesRegex(minuet.CheckpointError, "nothing-here"):
            minuet.load_network(store.replace("/python", "/nothing-here"))


if __name__ == "__main__":
    unittest.main()
