"""A running Minuet without a learner: store, inference server and actors as processes, on free ports, in a folder of its own."""

import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

import minuet

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("MINUET_PROGRAMS", ROOT / "target" / "release"))
#: Longest wait for a role to answer, in seconds.
PATIENCE = 120


def skip(reason):
    """Skips a test, and tells `make test`. Fails where skips are forbidden."""
    if os.environ.get("MINUET_FORBID_SKIPS") == "1":
        raise AssertionError(f"{reason}, and MINUET_FORBID_SKIPS is set")
    if "MINUET_SKIPS" in os.environ:
        with open(os.environ["MINUET_SKIPS"], "a") as file:
            file.write(f"python: {reason}\n")
    raise unittest.SkipTest(reason)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def program_of(name):
    """Path of a program; skips the test if it is not built."""
    program = PROGRAMS / name
    if not program.exists():
        skip(f"{program} is not built")
    return program


class Minuet:
    """The roles of one run. `stop` ends them."""

    def __init__(self, folder, game="connect-four", more="", **sections):
        self.folder = Path(folder)
        self.processes = []
        inference, store = free_ports(2)
        self.inference, self.store = f"127.0.0.1:{inference}", f"127.0.0.1:{store}"
        self.checkpoints = str(self.folder / "checkpoints")
        (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        tables = {
            "run": "version = 1\nseed = 7",
            "game": f'name = "{game}"\noptions = {minuet.Game(game).options}',
            "search": "visits = 24\nleaves = 4",
            "actor": "threads = 1\ngames_per_thread = 16\ncache_mib = 8\nrows_per_request = 32",
            "inference": f'address = "{self.inference}"\nprovider = "cpu"\nmax_batch = 64',
            "replay": f'address = "{self.store}"\nmin_free_mib = 0\nheld_out = 0.0',
            "checkpoints": "poll_ms = 100",
        }
        for name, text in sections.items():
            tables[name] = f"{tables.get(name, '')}\n{text}"
        text = "\n".join(f"[{name}]\n{body}\n" for name, body in tables.items())
        self.config = self.folder / "run.toml"
        self.config.write_text(text + more)

    def start(self, role, *settings):
        """Starts a role; `settings` are texts `section.key=value`."""
        program = program_of(f"minuet-{role}")
        log = open(self.folder / f"{role}.log", "w")
        runtime = ROOT / "third_party" / "ort" / "lib" / "libonnxruntime.so"
        process = subprocess.Popen(
            [program, "--config", self.config, "--supervised", *(f"--set={setting}" for setting in settings)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "ORT_DYLIB_PATH": str(runtime)},
        )
        log.close()
        self.processes.append((role, process))

    def log(self, role):
        return (self.folder / f"{role}.log").read_text()

    def wait(self, role, ready):
        """Waits until `ready()` gives a value without ServerError. Fails with the role's log if it ends or takes too long."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return ready()
            except (minuet.ServerError, minuet.CheckpointError) as error:
                ended = [name for name, process in self.processes if process.poll() is not None]
                if ended or time.monotonic() > deadline:
                    raise AssertionError(f"{role} does not answer: {error}\n{self.log(role)}") from error
                time.sleep(0.1)

    def start_store(self, *settings, **options):
        self.start("replay-store", *settings)
        return self.wait("replay-store", lambda: self._stats(**{"timeout": PATIENCE, **options}))

    def _stats(self, **options):
        store = minuet.ReplayStore(self.store, **options)
        store.stats()
        return store

    def start_inference(self, *settings, **options):
        self.start("inference-server", *settings)
        return self.wait("inference-server", lambda: minuet.Evaluator(self.inference, **{"timeout": PATIENCE, **options}))

    def kill(self, role):
        """Kills a role at once, as a crash would."""
        for each in [each for each in self.processes if each[0] == role]:
            each[1].kill()
            each[1].wait()
            each[1].stdin.close()
            self.processes.remove(each)

    def stop(self):
        for _, process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()
        self.processes.clear()
