"""The compose stack as an operator runs it: two ways to change its size, kills, a server that hangs, a cut network, a backup, the alerts
and panels of a real Prometheus (prometheus.py), the studio (studio.py); a game in Python in the same stack (own_game.py); and the same
roles in a swarm of three nodes (swarm.py).

The test needs Docker Engine with docker-compose, the right to use it, Debian's Prometheus, and debootstrap (as root) for Debian images
made on this machine. If one of them is missing, the test prints it and is skipped. The role images are made by the shipped Dockerfile from the
binaries in target/release. Run the test alone with

    python3 -m unittest -v deploy/tests/test_compose.py
"""

from __future__ import annotations

import json
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .contents import check_images
from .images import RELEASE, ROLES, Images, leave_out, make_debian_images, missing, run, say
from .own_game import OwnGame
from .prometheus import ALERTS, Prometheus
from .relay import Relay
from .stack import EVALUATED, FAILURES, AcknowledgedGames, Stack, wait_for_shares
from .studio import Studio
from .swarm import Swarm

# Longest time in seconds until actors continue without an inference server that hangs.
HANG_S = 60

# Delay of a slow link in each direction, in seconds.
ONE_WAY_S = 0.025
# Number of actors under load.
MANY = 8

EVALUATIONS = "minuet_actor_fresh_evaluations_total"
RECONNECTS = "minuet_actor_reconnects_total"


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
        if reason := missing() or make_debian_images():
            leave_out(self, f"the compose stack and the swarm: {reason}")
            self.skipTest(reason)
        for role in ROLES:
            if not (RELEASE / f"minuet-{role}").exists():
                self.fail(f"minuet-{role} is not built: run make build first")

    def test_a_stack_trains_scales_and_survives_and_so_does_a_swarm(self) -> None:
        with Images() as images, tempfile.TemporaryDirectory() as folder:
            check_images(self, images)
            stack = Stack(Path(folder), images)
            try:
                self.exercise(stack)
            finally:
                stack.down()
            own = OwnGame(Path(folder) / "own-game", images)
            try:
                own.exercise(self)
            finally:
                own.down()
            with Swarm(Path(folder), images) as swarm:
                swarm.exercise(self)

    def exercise(self, stack: Stack) -> None:
        say("starting the stack")
        stack.up(actor=1)
        stack.wait("every container is healthy", lambda: all(stack.healthy(role, 1) for role in ROLES))
        for role in stack.SERVICES:
            limits = json.loads(run("docker", "inspect", stack.containers(role)[0]))[0]["HostConfig"]
            self.assertTrue(limits["NanoCpus"] > 0 and limits["Memory"] > 0, f"{role} has no limits")
        stack.wait("a trained checkpoint is served", lambda: stack.metric(stack.containers("inference-server"), "minuet_inference_model_step") >= 1)
        stack.wait("games are played with the trained checkpoint", lambda: any(int(version[:12]) for game in stack.games() for version in game["model_versions"]))
        prometheus = Prometheus(stack)
        prometheus.wait_for_targets()
        games = AcknowledgedGames()
        self.scale_actors(stack, games)
        self.scale_inference(stack, games)
        studio = Studio(stack)
        studio.look_through()
        with self.actor_cut_off(stack), self.learner_killed(stack):
            studio.wait_for_alarm("learner")
            for role in ("replay-store", "inference-server"):
                self.kill_all(stack, role, games)
        self.kill_all(stack, "actor", games)
        self.play_over_a_slow_link(stack, games)
        prometheus.wait_for_panels()
        studio.forget().look_through()
        self.back_up(stack, games)
        self.wait_for_more_games(stack, games)
        say(f"{len(games.ids)} games were acknowledged; none is lost, none is stored twice")

    def play_over_a_slow_link(self, stack: Stack, games: AcknowledgedGames) -> None:
        """An actor far from the inference server plays, also after its connections broke."""
        (server,) = stack.containers("inference-server")
        with Relay(stack.gateway(), (stack.address(server), 50051), ONE_WAY_S) as relay, stack.actor_at(relay.address) as actor:
            own = lambda name: stack.metric([actor], name)  # noqa: E731
            stack.wait("a distant actor has acknowledged games", lambda: own("minuet_actor_games_acknowledged_total") > 0)
            fastest = stack.fastest(actor, "minuet_actor_request_seconds")
            self.assertGreater(fastest, 2 * ONE_WAY_S, "the link has no delay")
            before = own(RECONNECTS)
            say(f"cutting {relay.cut()} connections of the actor")
            stack.wait("the actor has opened its stream again", lambda: own(RECONNECTS) > before)
            played = own(EVALUATIONS)
            # More than can have been on their way.
            stack.wait("the distant actor continues", lambda: own(EVALUATIONS) > played + 200)
            self.assertEqual((own("minuet_actor_malformed_replies_total"), own("minuet_actor_games_refused_total")), (0, 0))
            stack.read_log(actor, games)

    @contextmanager
    def actor_cut_off(self, stack: Stack) -> Iterator[None]:
        """Disconnect an actor from the network for the time of the block."""
        actor = stack.containers("actor")[0]
        own = lambda: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        say("disconnecting an actor from the network")
        run("docker", "network", "disconnect", stack.network, actor)
        yield
        run("docker", "network", "connect", "--alias", "actor", stack.network, actor)
        stack.wait("the actor is healthy again", lambda: stack.healthy("actor", 3))
        before = own()
        self.assertGreaterEqual(before, 0)
        stack.wait("games of the actor are acknowledged again", lambda: own() > before)

    @contextmanager
    def learner_killed(self, stack: Stack) -> Iterator[None]:
        """Kill the learner, and start it again after the block, when its alerts fire."""
        (learner,) = stack.containers("learner")
        say(f"killing learner {learner}")
        run("docker", "kill", "--signal", "KILL", learner)
        yield
        Prometheus(stack).wait_for_alerts("learner")
        run("docker", "start", learner)
        stack.wait("the learner is healthy again", lambda: stack.healthy("learner", 1))
        stack.wait("the learner trains again", lambda: stack.metric([learner], "minuet_learner_steps_total") > 0)
        Prometheus(stack).wait_until_resolved("learner")

    def failures(self, stack: Stack) -> dict[str, float]:
        return {name: stack.metric(stack.containers(role), name) for role, names in FAILURES.items() for name in names}

    def evaluated(self, stack: Stack) -> list[float]:
        """Return how many positions each inference server has evaluated."""
        return [stack.metric([server], EVALUATED) for server in stack.containers("inference-server")]

    def scale_actors(self, stack: Stack, games: AcknowledgedGames) -> None:
        """One actor, many, one: each new one plays, no request fails, and the games of those that end are kept."""
        before = self.failures(stack)
        stack.up(actor=MANY)
        stack.wait(f"{MANY} actors are healthy", lambda: stack.healthy("actor", MANY))
        played = lambda actor: stack.metric([actor], "minuet_actor_games_acknowledged_total")  # noqa: E731
        stack.wait("each actor has acknowledged games", lambda: all(played(actor) > 0 for actor in stack.containers("actor")))
        Prometheus(stack).wait_for_targets()
        self.assertEqual(self.failures(stack), before, "requests failed under load")
        (first,) = stack.containers("actor", "--filter", "label=com.docker.compose.container-number=1")
        leaving = [actor for actor in stack.containers("actor") if actor != first]
        say(f"{len(leaving)} actors end")
        run("docker", "stop", *leaving)
        for actor in leaving:
            stack.read_log(actor, games)
        run("docker", "rm", "--volumes", *leaving)
        stack.up(actor=1)
        stack.wait("one actor is left", lambda: stack.healthy("actor", 1))
        self.wait_for_more_games(stack, games)
        self.assertEqual(self.failures(stack), before, "requests failed when actors ended")
        stack.up(actor=3)
        stack.wait("three actors are healthy", lambda: stack.healthy("actor", 3))

    def scale_inference(self, stack: Stack, games: AcknowledgedGames) -> None:
        """One server, three, one: each gets its share within `SHARE_S`, and one that hangs is left."""
        stack.up(inference_server=3)
        stack.wait("three inference servers are healthy", lambda: stack.healthy("inference-server", 3))
        wait_for_shares(lambda: self.evaluated(stack))

        hanging = stack.containers("inference-server")[0]
        say(f"an inference server hangs: {hanging}")
        run("docker", "pause", hanging)
        try:
            began, before = time.monotonic(), stack.metric(stack.containers("actor"), RECONNECTS)
            # Streams to a server that does not answer pings end, and others are opened.
            stack.wait("streams to the server have ended", lambda: stack.metric(stack.containers("actor"), RECONNECTS) > before)
            counts = {actor: stack.metric([actor], EVALUATIONS) for actor in stack.containers("actor")}
            stack.wait("every actor continues", lambda: all(stack.metric([actor], EVALUATIONS) > count for actor, count in counts.items()))
            say(f"the actors continued after {time.monotonic() - began:.0f} s")
            self.assertLess(time.monotonic() - began, HANG_S, "a server that hangs holds actors up for too long")
            self.wait_for_more_games(stack, games)
            Prometheus(stack).wait_for_alerts("inference-server")
        finally:
            run("docker", "unpause", hanging)
        Prometheus(stack).wait_until_resolved("inference-server")
        stack.wait("the server is healthy again", lambda: stack.healthy("inference-server", 3))
        wait_for_shares(lambda: self.evaluated(stack))

        stack.up(inference_server=1)
        stack.wait("one inference server is left", lambda: stack.healthy("inference-server", 1))
        self.wait_for_more_games(stack, games)

    def kill_all(self, stack: Stack, role: str, games: AcknowledgedGames) -> None:
        """Kill and restart every container of a role."""
        for container in stack.containers(role):
            say(f"killing {role} {container}")
            before = len(stack.acknowledged(games))
            stack.wait("more games are acknowledged", lambda before=before: len(stack.acknowledged(games)) > before)
            run("docker", "kill", "--signal", "KILL", container)
            if role in ALERTS:
                Prometheus(stack).wait_for_alerts(role)
            if role == "replay-store":
                self.check_restarted_store(stack, container, games)
            else:
                # Docker does not restart a container that was killed by hand.
                run("docker", "start", container)
        stack.wait(f"{role} is healthy again", lambda: stack.healthy(role, 3 if role == "actor" else 1))
        if role in ALERTS:
            Prometheus(stack).wait_until_resolved(role)
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
        self.assertEqual(sum(number for number in imported.pop("left_out").values() if isinstance(number, int)), 0)
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
