"""A compose project for tests: starts and stops containers, reads their metrics and their games."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .images import DEPLOY, RELEASE, ROLES, Images, run, say
from .prometheus import write_configuration

# Longest wait in seconds; a test that waits this long is assumed to hang.
TIMEOUT_S = 600

# A run that publishes a trained checkpoint within seconds, with the shipped file's addresses and folders.
TINY_KEYS = {
    "model": {"blocks": 1, "filters": 8, "global_pooling": 0, "value_hidden": 8},
    "search": {"visits": 6, "max_actions": 120},
    # Many streams, so that each of a few servers gets some of them.
    "actor": {"games_per_thread": 4, "threads": 4},
    # No game may leave the window during the test, which looks for all games.
    "replay": {"window_positions": 100_000_000},
    "inference": {"provider": '"cpu"', "max_batch": 64},
    "learner": {
        "batch_size": 32, "threads": 1, "min_positions": 200, "checkpoint_steps": 5, "warmup_steps": 2,
    },
    "checkpoints": {"poll_ms": 200},
    "rating": {"provider": '"cpu"', "visits": 2, "max_games": 2},
}  # fmt: skip

# Cores of a container of each role. Servers are slower than the actors, so that more servers get more done. The learner has a whole core,
# because its health check loads libtorch.
CORES = {"INFERENCE": "0.3", "LEARNER": "1", "ACTOR": "0.2", "RATING": "0.2", "STUDIO": "0.3"}

# Longest time in seconds until each of several healthy inference servers has a share of the positions.
SHARE_S = 30
EVALUATED = "minuet_inference_batch_positions_total"

# Counts of requests and games that went wrong.
FAILURES = {
    "actor": ("minuet_actor_request_retries_total", "minuet_actor_malformed_replies_total", "minuet_actor_games_refused_total"),
    "inference-server": ("minuet_inference_refused_total", "minuet_inference_device_failures_total", "minuet_inference_not_finite_total"),
    "replay-store": ("minuet_replay_games_refused_total",),
}

# Log filter of actors, which then write down which games the store has acknowledged.
ACTOR_LOG = "info,actor::spool::sender=debug"


def tiny_configuration(shipped: Path = DEPLOY / "compose" / "run.toml") -> str:
    """Return a shipped configuration with `TINY_KEYS` in place of its own values."""
    section = ""
    lines = []
    for line in shipped.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            lines += [line, *(f"{key} = {value}" for key, value in TINY_KEYS.get(section, {}).items())]
        elif line.split(" = ")[0] not in TINY_KEYS.get(section, {}):
            lines.append(line)
    return "\n".join(lines) + "\n"


def wait_for_shares(count: Callable[[], list[float]]) -> None:
    """Wait until each of the servers whose evaluated positions `count` returns evaluates a tenth of them; fail after `SHARE_S`."""
    began, before, shares = time.monotonic(), count(), []
    while time.monotonic() - began < SHARE_S:
        time.sleep(3)
        now = count()
        grown = [after - earlier for after, earlier in zip(now, before)]
        before = now
        shares = [part / max(sum(grown), 1) for part in grown]
        if min(shares) >= 0.1:
            say(f"shares after {time.monotonic() - began:.0f} s: " + ", ".join(f"{share:.2f}" for share in shares))
            return
    raise AssertionError(f"after {SHARE_S} s the servers' shares of the positions are {shares}")


class AcknowledgedGames:
    """Ids of the games that actors wrote into their logs when the store acknowledged them."""

    MESSAGE = "a game is acknowledged"

    def __init__(self):
        self.ids: set[str] = set()

    def read(self, log: str) -> None:
        """Add the games in the log of an actor, one JSON object a line. Other lines are ignored."""
        for line in log.splitlines():
            if self.MESSAGE in line:
                self.ids.add(json.loads(line)["fields"]["game"])


class Stack:
    """A compose project of the shipped file, with a tiny run's configuration, few cores, and Debian's Prometheus."""

    SERVICES = (*ROLES, "rating", "prometheus", "studio")

    def __init__(self, folder: Path, images: Images):
        self.images = images
        self.project = f"minuet-{images.tag}"
        self.network = f"{self.project}_minuet"
        configuration = folder / "run.toml"
        configuration.write_text(tiny_configuration())
        configuration.chmod(0o644)
        folder.chmod(0o755)
        self.volume = f"{configuration}:/etc/minuet/run.toml:ro"
        override = {"version": "3.9", "services": {role: {"volumes": [self.volume]} for role in (*ROLES, "rating", "studio")}}
        override["services"]["actor"]["environment"] = {"MINUET_LOG": ACTOR_LOG}
        write_configuration(folder / "prometheus")
        override["services"]["prometheus"] = {"image": images.prometheus, "volumes": [f"{folder / 'prometheus'}:/etc/prometheus:ro"]}
        (folder / "test.yml").write_text(json.dumps(override))
        self.files = ["-f", str(DEPLOY / "docker-compose.yml"), "-f", str(folder / "test.yml")]
        self.environment = {
            **images.environment,
            # No fixed port on the host, because another stack may use it.
            "MINUET_INFERENCE_PORT": "0",
            "MINUET_PROMETHEUS_PORT": "0",
            "MINUET_STUDIO_PORT": "0",
            **{f"MINUET_{role}_CPUS": cores for role, cores in CORES.items()},
        }
        # Containers of each role that has another number than one.
        self.scales: dict[str, int] = {}

    def compose(self, *words: str) -> str:
        # Compose 1 applies the limits of cores and memory only with --compatibility.
        return run("docker-compose", "--compatibility", "-p", self.project, *self.files, *words, env=self.environment)

    def command(self, *words: str) -> dict:
        """Run `minuet … --json` in a container and return its output."""
        output = self.compose("--profile", "command", "run", "--rm", "-T", "command", *words, "--json")
        return json.loads(output.splitlines()[-1])

    def up(self, **scales: int) -> None:
        """Start the stack, or change how many containers of a role (`inference_server=3`) it has."""
        self.scales |= {role.replace("_", "-"): count for role, count in scales.items()}
        words = [word for role, count in self.scales.items() for word in ("--scale", f"{role}={count}")]
        # Named services start without their profile.
        self.compose("up", "--detach", "--no-build", *words, *self.SERVICES)

    def containers(self, role: str, *more: str) -> list[str]:
        """Return the running containers of a role; `more` are further filters."""
        labels = ["--filter", f"label=com.docker.compose.project={self.project}", "--filter", f"label=com.docker.compose.service={role}"]
        return sorted(run("docker", "ps", "--quiet", *labels, *more).split())

    def address(self, container: str) -> str:
        networks = json.loads(run("docker", "inspect", container))[0]["NetworkSettings"]["Networks"]
        return next(iter(networks.values()))["IPAddress"]

    def gateway(self) -> str:
        """Return the address of this machine on the stack's network."""
        network = json.loads(run("docker", "network", "inspect", self.network))[0]
        return network["IPAM"]["Config"][0]["Gateway"]

    @contextmanager
    def actor_at(self, inference: str) -> Iterator[str]:
        """Run one more actor for the time of the block, with another address of the inference server."""
        words = ["--detach", "--network", self.network, "--volume", self.volume, "--cpus", CORES["ACTOR"], "--env", f"MINUET_LOG={ACTOR_LOG}"]
        actor = run("docker", "run", *words, f"minuet-actor:{self.images.tag}", f'--set=inference.address="{inference}"').strip()
        try:
            yield actor
        finally:
            run("docker", "rm", "--force", "--volumes", actor)

    def page(self, container: str) -> list[str]:
        """Return the lines of a container's page of metrics."""
        with urllib.request.urlopen(f"http://{self.address(container)}:9100/metrics", timeout=5) as page:
            return page.read().decode().splitlines()

    def fastest(self, container: str, name: str) -> float:
        """Return the upper end of the lowest bucket of a histogram that is not empty."""
        bucket = re.compile(rf'{name}_bucket{{le="([^"]+)"}} (\d+)')
        found = (bucket.fullmatch(line) for line in self.page(container))
        return min(float(match[1]) for match in found if match and int(match[2]) > 0)

    def metric(self, containers: list[str], name: str) -> float:
        """Return a metric's sum over containers; -1 while one of them does not answer."""
        total = 0.0
        for container in containers:
            try:
                lines = self.page(container)
            except OSError:
                return -1
            total += sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))
        return total

    def games(self) -> list[dict]:
        """Return all stored games, read through the store's service."""
        address = f"{self.address(self.containers('replay-store')[0])}:50052"
        # The [security] section of this file allows plaintext on the stack's network.
        environment = {**os.environ, "MINUET_CONFIG": str(DEPLOY / "compose" / "run.toml")}
        listed = run(str(RELEASE / "minuet"), "games", "list", "--store", address, "--limit", "1000000", "--json", env=environment)
        return [json.loads(line) for line in listed.splitlines()]

    def game_ids(self) -> list[str]:
        return [game["id"] for game in self.games()]

    def acknowledged(self, games: AcknowledgedGames) -> set[str]:
        """Return the ids of all games that were acknowledged to actors."""
        for actor in self.containers("actor"):
            self.read_log(actor, games)
        return set(games.ids)

    def read_log(self, actor: str, games: AcknowledgedGames) -> None:
        """Add the games that were acknowledged to an actor, which may have ended."""
        # Roles write their logs to stderr.
        log = subprocess.run(["docker", "logs", actor], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        games.read(log.stderr)

    def signal(self, signal: str, containers: list[str]) -> None:
        for container in containers:
            run("docker", "kill", "--signal", signal, container)

    def wait(self, what: str, holds) -> None:
        say(f"waiting: {what}")
        deadline = time.monotonic() + TIMEOUT_S
        failure: Exception | None = None
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
                failure = None
            except (AssertionError, OSError, IndexError, KeyError, json.JSONDecodeError) as error:
                failure = error  # expected for a short time after a kill
            time.sleep(1)
        logs = self.compose("logs", "--tail", "15", "--no-color")
        raise AssertionError(f"timed out: {what}\n{failure or ''}\n{logs}")

    def healthy(self, role: str, count: int) -> bool:
        found = self.containers(role)
        states = [json.loads(run("docker", "inspect", container))[0]["State"] for container in found]
        return len(found) == count and all(state["Health"]["Status"] == "healthy" for state in states)

    def down(self) -> None:
        self.compose("--profile", "command", "--profile", "rating", "--profile", "observe", "--profile", "studio", "down", "--volumes", "--timeout", "20")


