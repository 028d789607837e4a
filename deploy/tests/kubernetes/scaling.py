"""Requests and sizes: clients of other pods, actors and inference servers added and removed under load."""

from __future__ import annotations

import json
import unittest

from ..images import say
from ..stack import EVALUATED, FAILURES, wait_for_shares
from .run import Run

PLAYED = "minuet_actor_games_acknowledged_total"
MANY = 6


class Load:
    """Requests of the client's pod, which must all be answered within a block."""

    def __init__(self, case: unittest.TestCase, run: Run, what: str):
        self.case, self.run, self.what = case, run, what

    def __enter__(self) -> None:
        self.before = self.run.load()

    def __exit__(self, kind, *_error) -> None:
        if kind is None:
            now = self.run.load()
            failures = now["failures"][len(self.before["failures"]) :]
            self.case.assertEqual(failures, [], f"requests failed: {self.what}")
            say(f"{self.what}: {now['answered'] - self.before['answered']} requests of an ordinary client were answered, none failed")


def failures(run: Run) -> dict[str, float]:
    """Return the counts of failures of each pod that plays, evaluates or keeps games."""
    return {f"{pod['metadata']['name']} {name}": run.metric([pod], name) for role, names in FAILURES.items() for pod in run.pods(role) for name in names}


def check_failures(case: unittest.TestCase, run: Run, before: dict[str, float], what: str) -> None:
    grown = {name: count for name, count in failures(run).items() if count > before.get(name, 0)}
    case.assertEqual(grown, {}, what)


def ask(case: unittest.TestCase, run: Run) -> None:
    """Other pods reach the server by the service's name: Minuet's own client, and NVIDIA's."""
    words = ["/opt/minuet/bin/minuet", "query", "https://inference-server:50051", "--json"]
    answer = json.loads(run.client("notebook", *words))
    case.assertTrue(-1 <= answer["value"] <= 1, answer)
    answered = run.load()["answered"]
    run.cluster.wait_for("a client of the Open Inference Protocol is answered", lambda: run.load()["answered"] > answered)


def scale_actors(case: unittest.TestCase, run: Run) -> None:
    """One actor, several, one: each new one plays, no request fails, and the games of those that end are kept."""
    before = failures(run)
    with Load(case, run, f"actors 1 → {MANY} → 1"):
        run.cluster.kubectl("scale", "deployment/actor", f"--replicas={MANY}")
        run.cluster.wait_for(f"{MANY} actors are ready", lambda: run.ready("actor", MANY))
        run.cluster.wait_for("each actor has acknowledged games", lambda: all(run.metric([pod], PLAYED) > 0 for pod in run.pods("actor")))
        check_failures(case, run, before, "requests failed under load")
        run.wait_for_more_games()
        run.cluster.kubectl("scale", "deployment/actor", "--replicas=1")
        run.cluster.wait_for("one actor is left", lambda: len(run.pods("actor", ending=True)) == 1 and run.ready("actor", 1))
        run.wait_for_more_games()
        check_failures(case, run, before, "requests failed when actors ended")


def scale_inference(case: unittest.TestCase, run: Run) -> None:
    """One server, three, one: each gets its share, and no request fails when servers end."""
    run.cluster.kubectl("scale", "deployment/actor", "--replicas=3")
    run.cluster.wait_for("three actors are ready", lambda: run.ready("actor", 3))
    before = failures(run)
    with Load(case, run, "inference servers 1 → 3 → 1"):
        run.cluster.kubectl("scale", "deployment/inference-server", "--replicas=3")
        run.cluster.wait_for("three inference servers are ready", lambda: run.ready("inference-server", 3))
        servers = run.pods("inference-server")
        wait_for_shares(lambda: [run.metric([server], EVALUATED) for server in servers])
        check_failures(case, run, before, "requests failed when servers were added")
        run.cluster.kubectl("scale", "deployment/inference-server", "--replicas=1")
        run.cluster.wait_for("one inference server is left", lambda: len(run.pods("inference-server", ending=True)) == 1)
        run.wait_for_more_games()
    malformed = [name for name in failures(run) if "malformed" in name or "refused" in name]
    case.assertEqual({name: failures(run)[name] for name in malformed if failures(run)[name] > before.get(name, 0)}, {})
