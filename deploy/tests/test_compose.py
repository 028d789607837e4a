"""The compose stack as an operator runs it: two ways to change its size, kills, a server that hangs, a cut network, a backup; and the
same roles in a swarm (swarm.py).

The test needs Docker Engine with docker-compose, the right to use it, and debootstrap (as root) for a base image made on this
machine. If one of them is missing, the test prints it and is skipped. The role images are made by the shipped Dockerfile from the
binaries in target/release. Run the test alone with

    python3 -m unittest -v deploy/tests/test_compose.py
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import tomllib
import unittest
from pathlib import Path

from .images import BASE_IMAGE, RELEASE, ROLES, ROOT, Images, make_base_image, missing, run, say
from .stack import AcknowledgedGames, Stack
from .swarm import Swarm

# Longest time in seconds until each of several healthy inference servers has a share of the positions.
SHARE_S = 30
# Longest time in seconds until actors go on without an inference server that hangs.
HANG_S = 60

EVALUATIONS = "minuet_actor_fresh_evaluations_total"
RECONNECTS = "minuet_actor_reconnects_total"


def leave_out(case: unittest.TestCase, what: str) -> None:
    """Write down what this machine cannot test, and fail if nothing may be left out."""
    print(f"\nSKIPPED: {what}", file=sys.stderr, flush=True)
    if file := os.environ.get("MINUET_SKIPS"):
        with open(file, "a") as skips:
            skips.write(what + "\n")
    if os.environ.get("MINUET_FORBID_SKIPS") == "1":
        case.fail(f"skips are forbidden here (MINUET_FORBID_SKIPS=1): {what}")


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


class Containers(unittest.TestCase):
    def setUp(self) -> None:
        if reason := missing() or make_base_image():
            leave_out(self, f"the compose stack and the swarm: {reason}")
            self.skipTest(reason)
        for role in ROLES:
            if not (RELEASE / f"minuet-{role}").exists():
                self.fail(f"minuet-{role} is not built: run make build first")

    def test_a_stack_trains_scales_and_survives_and_so_does_a_swarm(self) -> None:
        with Images() as images, tempfile.TemporaryDirectory() as folder:
            self.check_images(images)
            stack = Stack(Path(folder), images)
            try:
                self.exercise(stack)
            finally:
                stack.down()
            if reason := Swarm.missing():
                return leave_out(self, f"the swarm: {reason}")
            with Swarm(Path(folder), images) as swarm:
                swarm.exercise(self)

    def check_images(self, images: Images) -> None:
        inspected = {name: json.loads(run("docker", "image", "inspect", name))[0] for name in images.names}
        for name, image in inspected.items():
            say(f"{name}: {image['Size'] / 1e6:.0f} MB")
            self.assertEqual(image["Config"]["User"], "65532:65532")
            self.check_bill(name)
        base = json.loads(run("docker", "image", "inspect", BASE_IMAGE))[0]["Size"]
        sizes = {role: inspected[f"minuet-{role}:{images.tag}"]["Size"] - base for role in ROLES}
        self.assertLess(max(sizes["actor"], sizes["replay-store"]), 40e6, "an image without native libraries grew")
        self.assertGreater(sizes["learner"], sizes["inference-server"], "only the learner's image contains libtorch")

    def exercise(self, stack: Stack) -> None:
        say("starting the stack")
        stack.up(actor=1)
        stack.wait("every container is healthy", lambda: all(stack.healthy(role, 1) for role in ROLES))
        for role in ROLES:
            limits = json.loads(run("docker", "inspect", stack.containers(role)[0]))[0]["HostConfig"]
            self.assertTrue(limits["NanoCpus"] > 0 and limits["Memory"] > 0, f"{role} has no limits")
        stack.wait("a trained checkpoint is served", lambda: stack.metric(stack.containers("inference-server"), "minuet_inference_model_step") >= 1)
        stack.wait("games are played with the trained checkpoint", lambda: any(int(version[:12]) for game in stack.games() for version in game["model_versions"]))
        games = AcknowledgedGames()
        self.scale_actors(stack, games)
        self.scale_inference(stack, games)
        for role in ROLES:
            self.kill_all(stack, role, games)

        actor = stack.containers("actor")[0]
        own = lambda: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        network = f"{stack.project}_minuet"
        say("disconnecting an actor from the network for a minute")
        run("docker", "network", "disconnect", network, actor)
        time.sleep(60)
        run("docker", "network", "connect", "--alias", "actor", network, actor)
        stack.wait("the actor is healthy again", lambda: stack.healthy("actor", 3))
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

    def scale_actors(self, stack: Stack, games: AcknowledgedGames) -> None:
        """One actor, three, one: each new one plays, and the games of those that end are kept."""
        stack.up(actor=3)
        stack.wait("three actors are healthy", lambda: stack.healthy("actor", 3))
        played = lambda actor: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        stack.wait("each actor has acknowledged games", lambda: all(played(actor) > 0 for actor in stack.containers("actor")))
        stack.acknowledged(games)
        stack.up(actor=1)
        stack.wait("one actor is left", lambda: stack.healthy("actor", 1))
        self.wait_for_more_games(stack, games)
        stack.up(actor=3)
        stack.wait("three actors are healthy", lambda: stack.healthy("actor", 3))

    def scale_inference(self, stack: Stack, games: AcknowledgedGames) -> None:
        """One server, three, one: each gets its share within `SHARE_S`, and one that hangs is left."""
        stack.up(inference_server=3)
        stack.wait("three inference servers are healthy", lambda: stack.healthy("inference-server", 3))
        self.wait_for_shares(stack, stack.containers("inference-server"))

        hanging = stack.containers("inference-server")[0]
        say(f"an inference server hangs: {hanging}")
        run("docker", "pause", hanging)
        try:
            began, before = time.monotonic(), stack.metric(stack.containers("actor"), RECONNECTS)
            # Streams to a server that does not answer pings end, and others are opened.
            stack.wait("streams to the server have ended", lambda: stack.metric(stack.containers("actor"), RECONNECTS) > before)
            counts = {actor: stack.metric([actor], EVALUATIONS) for actor in stack.containers("actor")}
            stack.wait("every actor goes on", lambda: all(stack.metric([actor], EVALUATIONS) > count for actor, count in counts.items()))
            say(f"the actors went on after {time.monotonic() - began:.0f} s")
            self.assertLess(time.monotonic() - began, HANG_S, "a server that hangs holds actors up for too long")
            self.wait_for_more_games(stack, games)
        finally:
            run("docker", "unpause", hanging)
        stack.wait("the server is healthy again", lambda: stack.healthy("inference-server", 3))
        self.wait_for_shares(stack, stack.containers("inference-server"))

        stack.up(inference_server=1)
        stack.wait("one inference server is left", lambda: stack.healthy("inference-server", 1))
        self.wait_for_more_games(stack, games)

    def wait_for_shares(self, stack: Stack, servers: list[str]) -> None:
        """Wait until each server evaluates a tenth of the positions; fail after `SHARE_S`."""
        count = lambda: [stack.metric([server], "minuet_inference_batch_positions_total") for server in servers]  # noqa: E731
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
        self.fail(f"after {SHARE_S} s the servers' shares of the positions are {shares}")

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
        stack.wait(f"{role} is healthy again", lambda: stack.healthy(role, 3 if role == "actor" else 1))
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
