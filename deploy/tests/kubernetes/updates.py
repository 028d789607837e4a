"""Changes of a run while it plays: new versions, undone versions, settings, tokens, an archive of the games and its restoration."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
import unittest

from ..images import say
from .run import SPACE, Run
from .scaling import Load

TOKENS = "minuet_server_tokens"


def roll(case: unittest.TestCase, run: Run) -> None:
    """A new version of the inference servers under load, and its predecessor again; one that cannot start leaves the old ones alone."""
    run.cluster.kubectl("scale", "deployment/inference-server", "--replicas=2")
    run.cluster.wait_for("two inference servers are ready", lambda: run.ready("inference-server", 2))
    old = names(run, "inference-server")
    with Load(case, run, "a rolling update of the inference servers"):
        run.cluster.kubectl("set", "env", "deployment/inference-server", "MINUET_LOG=info")
        run.cluster.kubectl("rollout", "status", "deployment/inference-server", "--timeout=900s")
    case.assertFalse(old & names(run, "inference-server"), "the update replaces every server")
    with Load(case, run, "its roll-back"):
        run.cluster.kubectl("rollout", "undo", "deployment/inference-server")
        run.cluster.kubectl("rollout", "status", "deployment/inference-server", "--timeout=900s")
    kept = names(run, "inference-server")
    with Load(case, run, "an update that cannot start"):
        change = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--set=inference.no_such_key=1"}]
        run.api.patch("/apis/apps/v1/namespaces/minuet/deployments/inference-server", change)
        args = f"{SPACE}/pods?labelSelector=app.kubernetes.io/name%3Dinference-server"
        run.cluster.wait_for("the new version fails", lambda: any(fails(pod) for pod in run.api.get(args)["items"]))
        case.assertLessEqual(kept, names(run, "inference-server"), "servers ended before others were ready")
        run.cluster.kubectl("rollout", "undo", "deployment/inference-server")
        run.cluster.wait_for("the old version is left", lambda: names(run, "inference-server") == kept)
    run.wait_for_more_games()


def names(run: Run, role: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in run.pods(role)}


def fails(pod: dict) -> bool:
    return any(status["restartCount"] > 0 and not status["ready"] for status in pod["status"].get("containerStatuses", []))


def change_settings(case: unittest.TestCase, run: Run) -> None:
    """A changed run.toml starts the roles anew with it."""
    before = {pod["metadata"]["name"] for role in ("actor", "learner", "replay-store", "inference-server") for pod in run.pods(role)}
    run.settings = run.settings.replace("visits = 6", "visits = 7", 1)
    run.apply()
    for workload in ("deployment/actor", "deployment/learner", "deployment/inference-server", "statefulset/replay-store"):
        run.cluster.kubectl("rollout", "status", workload, "--timeout=900s")
    run.cluster.wait_for("every role is ready with the new settings", lambda: run.all_ready())
    actor = run.pods("actor")[0]["metadata"]["name"]
    case.assertIn("visits = 7", run.cluster.kubectl("exec", actor, "--", "cat", "/etc/minuet/run.toml"))
    # The store has one name always.
    after = {pod["metadata"]["name"] for role in ("actor", "learner", "inference-server") for pod in run.pods(role)}
    case.assertFalse(before & after, "a role kept the old settings")
    run.wait_for_more_games()


def change_token(case: unittest.TestCase, run: Run) -> None:
    """The actors' token is replaced by the steps of the guide. No process is started anew, no game is lost."""
    restarts = {pod["metadata"]["uid"] for role in ("actor", "inference-server", "replay-store") for pod in run.pods(role)}
    token = secrets.token_hex(32)
    line = f"actor-new {{}} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
    rights = {"inference-server": "evaluate", "replay-store": "append"}
    count = {server: run.metric(run.pods(server)[:1], TOKENS) for server in rights}

    def accepted(change: int) -> bool:
        return all(run.metric([pod], TOKENS) == count[server] + change for server in rights for pod in run.pods(server))

    for server, right in rights.items():
        write(run, f"minuet-tokens-{server}", "tokens", read(run, f"minuet-tokens-{server}", "tokens") + line.format(right))
    run.cluster.wait_for("the servers accept the new token", lambda: accepted(1))
    write(run, "minuet-token-actor", "token", token)
    mounted = lambda pod: run.cluster.kubectl("exec", pod["metadata"]["name"], "--", "cat", "/etc/minuet-tokens/token")  # noqa: E731
    run.cluster.wait_for("the actors have the new token", lambda: all(mounted(pod) == token for pod in run.pods("actor")))
    # The guide asks for a minute, in which clients read their files again.
    mounted_at = time.monotonic()
    run.cluster.wait_for("a minute is over", lambda: time.monotonic() - mounted_at > 60)
    for server in rights:
        text = read(run, f"minuet-tokens-{server}", "tokens")
        write(run, f"minuet-tokens-{server}", "tokens", "".join(kept for kept in text.splitlines(keepends=True) if not kept.startswith("actor ")))
    run.cluster.wait_for("the servers refuse the old token", lambda: accepted(0))
    run.wait_for_more_games()
    after = {pod["metadata"]["uid"] for role in ("actor", "inference-server", "replay-store") for pod in run.pods(role)}
    case.assertEqual(after, restarts, "pods were replaced")


def read(run: Run, secret: str, key: str) -> str:
    return base64.b64decode(run.api.get(f"{SPACE}/secrets/{secret}")["data"][key]).decode()


def write(run: Run, secret: str, key: str, text: str) -> None:
    run.api.patch(f"{SPACE}/secrets/{secret}", {"data": {key: base64.b64encode(text.encode()).decode()}})


def back_up(case: unittest.TestCase, run: Run) -> None:
    """The scheduled job writes an archive of all games, and a store on a new volume gets them back from it."""
    run.cluster.kubectl("scale", "deployment/actor", "--replicas=0")
    run.cluster.wait_for("no actor is left", lambda: not run.pods("actor", ending=True))
    run.check_games()
    stored = {game["id"] for game in run.listed()}
    run.cluster.kubectl("patch", "cronjob", "export-games", "--patch", json.dumps({"spec": {"suspend": False, "schedule": "* * * * *"}}))
    jobs = "/apis/batch/v1/namespaces/minuet/jobs"
    # The controller looks at schedules every ten seconds, and this one is due every minute.
    run.cluster.wait_for("the scheduled job has written an archive", lambda: any(job["status"].get("succeeded") for job in run.api.get(jobs)["items"]))
    run.cluster.kubectl("patch", "cronjob", "export-games", "--patch", json.dumps({"spec": {"suspend": True}}))

    say("deleting the store's volume")
    run.cluster.kubectl("scale", "statefulset/replay-store", "--replicas=0")
    run.cluster.wait_for("the store has ended", lambda: not run.pods("replay-store", ending=True))
    run.cluster.kubectl("delete", "pvc", "replay-replay-store-0")
    run.cluster.kubectl("scale", "statefulset/replay-store", "--replicas=1")
    run.cluster.wait_for("a store on a new volume is ready", lambda: run.ready("replay-store", 1))
    case.assertEqual(run.listed(), [], "the new volume has games")
    run.cluster.kubectl("create", "job", "--from=cronjob/import-games", "restore")
    run.cluster.wait_for("the games are imported", lambda: run.api.get(f"{jobs}/restore")["status"].get("succeeded"))
    case.assertEqual({game["id"] for game in run.listed()}, stored)
    say(f"{len(stored)} games were restored from the archive")
    run.cluster.kubectl("scale", "deployment/actor", "--replicas=3")
    run.wait_for_more_games()
