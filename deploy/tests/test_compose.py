"""The compose stack as an operator runs it: images, two actors, a checkpoint, scaling, kills, a cut network, a backup.

The test needs Docker Engine with docker-compose, the right to use it, and debootstrap (as root) for a base image made on this
machine. If one of them is missing, the test prints it and is skipped. The role images are made by the shipped Dockerfile from the
binaries in target/release. Run the test alone with

    python3 -m unittest -v deploy/tests/test_compose.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RELEASE = ROOT / "target" / "release"
BASE_IMAGE = "minuet-test-base:bookworm-1"
DIST_IMAGE = "minuet-test-dist:local"
ROLES = ("replay-store", "inference-server", "learner", "actor")
# Longest wait in seconds; a test that waits this long is assumed to hang.
TIMEOUT_S = 600
# Longest time in seconds until actors use an inference server that was added and is healthy.
SCALE_UP_S = 30

# A run that publishes a trained checkpoint within seconds, with the shipped file's addresses and folders.
TINY_KEYS = {
    "model": {"blocks": 1, "filters": 8, "global_pooling": 0, "value_hidden": 8},
    "search": {"visits": 6, "max_actions": 120},
    "actor": {"games_per_thread": 16, "threads": 1},
    # No game may leave the window during the test, which looks for all games.
    "replay": {"window_positions": 100_000_000},
    "inference": {"provider": '"cpu"', "max_batch": 64},
    "learner": {
        "batch_size": 32, "threads": 1, "min_positions": 200, "checkpoint_steps": 5, "warmup_steps": 2,
    },
    "checkpoints": {"poll_ms": 200},
}  # fmt: skip


BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"  compose, {time.monotonic() - BEGAN:4.0f} s: {text}", file=sys.stderr, flush=True)


def run(*command: str, check: bool = True, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def missing() -> str | None:
    """Return what is missing on this machine, as a sentence."""
    for tool in ("docker", "docker-compose"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    if subprocess.run(["docker", "info"], capture_output=True).returncode != 0:
        return "the Docker engine does not answer, or this user may not use it"
    if has_image(BASE_IMAGE):
        return None
    if os.geteuid() != 0:
        return "debootstrap, which makes the base image, needs root"
    if debootstrap() is None:
        return "there is no debootstrap to make a base image with (Debian: apt install debootstrap)"
    return None


def debootstrap() -> Path | None:
    """Return the installed debootstrap, or one that was fetched without installing it."""
    script = ROOT / "scripts" / "debian_program.py"
    done = subprocess.run([sys.executable, script, "debootstrap"], stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def dangling() -> set[str]:
    """Return images without a name, which build stages leave behind."""
    return set(run("docker", "images", "--quiet", "--no-trunc", "--filter", "dangling=true").split())


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def make_base_image() -> str | None:
    """Import a Debian tree as the base image. Return the reason if debootstrap fails."""
    if has_image(BASE_IMAGE):
        return None
    say("making a Debian base image (once)")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        tree = Path(folder) / "tree"
        program = debootstrap()
        command = [str(program), "--variant=minbase", "--include=libstdc++6", "bookworm", str(tree)]
        # dpkg calls fsync after each file, which takes most of the time and is not needed for a temporary tree.
        if shutil.which("eatmydata"):
            command.insert(0, "eatmydata")
        # A debootstrap that is not installed finds its own files by this variable.
        files = program.parents[2] / "usr" / "share" / "debootstrap"
        environment = {**os.environ, "DEBOOTSTRAP_DIR": str(files)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            return f"debootstrap failed: {(done.stdout.strip().splitlines() or ['no message'])[-1]}"
        shutil.rmtree(tree / "var/cache/apt", ignore_errors=True)
        shutil.rmtree(tree / "var/lib/apt/lists", ignore_errors=True)
        tar = subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE)
        run("docker", "import", "-", BASE_IMAGE, stdin=tar.stdout)
        tar.wait()
    return None


def make_dist_image() -> None:
    """Build the base image with /dist, in place of the Dockerfile's compile stage."""
    with tempfile.TemporaryDirectory() as folder:
        run("sh", str(DEPLOY / "docker" / "dist.sh"), f"{folder}/dist")
        (Path(folder) / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nCOPY dist /dist\n")
        run("docker", "build", "--quiet", "--tag", DIST_IMAGE, folder, env={**os.environ, "DOCKER_BUILDKIT": "0"})


def tiny_configuration() -> str:
    """Return the shipped configuration with `TINY_KEYS` in place of its own values."""
    section = ""
    lines = []
    for line in (DEPLOY / "compose" / "run.toml").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            lines += [line, *(f"{key} = {value}" for key, value in TINY_KEYS.get(section, {}).items())]
        elif line.split(" = ")[0] not in TINY_KEYS.get(section, {}):
            lines.append(line)
    return "\n".join(lines) + "\n"


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
    """A compose project of the shipped file, with a tiny run's configuration."""

    def __init__(self, folder: Path):
        self.project = f"minuet-test-{os.getpid()}"
        configuration = folder / "run.toml"
        configuration.write_text(tiny_configuration())
        configuration.chmod(0o644)
        folder.chmod(0o755)
        volume = f"{configuration}:/etc/minuet/run.toml:ro"
        override = {"version": "3.9", "services": {role: {"volumes": [volume]} for role in ROLES}}
        # Actors write down which games the store has acknowledged.
        override["services"]["actor"]["environment"] = {"MINUET_LOG": "info,actor::spool::sender=debug"}
        # No fixed port on the host, because another stack may use it.
        (folder / "test.yml").write_text(json.dumps(override))
        self.files = ["-f", str(DEPLOY / "docker-compose.yml"), "-f", str(folder / "test.yml")]
        self.environment = {
            **os.environ,
            "MINUET_BUILD_IMAGE": DIST_IMAGE,
            "MINUET_RUNTIME_IMAGE": BASE_IMAGE,
            "MINUET_TAG": self.project,
            "MINUET_INFERENCE_PORT": "0",
            # Compose 2 applies the limits, and the engine refuses more cores than the machine has.
            **{f"MINUET_{role}_CPUS": str(min(4, os.cpu_count() or 1)) for role in ("INFERENCE", "LEARNER", "ACTOR")},
            "DOCKER_BUILDKIT": "0",
            "COMPOSE_DOCKER_CLI_BUILD": "0",
        }

    def compose(self, *words: str) -> str:
        return run("docker-compose", "-p", self.project, *self.files, *words, env=self.environment)

    def command(self, *words: str) -> dict:
        """Run `minuet … --json` in a container and return its output."""
        output = self.compose("--profile", "command", "run", "--rm", "-T", "command", *words, "--json")
        return json.loads(output.splitlines()[-1])

    def up(self, actors: int, inference_servers: int = 1) -> None:
        scales = (f"actor={actors}", f"inference-server={inference_servers}")
        self.compose("up", "--detach", "--no-build", *(word for scale in scales for word in ("--scale", scale)))

    def containers(self, role: str) -> list[str]:
        labels = ["--filter", f"label=com.docker.compose.project={self.project}", "--filter", f"label=com.docker.compose.service={role}"]
        return sorted(run("docker", "ps", "--quiet", *labels).split())

    def address(self, container: str) -> str:
        networks = json.loads(run("docker", "inspect", container))[0]["NetworkSettings"]["Networks"]
        return next(iter(networks.values()))["IPAddress"]

    def metric(self, containers: list[str], name: str) -> float:
        """Return a metric's sum over containers; -1 while one of them does not answer."""
        total = 0.0
        for container in containers:
            try:
                with urllib.request.urlopen(f"http://{self.address(container)}:9100/metrics", timeout=5) as page:
                    lines = page.read().decode().splitlines()
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
            # Roles write their logs to stderr.
            log = subprocess.run(["docker", "logs", actor], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            games.read(log.stderr)
        return set(games.ids)

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
        self.compose("--profile", "command", "down", "--volumes", "--rmi", "all", "--timeout", "20")


class AcknowledgedGamesTest(unittest.TestCase):
    def test_ids_are_read_from_the_lines_of_acknowledgements(self) -> None:
        games = AcknowledgedGames()
        games.read(
            '{"timestamp":"2026-01-01T00:00:00Z","level":"INFO","fields":{"message":"self-play begins"},"target":"actor::actor"}\n'
            '{"level":"DEBUG","fields":{"message":"a game is sent","game":"0a","sha256":"ff"},"target":"actor::spool::sender"}\n'
            '{"level":"DEBUG","fields":{"message":"a game is acknowledged","game":"0a","duplicate":false},"target":"actor::spool::sender"}\n'
            "something else\n"
        )
        games.read('{"fields":{"message":"a game is acknowledged","game":"0b","duplicate":true}}\n')
        self.assertEqual(games.ids, {"0a", "0b"})


class ComposeStack(unittest.TestCase):
    def setUp(self) -> None:
        if reason := missing():
            self.skip(reason)
        if reason := make_base_image():
            self.skip(reason)
        for role in ROLES:
            if not (RELEASE / f"minuet-{role}").exists():
                self.fail(f"minuet-{role} is not built: run make build first")

    def skip(self, reason: str) -> None:
        line = f"the compose stack: {reason}"
        print(f"\nSKIPPED: {line}", file=sys.stderr, flush=True)
        if file := os.environ.get("MINUET_SKIPS"):
            with open(file, "a") as skips:
                skips.write(line + "\n")
        if os.environ.get("MINUET_FORBID_SKIPS") == "1":
            self.fail(f"skips are forbidden here (MINUET_FORBID_SKIPS=1): {reason}")
        self.skipTest(reason)

    def test_a_stack_trains_scales_and_survives(self) -> None:
        before = dangling()
        say("copying the binaries into an image")
        make_dist_image()
        with tempfile.TemporaryDirectory() as folder:
            stack = Stack(Path(folder))
            try:
                self.exercise(stack)
            finally:
                stack.down()
                # The base image stays for the next test.
                run("docker", "rmi", DIST_IMAGE, *(dangling() - before), check=False)

    def exercise(self, stack: Stack) -> None:
        say("building the role images")
        stack.compose("--profile", "command", "build", *ROLES, "command")
        for role in (*ROLES, "command"):
            size = json.loads(run("docker", "image", "inspect", f"minuet-{role}:{stack.project}"))[0]
            say(f"minuet-{role}: {size['Size'] / 1e6:.0f} MB")
            self.assertEqual(size["Config"]["User"], "65532:65532")
            self.check_bill(f"minuet-{role}:{stack.project}")
        base = json.loads(run("docker", "image", "inspect", BASE_IMAGE))[0]["Size"]
        sizes = {r: json.loads(run("docker", "image", "inspect", f"minuet-{r}:{stack.project}"))[0]["Size"] - base for r in ROLES}
        self.assertLess(max(sizes["actor"], sizes["replay-store"]), 40e6, "an image without native libraries grew")
        self.assertGreater(sizes["learner"], sizes["inference-server"], "only the learner's image contains libtorch")

        say("starting the stack")
        stack.up(actors=2)
        stack.wait("every container is healthy", lambda: all(stack.healthy(role, 2 if role == "actor" else 1) for role in ROLES))
        stack.wait("a trained checkpoint is served", lambda: stack.metric(stack.containers("inference-server"), "minuet_inference_model_step") >= 1)
        stack.wait("games are played with the trained checkpoint", lambda: any(int(version[:12]) for game in stack.games() for version in game["model_versions"]))
        stack.up(actors=4)
        stack.wait("four actors play", lambda: stack.healthy("actor", 4))
        self.scale_inference(stack)

        games = AcknowledgedGames()
        for role in ROLES:
            self.kill_all(stack, role, games)

        actor = stack.containers("actor")[0]
        own = lambda: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        network = f"{stack.project}_minuet"
        say("disconnecting an actor from the network for a minute")
        run("docker", "network", "disconnect", network, actor)
        time.sleep(60)
        run("docker", "network", "connect", "--alias", "actor", network, actor)
        stack.wait("the actor is healthy again", lambda: stack.healthy("actor", 4))
        before = own()
        self.assertGreaterEqual(before, 0)
        stack.wait("games of the actor are acknowledged again", lambda: own() > before)
        self.wait_for_more_games(stack, games)
        self.back_up(stack, games)
        self.wait_for_more_games(stack, games)
        say(f"{len(games.ids)} games were acknowledged; none is lost, none is stored twice")

    def check_bill(self, image: str) -> None:
        """Check that the bill of materials in an image names each locked crate with its checksum, and the native libraries."""
        bill = json.loads(run("docker", "run", "--rm", "--entrypoint", "cat", image, "/usr/share/minuet/sbom.cdx.json"))
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        named = {part["purl"]: part for part in bill["components"]}
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
            if package["name"] in ("tonic", "tokio", "sled", "tch", "ort"):
                part = named[f"pkg:cargo/{package['name']}@{package['version']}"]
                self.assertEqual(part["hashes"][0]["content"], package["checksum"])
        self.assertTrue(any(purl.startswith("pkg:pypi/torch@") for purl in named), "libtorch is not named")
        self.assertFalse(any(purl.startswith("pkg:cargo/pyo3@") for purl in named), "no image has the Python package")

    def scale_inference(self, stack: Stack) -> None:
        """Add an inference server, which must get a share of the positions, and remove it again."""
        first = stack.containers("inference-server")
        stack.up(actors=4, inference_servers=2)
        second = [container for container in stack.containers("inference-server") if container not in first]
        evaluated = lambda containers: stack.metric(containers, "minuet_inference_batch_positions_total")  # noqa: E731
        stack.wait("a second inference server is healthy", lambda: stack.healthy("inference-server", 2))
        began, before = time.monotonic(), evaluated(first)
        stack.wait("the second server evaluates positions", lambda: evaluated(second) > 0)
        noticed = time.monotonic() - began
        self.assertLess(noticed, SCALE_UP_S, "the actors notice a new server too late")
        # The actors open their streams again every few seconds, each to a random server.
        stack.wait("the second server has a fifth of the positions", lambda: evaluated(second) > 0.2 * (evaluated(first) - before) > 0)
        say(f"the actors noticed the second server within {noticed:.0f} s")
        stack.up(actors=4)
        stack.wait("one inference server is left", lambda: stack.healthy("inference-server", 1))

    def kill_all(self, stack: Stack, role: str, games: AcknowledgedGames) -> None:
        """Kill and restart every container of a role."""
        for container in stack.containers(role):
            say(f"killing {role} {container}")
            before = len(stack.acknowledged(games))
            stack.wait("more games are acknowledged", lambda before=before: len(stack.acknowledged(games)) > before)
            run("docker", "kill", "--signal", "KILL", container)
            if role == "replay-store":
                self.check_restarted_store(stack, container, games)
            else:
                # Docker does not restart a container that was killed by hand.
                run("docker", "start", container)
        stack.wait(f"{role} is healthy again", lambda: stack.healthy(role, 4 if role == "actor" else 1))
        if role == "learner":
            stack.wait("the learner trains again", lambda: stack.metric(stack.containers("learner"), "minuet_learner_steps_total") > 0)
        self.wait_for_more_games(stack, games)

    def check_restarted_store(self, stack: Stack, store: str, games: AcknowledgedGames) -> None:
        """Check the games of a killed store before actors can send games again."""
        acknowledged = stack.acknowledged(games)
        actors = stack.containers("actor")
        stack.signal("STOP", actors)
        try:
            run("docker", "start", store)
            stack.wait("the store answers", lambda: stack.game_ids())
            self.check_games(stack.game_ids(), acknowledged)
        finally:
            stack.signal("CONT", actors)
        stack.wait("the actors continue", lambda: stack.healthy("actor", len(actors)))

    def back_up(self, stack: Stack, games: AcknowledgedGames) -> None:
        say("exporting and importing all games")
        acknowledged = stack.acknowledged(games)
        place = ("--store", "replay-store:50052", "/backup/games.minuet")
        written = stack.command("games", "export", *place)
        self.assertGreaterEqual(written["games"], len(acknowledged))
        imported = stack.command("games", "import", *place)
        self.assertEqual(imported, {"stored": 0, "duplicates": written["games"], "refused": 0, "stopped": False})

    def check_games(self, stored: list[str], acknowledged: set[str]) -> None:
        """Check that every acknowledged game is stored, and that no game is stored twice."""
        self.assertEqual(len(stored) - len(set(stored)), 0, "games are stored twice")
        self.assertEqual(acknowledged - set(stored), set(), f"some of {len(acknowledged)} acknowledged games are missing")

    def wait_for_more_games(self, stack: Stack, games: AcknowledgedGames) -> None:
        before = len(stack.acknowledged(games))
        stack.wait("more games are acknowledged", lambda: len(stack.acknowledged(games)) >= before + 5)
        # Read first, because the list may lack games that are acknowledged later.
        acknowledged = stack.acknowledged(games)
        self.check_games(stack.game_ids(), acknowledged)


if __name__ == "__main__":
    unittest.main(verbosity=2)
