"""A swarm of three nodes with the shipped stack file, TLS and tokens: replicas, updates, roll-backs, a killed store, a killed node,
a node that is cut off."""

from __future__ import annotations

import json
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .images import DEPLOY, Images, run, say
from .nodes import SHARED, Node, Nodes
from .stack import ACTOR_LOG, CORES, TIMEOUT_S, AcknowledgedGames, tiny_configuration

STACK = "minuet"
# Roles of each node, of which the first one is the manager. Actors and servers may run on both others.
PLACES = {"manager": ("replay-store", "learner"), "first": ("inference-server", "actor"), "second": ("inference-server", "actor")}
REPLICAS = {"replay-store": 1, "inference-server": 2, "learner": 1, "actor": 2}
LABELS = {"replay-store": "store", "inference-server": "inference", "learner": "learner", "actor": "actor"}
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
        self.folder = folder / "swarm"
        self.images = images
        self.secrets = self.folder / "secrets"
        self.nodes: list[Node] = []

    def __enter__(self) -> Swarm:
        self.folder.mkdir()
        self.started = Nodes(*(Node(host, self.folder) for host in PLACES))
        self.nodes = list(self.started.__enter__())
        try:
            self.join()
            self.deploy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error) -> None:
        self.started.__exit__()

    def join(self) -> None:
        """Make a swarm of the engines, whose manager is the first one."""
        manager, *others = self.nodes
        self.manage("swarm", "init", "--advertise-addr", "eth0")
        token = self.manage("swarm", "join-token", "--quiet", "worker").strip()
        for node in others:
            node.docker("swarm", "join", "--advertise-addr", "eth0", "--token", token, f"{manager.container}:2377")

    def deploy(self) -> None:
        say("copying the images to the nodes")
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.load, self.nodes))
        for node in self.nodes:
            identity = node.docker("info", "--format", "{{.Swarm.NodeID}}").strip()
            labels = [word for role in PLACES[node.host] for word in ("--label-add", f"minuet.{LABELS[role]}=true")]
            self.manage("node", "update", *labels, identity)
        run("sh", str(DEPLOY / "kubernetes" / "secrets.sh"), str(self.secrets))
        (self.folder / "run.toml").write_text(tiny_configuration())
        (self.folder / "command.toml").write_text(COMMAND)
        environment = {
            **self.images.environment,
            "MINUET_RUN": str(self.folder / "run.toml"),
            "MINUET_INFERENCE_REPLICAS": str(REPLICAS["inference-server"]),
            "MINUET_ACTOR_REPLICAS": str(REPLICAS["actor"]),
            **{f"MINUET_{role}_CPUS": cores for role, cores in CORES.items()},
        }
        rendered = run("sh", str(DEPLOY / "swarm" / "render.sh"), str(self.secrets), env=environment)
        (self.folder / "stack.yml").write_text(rendered)
        override = {
            "version": "3.9",
            "services": {"actor": {"environment": {"MINUET_LOG": ACTOR_LOG}}},
            # Takes the place of an object store, which several hosts need.
            "volumes": {"checkpoints": {"driver": "local", "driver_opts": {"type": "none", "o": "bind", "device": SHARED}}},
        }
        (self.folder / "test.yml").write_text(json.dumps(override))
        files = (word for name in ("stack.yml", "test.yml") for word in ("--compose-file", str(self.folder / name)))
        self.manage("stack", "deploy", "--resolve-image", "never", *files, STACK)

    def load(self, node: Node) -> None:
        """Copy the images of a node's roles to it; the manager also has the command line."""
        roles = (*PLACES[node.host], "command") if node is self.nodes[0] else PLACES[node.host]
        node.load(*(f"minuet-{role}:{self.images.tag}" for role in roles))

    def manage(self, *words: str, check: bool = True) -> str:
        """Run a command of the manager's engine."""
        return self.nodes[0].docker(*words, check=check)

    def containers(self, role: str, *more: str) -> list[tuple[Node, str]]:
        """Return the running containers of a role on all nodes that run; with `--all` also those that have ended."""
        label = f"label=com.docker.swarm.service.name={STACK}_{role}"
        nodes = [node for node in self.nodes if node.runs]
        return [(node, container) for node in nodes for container in node.docker("ps", "--quiet", *more, "--filter", label).split()]

    def is_healthy(self, role: str, count: int) -> bool:
        """True if `count` containers of a role run, all of them healthy."""
        found = self.containers(role)
        states = [json.loads(node.docker("inspect", container))[0]["State"] for node, container in found]
        return len(found) == count and all(state["Health"]["Status"] == "healthy" for state in states)

    def wait(self, what: str, holds) -> None:
        say(f"waiting in the swarm: {what}")
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except (AssertionError, IndexError, KeyError, json.JSONDecodeError):
                pass  # expected while a container ends
            time.sleep(1)
        tasks = self.manage("stack", "ps", "--no-trunc", STACK, check=False)
        raise AssertionError(f"timed out: {what}\n{tasks}")

    def acknowledged(self, games: AcknowledgedGames) -> set[str]:
        """Return the ids of all games that were acknowledged to actors on nodes that run, and of those read before."""
        for node, container in self.containers("actor", "--all"):
            games.read(node.log(container))
        return set(games.ids)

    def games(self) -> list[dict]:
        """Return all stored games, read through the store's service with the command line's certificate and token."""
        node, store = self.containers("replay-store")[0]
        mounts = [f"{self.secrets}:/secrets:ro", f"{self.folder / 'command.toml'}:/run.toml:ro"]
        # The files belong to the account of the test.
        words = ["--rm", "--user", "0:0", "--network", f"container:{store}", *(word for mount in mounts for word in ("--volume", mount))]
        image = f"minuet-command:{self.images.tag}"
        listing = ["games", "list", "--store", "replay-store:50052", "--limit", "1000000", "--json"]
        listed = node.docker("run", *words, "--env", "MINUET_CONFIG=/run.toml", image, *listing)
        return [json.loads(line) for line in listed.splitlines()]

    def newest_step(self) -> int:
        """Return the training step of the newest checkpoint that a stored game was played with."""
        return max((int(version[:12]) for game in self.games() for version in game["model_versions"]), default=0)

    def wait_for_more_games(self, games: AcknowledgedGames) -> None:
        before = len(self.acknowledged(games))
        self.wait("more games are acknowledged", lambda: len(self.acknowledged(games)) >= before + 5)

    def update(self, role: str, *words: str) -> str:
        """Update a service and return how it ended."""
        service = f"{STACK}_{role}"
        # Tasks count as stable after five seconds here.
        self.manage("service", "update", "--quiet", "--update-monitor", "5s", *words, service, check=False)
        status = json.loads(self.manage("service", "inspect", "--format", "{{json .UpdateStatus}}", service))
        return status["State"]

    def exercise(self, case: unittest.TestCase) -> None:
        games = AcknowledgedGames()
        self.wait("every container is healthy", lambda: all(self.is_healthy(role, count) for role, count in REPLICAS.items()))
        self.wait("games are played with a trained checkpoint", lambda: self.newest_step() > 0)
        for role, own in {"actor": {"token"}, "learner": {"token"}, "inference-server": {"tokens"}, "replay-store": {"tokens"}}.items():
            node, container = self.containers(role)[0]
            secrets = node.docker("exec", container, "ls", "/run/secrets").split()
            case.assertEqual(set(secrets), {"ca.crt", "tls.crt", "tls.key"} | own, role)

        old = self.containers("inference-server")
        say("a rolling update of the inference servers")
        case.assertEqual(self.update("inference-server", "--env-add", "MINUET_LOG=info"), "completed")
        case.assertFalse(set(old) & set(self.containers("inference-server")), "the update replaces every server")
        say("an update that fails is undone")
        case.assertEqual(self.update("inference-server", "--env-add", "MINUET_CONFIG=/nowhere"), "rollback_completed")
        self.wait_for_more_games(games)

        node, store = self.containers("replay-store")[0]
        say("killing the store, which the swarm replaces")
        node.docker("kill", store)
        self.wait("another store is healthy", lambda: self.is_healthy("replay-store", 1) and self.containers("replay-store") != [(node, store)])
        self.wait_for_more_games(games)
        self.lose_nodes(games)
        self.wait("the store is healthy", lambda: self.is_healthy("replay-store", 1))
        acknowledged = self.acknowledged(games)
        stored = [game["id"] for game in self.games()]
        case.assertEqual(len(stored), len(set(stored)), "games are stored twice")
        case.assertEqual(acknowledged - set(stored), set(), f"some of {len(acknowledged)} acknowledged games are missing")
        say(f"in the swarm {len(acknowledged)} games were acknowledged; none is lost, none is stored twice")

    def lose_nodes(self, games: AcknowledgedGames) -> None:
        """Kill a node, then cut off the other one that plays, then repair both."""
        _, first, second = self.nodes
        self.acknowledged(games)
        say("killing a node")
        second.kill()
        self.wait("its actors and servers run on the other node", lambda: self.is_healthy("inference-server", 2) and self.is_healthy("actor", 2))
        self.wait_for_more_games(games)
        step = self.newest_step()

        say("cutting off the other node, so that nobody plays")
        first.cut_off()
        self.wait("the swarm misses it", lambda: self.state(first) == "down")
        first.heal()
        second.start()
        self.wait("both nodes are back", lambda: self.state(first) == self.state(second) == "ready")
        self.wait("servers and actors are healthy", lambda: self.is_healthy("inference-server", 2) and self.is_healthy("actor", 2))
        self.wait("games are played with a newer checkpoint", lambda: self.newest_step() > step)
        # A swarm moves no task to a node that is back, but new tasks go to the node with the fewest.
        self.manage("service", "scale", "--detach", f"{STACK}_actor=4")
        self.wait("actors play on both nodes", lambda: self.is_healthy("actor", 4) and {node for node, _ in self.containers("actor")} == {first, second})
        self.wait_for_more_games(games)

    def state(self, node: Node) -> str:
        """Return what the swarm knows about a node: `ready` or `down`."""
        return self.manage("node", "inspect", "--format", "{{.Status.State}}", node.host).strip()
