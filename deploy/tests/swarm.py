"""A swarm of one node with the shipped stack file, TLS and tokens: replicas, updates, roll-backs, a killed store."""

from __future__ import annotations

import json
import subprocess
import time
import unittest
from pathlib import Path

from .images import DEPLOY, Images, run, say
from .stack import CORES, TIMEOUT_S, AcknowledgedGames, tiny_configuration

STACK = "minuet-swarm-test"
LABELS = ("store", "inference", "learner", "actor")
# Settings of the command line that reads the games, in a container of its own.
COMMAND = """[security]
plaintext = "loopback"
ca = "/secrets/ca.crt"
client_certificate = "/secrets/command.crt"
client_key = "/secrets/command.key"
token = "/secrets/command.token"
"""


class Swarm:
    """The stack in a swarm that begins and ends with a `with` statement."""

    def __init__(self, folder: Path, images: Images):
        self.folder = folder
        self.images = images
        self.secrets = folder / "secrets"

    @staticmethod
    def missing() -> str | None:
        """Return why this engine cannot have a swarm of its own, as a sentence."""
        state = run("docker", "info", "--format", "{{.Swarm.LocalNodeState}}").strip()
        return None if state == "inactive" else f"the engine's swarm is {state}, and the test needs one of its own"

    def __enter__(self) -> Swarm:
        run("sh", str(DEPLOY / "kubernetes" / "secrets.sh"), str(self.secrets))
        (self.folder / "swarm.toml").write_text(tiny_configuration())
        (self.folder / "command.toml").write_text(COMMAND)
        environment = {
            **self.images.environment,
            "MINUET_RUN": str(self.folder / "swarm.toml"),
            "MINUET_ACTOR_REPLICAS": "1",
            **{f"MINUET_{role}_CPUS": cores for role, cores in CORES.items()},
        }
        rendered = run("sh", str(DEPLOY / "swarm" / "render.sh"), str(self.secrets), env=environment)
        (self.folder / "stack.yml").write_text(rendered)
        # Actors write down which games the store has acknowledged.
        log = {"version": "3.9", "services": {"actor": {"environment": {"MINUET_LOG": "info,actor::spool::sender=debug"}}}}
        (self.folder / "log.yml").write_text(json.dumps(log))
        say("starting a swarm")
        # No other machine can reach this address.
        run("docker", "swarm", "init", "--advertise-addr", "127.0.0.1", "--listen-addr", "127.0.0.1")
        try:
            node = run("docker", "node", "ls", "--quiet").strip()
            run("docker", "node", "update", *(word for label in LABELS for word in ("--label-add", f"minuet.{label}=true")), node)
            run("docker", "stack", "deploy", "--resolve-image", "never", *(word for name in ("stack.yml", "log.yml") for word in ("--compose-file", str(self.folder / name))), STACK)
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error) -> None:
        run("docker", "stack", "rm", STACK, check=False)
        deadline = time.monotonic() + 120
        # Containers that have ended, but are not removed yet, keep their volumes.
        left = ("docker", "ps", "--all", "--quiet", "--filter", f"label=com.docker.stack.namespace={STACK}")
        while run(*left).split() and time.monotonic() < deadline:
            time.sleep(1)
        run("docker", "swarm", "leave", "--force", check=False)
        volumes = run("docker", "volume", "ls", "--quiet", "--filter", f"name={STACK}_").split()
        run("docker", "volume", "rm", "--force", *volumes, check=False)

    def containers(self, role: str = "") -> list[str]:
        label = f"com.docker.swarm.service.name={STACK}_{role}" if role else f"com.docker.stack.namespace={STACK}"
        return run("docker", "ps", "--quiet", "--filter", f"label={label}").split()

    def is_healthy(self, role: str, count: int) -> bool:
        """True if `count` containers of a role run, all of them healthy."""
        found = self.containers(role)
        states = [json.loads(run("docker", "inspect", container))[0]["State"] for container in found]
        return len(found) == count and all(state["Health"]["Status"] == "healthy" for state in states)

    def wait(self, what: str, holds) -> None:
        say(f"waiting in the swarm: {what}")
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except (AssertionError, IndexError, json.JSONDecodeError):
                pass  # expected while a container ends
            time.sleep(1)
        tasks = run("docker", "stack", "ps", "--no-trunc", STACK, check=False)
        raise AssertionError(f"timed out: {what}\n{tasks}")

    def acknowledged(self, games: AcknowledgedGames) -> set[str]:
        """Return the ids of all games that were acknowledged to actors that still run."""
        for actor in self.containers("actor"):
            log = subprocess.run(["docker", "logs", actor], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            games.read(log.stderr)
        return set(games.ids)

    def games(self) -> list[dict]:
        """Return all stored games, read through the store's service with the command line's certificate and token."""
        store = self.containers("replay-store")[0]
        mounts = [f"{self.secrets}:/secrets:ro", f"{self.folder / 'command.toml'}:/run.toml:ro"]
        # The files belong to the account of the test.
        words = ["--rm", "--user", "0:0", "--network", f"container:{store}", *(word for mount in mounts for word in ("--volume", mount))]
        image = f"minuet-command:{self.images.tag}"
        listing = ["games", "list", "--store", "replay-store:50052", "--limit", "1000000", "--json"]
        listed = run("docker", "run", *words, "--env", "MINUET_CONFIG=/run.toml", image, *listing)
        return [json.loads(line) for line in listed.splitlines()]

    def update(self, role: str, *words: str) -> str:
        """Update a service and return how it ended."""
        service = f"{STACK}_{role}"
        # Tasks count as stable after five seconds here.
        run("docker", "service", "update", "--quiet", "--update-monitor", "5s", *words, service, check=False)
        status = json.loads(run("docker", "service", "inspect", "--format", "{{json .UpdateStatus}}", service))
        return status["State"]

    def exercise(self, case: unittest.TestCase) -> None:
        games = AcknowledgedGames()
        roles = ("replay-store", "inference-server", "learner", "actor")
        self.wait("every container is healthy", lambda: all(self.is_healthy(role, 1) for role in roles))
        more = lambda: len(self.acknowledged(games)) >= before + 5  # noqa: E731
        before = 0
        self.wait("games are acknowledged", more)
        self.wait("games are played with a trained checkpoint", lambda: any(int(version[:12]) for game in self.games() for version in game["model_versions"]))
        for role, own in {"actor": {"token"}, "learner": {"token"}, "inference-server": {"tokens"}, "replay-store": {"tokens"}}.items():
            secrets = run("docker", "exec", self.containers(role)[0], "ls", "/run/secrets").split()
            case.assertEqual(set(secrets), {"ca.crt", "tls.crt", "tls.key"} | own, role)

        say("two inference servers and two actors")
        run("docker", "service", "scale", "--detach", f"{STACK}_inference-server=2", f"{STACK}_actor=2")
        self.wait("they are healthy", lambda: self.is_healthy("inference-server", 2) and self.is_healthy("actor", 2))
        old = self.containers("inference-server")
        say("a rolling update of the inference servers")
        case.assertEqual(self.update("inference-server", "--env-add", "MINUET_LOG=info"), "completed")
        case.assertFalse(set(old) & set(self.containers("inference-server")), "the update replaces every server")
        say("an update that fails is undone")
        case.assertEqual(self.update("inference-server", "--env-add", "MINUET_CONFIG=/nowhere"), "rollback_completed")
        before = len(self.acknowledged(games))
        self.wait("more games are acknowledged after the updates", more)

        store = self.containers("replay-store")[0]
        say("killing the store, which the swarm replaces")
        run("docker", "kill", store)
        self.wait("another store is healthy", lambda: self.is_healthy("replay-store", 1) and self.containers("replay-store") != [store])
        before = len(self.acknowledged(games))
        self.wait("more games are acknowledged after the kill", more)
        acknowledged = self.acknowledged(games)
        stored = [game["id"] for game in self.games()]
        case.assertEqual(len(stored), len(set(stored)), "games are stored twice")
        case.assertEqual(acknowledged - set(stored), set(), f"some of {len(acknowledged)} acknowledged games are missing")
        say(f"in the swarm {len(acknowledged)} games were acknowledged; none is lost, none is stored twice")
