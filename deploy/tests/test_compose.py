"""The compose stack as an operator runs it: images, two actors, a checkpoint, scaling, kills, a cut network, a backup.

Needs Docker Engine with docker-compose, the right to use it, and debootstrap (as root) for a base image made on this
machine; says what is missing and skips otherwise. The role images are made from the binaries in target/release by
the very Dockerfile that is shipped. Run it alone with

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
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RELEASE = ROOT / "target" / "release"
BASE_IMAGE = "minuet-test-base:bookworm-1"
DIST_IMAGE = "minuet-test-dist:local"
ROLES = ("replay-store", "inference-server", "learner", "actor")
# Far beyond what any machine needs: a test that waits this long hangs.
PATIENCE_S = 600

# A run that trains something within seconds, with the shipped file's addresses and folders.
TINY = """
[model]
blocks = 1
filters = 8
value_hidden = 8

[search]
visits = 6
max_actions = 120
"""
TINY_KEYS = {
    "actor": {"games_per_thread": 16, "threads": 1},
    # No game may leave the window while the test goes on: it counts them all.
    "replay": {"window_positions": 100_000_000},
    "inference": {"provider": '"cpu"', "max_batch": 64},
    "learner": {
        "batch_size": 32, "threads": 1, "min_positions": 200, "checkpoint_steps": 5, "warmup_steps": 2,
    },
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
    """What this machine lacks, in a sentence."""
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
    """Images without a name: what build stages leave."""
    return set(run("docker", "images", "--quiet", "--no-trunc", "--filter", "dangling=true").split())


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def make_base_image() -> str | None:
    """A Debian tree, imported. Says why where Debian's archive cannot be reached."""
    if has_image(BASE_IMAGE):
        return None
    say("making a Debian base image (once)")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        tree = Path(folder) / "tree"
        program = debootstrap()
        command = [str(program), "--variant=minbase", "--include=libstdc++6", "bookworm", str(tree)]
        # dpkg's fsync after each file is the longest part of it; nobody minds a lost temporary tree.
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
    """The base image with /dist: what the Dockerfile's compile stage would have made."""
    with tempfile.TemporaryDirectory() as folder:
        run("sh", str(DEPLOY / "docker" / "dist.sh"), f"{folder}/dist")
        (Path(folder) / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nCOPY dist /dist\n")
        run("docker", "build", "--quiet", "--tag", DIST_IMAGE, folder, env={**os.environ, "DOCKER_BUILDKIT": "0"})


def tiny_configuration() -> str:
    text = (DEPLOY / "compose" / "run.toml").read_text()
    for section, keys in TINY_KEYS.items():
        lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
        text = text.replace(f"[{section}]\n", f"[{section}]\n{lines}")
    return text.replace("[checkpoints]\n", "[checkpoints]\npoll_ms = 200\n") + TINY


class Tally:
    """Games that actors count as acknowledged, over their restarts. Those that the store had already are not among them, so each
    is another game, and the store has at least so many."""

    def __init__(self):
        self.counts: dict[tuple[str, str], int] = {}

    def note(self, container: str, started: str, acknowledged: float, duplicates: float) -> None:
        """What a process says now; nothing where its page did not answer."""
        if min(acknowledged, duplicates) >= 0:
            self.counts[container, started] = int(acknowledged - duplicates)

    def total(self) -> int:
        return sum(self.counts.values())


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
        # No fixed port on the host: another stack may run there.
        (folder / "test.yml").write_text(json.dumps(override))
        self.files = ["-f", str(DEPLOY / "docker-compose.yml"), "-f", str(folder / "test.yml")]
        self.environment = {
            **os.environ,
            "MINUET_BUILD_IMAGE": DIST_IMAGE,
            "MINUET_RUNTIME_IMAGE": BASE_IMAGE,
            "MINUET_TAG": self.project,
            "MINUET_INFERENCE_PORT": "0",
            # Compose 2 passes the limits on, and the engine refuses more cores than there are.
            **{f"MINUET_{role}_CPUS": str(min(4, os.cpu_count() or 1)) for role in ("INFERENCE", "LEARNER", "ACTOR")},
            "DOCKER_BUILDKIT": "0",
            "COMPOSE_DOCKER_CLI_BUILD": "0",
        }

    def compose(self, *words: str) -> str:
        return run("docker-compose", "-p", self.project, *self.files, *words, env=self.environment)

    def command(self, *words: str) -> dict:
        """What a one-off `minuet … --json` says."""
        said = self.compose("--profile", "command", "run", "--rm", "-T", "command", *words, "--json")
        return json.loads(said.splitlines()[-1])

    def up(self, actors: int) -> None:
        self.compose("up", "--detach", "--no-build", "--scale", f"actor={actors}")

    def containers(self, role: str) -> list[str]:
        labels = ["--filter", f"label=com.docker.compose.project={self.project}", "--filter", f"label=com.docker.compose.service={role}"]
        return sorted(run("docker", "ps", "--quiet", *labels).split())

    def address(self, container: str) -> str:
        networks = json.loads(run("docker", "inspect", container))[0]["NetworkSettings"]["Networks"]
        return next(iter(networks.values()))["IPAddress"]

    def metric(self, containers: list[str], name: str) -> float:
        """A metric's sum over containers; -1 while one of them does not answer."""
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
        """All stored games, read through the store's own service."""
        address = f"{self.address(self.containers('replay-store')[0])}:50052"
        # Its [security] allows plaintext on the stack's own network.
        environment = {**os.environ, "MINUET_CONFIG": str(DEPLOY / "compose" / "run.toml")}
        listed = run(str(RELEASE / "minuet"), "games", "list", "--store", address, "--limit", "1000000", "--json", env=environment)
        return [json.loads(line) for line in listed.splitlines()]

    def game_ids(self) -> list[str]:
        return [game["id"] for game in self.games()]

    def count(self, tally: Tally) -> None:
        """Asks every actor what was acknowledged."""
        for actor in self.containers("actor"):
            started = json.loads(run("docker", "inspect", actor))[0]["State"]["StartedAt"]
            acknowledged = self.metric([actor], "minuet_actor_games_acknowledged_total")
            # Read last: of a game that is acknowledged a second time between the two, both must be known or the later one alone.
            tally.note(actor, started, acknowledged, self.metric([actor], "minuet_actor_games_duplicate_total"))

    def signal(self, signal: str, containers: list[str]) -> None:
        for container in containers:
            run("docker", "kill", "--signal", signal, container)

    def wait(self, what: str, holds) -> None:
        say(f"waiting: {what}")
        deadline = time.monotonic() + PATIENCE_S
        failure: Exception | None = None
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
                failure = None
            except (AssertionError, OSError, IndexError, KeyError, json.JSONDecodeError) as error:
                failure = error  # a container that was just killed, unless it stays so
            time.sleep(1)
        logs = self.compose("logs", "--tail", "15", "--no-color")
        raise AssertionError(f"in vain: {what}\n{failure or ''}\n{logs}")

    def healthy(self, role: str, count: int) -> bool:
        found = self.containers(role)
        states = [json.loads(run("docker", "inspect", container))[0]["State"] for container in found]
        return len(found) == count and all(state["Health"]["Status"] == "healthy" for state in states)

    def down(self) -> None:
        self.compose("--profile", "command", "down", "--volumes", "--rmi", "all", "--timeout", "20")


class Counting(unittest.TestCase):
    def test_restarts_and_games_sent_twice_are_not_counted_twice(self) -> None:
        tally = Tally()
        tally.note("a", "morning", 10, 0)
        tally.note("a", "morning", 12, 1)
        tally.note("b", "morning", 5, 0)
        # Killed: a new process counts from zero, and sends again what it had not heard of.
        tally.note("a", "noon", 3, 2)
        tally.note("a", "noon", -1, -1)
        self.assertEqual(tally.total(), 11 + 5 + 1)


class ComposeStack(unittest.TestCase):
    def setUp(self) -> None:
        if lack := missing():
            self.skip(lack)
        if lack := make_base_image():
            self.skip(lack)
        for role in ROLES:
            if not (RELEASE / f"minuet-{role}").exists():
                self.fail(f"minuet-{role} is not built: run make build first")

    def skip(self, lack: str) -> None:
        line = f"the compose stack: {lack}"
        print(f"\nSKIPPED: {line}", file=sys.stderr, flush=True)
        if file := os.environ.get("MINUET_SKIPS"):
            with open(file, "a") as skips:
                skips.write(line + "\n")
        if os.environ.get("MINUET_FORBID_SKIPS") == "1":
            self.fail(f"skips are forbidden here (MINUET_FORBID_SKIPS=1): {lack}")
        self.skipTest(lack)

    def test_a_stack_trains_scales_and_survives(self) -> None:
        before = dangling()
        say("gathering the binaries in an image")
        make_dist_image()
        with tempfile.TemporaryDirectory() as folder:
            stack = Stack(Path(folder))
            try:
                self.exercise(stack)
            finally:
                stack.down()
                # The base image stays for the next time.
                run("docker", "rmi", DIST_IMAGE, *(dangling() - before), check=False)

    def exercise(self, stack: Stack) -> None:
        say("building the role images")
        stack.compose("--profile", "command", "build", *ROLES, "command")
        for role in (*ROLES, "command"):
            size = json.loads(run("docker", "image", "inspect", f"minuet-{role}:{stack.project}"))[0]
            say(f"minuet-{role}: {size['Size'] / 1e6:.0f} MB")
            self.assertEqual(size["Config"]["User"], "65532:65532")
        base = json.loads(run("docker", "image", "inspect", BASE_IMAGE))[0]["Size"]
        sizes = {r: json.loads(run("docker", "image", "inspect", f"minuet-{r}:{stack.project}"))[0]["Size"] - base for r in ROLES}
        self.assertLess(max(sizes["actor"], sizes["replay-store"]), 40e6, "an image without native libraries grew")
        self.assertGreater(sizes["learner"], sizes["inference-server"], "only the learner's image holds libtorch")

        say("starting the stack")
        stack.up(actors=2)
        stack.wait("every container is healthy", lambda: all(stack.healthy(role, 2 if role == "actor" else 1) for role in ROLES))
        stack.wait("a trained checkpoint is served", lambda: stack.metric(stack.containers("inference-server"), "minuet_inference_model_step") >= 1)
        stack.wait("games are played with it", lambda: any(int(version[:12]) for game in stack.games() for version in game["model_versions"]))
        known = set(stack.game_ids())
        self.assertTrue(known, "no game was stored")

        stack.up(actors=4)
        stack.wait("four actors play", lambda: stack.healthy("actor", 4))

        tally = Tally()
        for role in ROLES:
            known = self.kill_all(stack, role, known, tally)

        actor = stack.containers("actor")[0]
        own = lambda: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        network = f"{stack.project}_minuet"
        say("cutting an actor's network for a minute")
        run("docker", "network", "disconnect", network, actor)
        time.sleep(60)
        run("docker", "network", "connect", "--alias", "actor", network, actor)
        stack.wait("the actor is healthy again", lambda: stack.healthy("actor", 4))
        before = own()
        self.assertGreaterEqual(before, 0)
        stack.wait("its games are acknowledged again", lambda: own() > before)
        known = self.grown(stack, known, tally)
        self.back_up(stack, known)
        known = self.grown(stack, known, tally)
        say(f"{len(known)} games, {tally.total()} of them counted as acknowledged by actors; none lost, none there twice")

    def kill_all(self, stack: Stack, role: str, known: set[str], tally: Tally) -> set[str]:
        """Kills every container of a role and starts it again."""
        for container in stack.containers(role):
            say(f"killing {role} {container}")
            known |= set(stack.game_ids())
            stack.count(tally)
            run("docker", "kill", "--signal", "KILL", container)
            if role == "replay-store":
                self.restarted_alone(stack, container, known, tally)
            else:
                # Docker takes a kill by hand for a person's wish: it does not restart by itself.
                run("docker", "start", container)
        stack.wait(f"{role} is healthy again", lambda: stack.healthy(role, 4 if role == "actor" else 1))
        if role == "learner":
            stack.wait("it trains on", lambda: stack.metric(stack.containers("learner"), "minuet_learner_steps_total") > 0)
        return self.grown(stack, known, tally)

    def restarted_alone(self, stack: Stack, store: str, known: set[str], tally: Tally) -> None:
        """Counts what a killed store has kept before anybody can send it anything again."""
        # Acknowledgements that had left it may still be on their way; then the counters stand still.
        time.sleep(2)
        stack.count(tally)
        acknowledged = tally.total()
        actors = stack.containers("actor")
        stack.signal("STOP", actors)
        try:
            run("docker", "start", store)
            stack.wait("the store answers", lambda: stack.game_ids())
            self.whole(stack.game_ids(), known, acknowledged)
        finally:
            stack.signal("CONT", actors)
        stack.wait("the actors go on", lambda: stack.healthy("actor", len(actors)))

    def back_up(self, stack: Stack, known: set[str]) -> None:
        say("exporting and importing all games")
        place = ("--store", "replay-store:50052", "/backup/games.minuet")
        written = stack.command("games", "export", *place)
        self.assertGreaterEqual(written["games"], len(known))
        self.assertEqual(
            stack.command("games", "import", *place), {"stored": 0, "duplicates": written["games"], "refused": 0}
        )

    def whole(self, ids: list[str], known: set[str], acknowledged: int) -> None:
        """No game is there twice, none that was listed is missing, and as many are there as were acknowledged."""
        self.assertEqual(len(ids) - len(set(ids)), 0, "games are stored twice")
        self.assertEqual(len(known - set(ids)), 0, f"of {len(known)} games that were listed some are missing")
        self.assertGreaterEqual(len(ids), acknowledged, "games that actors count as acknowledged are missing")

    def grown(self, stack: Stack, known: set[str], tally: Tally) -> set[str]:
        stack.wait("more games are stored", lambda: len(set(stack.game_ids()) - known) >= 5)
        # Counted first: what is acknowledged later is not asked for.
        stack.count(tally)
        ids = stack.game_ids()
        self.whole(ids, known, tally.total())
        return set(ids)


if __name__ == "__main__":
    unittest.main(verbosity=2)
