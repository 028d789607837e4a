"""Failures under load: pods killed one by one and all at once, a process that hangs, a node drained, a node that dies."""

from __future__ import annotations

import time
import unittest

from ..images import ROLES, say
from .cluster import KubernetesNode
from .run import SPACE, Run
from .scaling import Load

# Label of the run's pods.
PART = "app.kubernetes.io/part-of=minuet"
NOW = ("--grace-period=0", "--force")


def kill_pods(run: Run) -> None:
    """Kill each role's pod, then all pods of all roles together."""
    for role in ROLES:
        killed = run.pods(role)[0]
        say(f"killing {killed['metadata']['name']}")
        began, count = time.monotonic(), len(run.pods(role))
        run.cluster.kubectl("delete", "pod", killed["metadata"]["name"], *NOW)
        run.cluster.wait_for(f"{role} is ready again", lambda: is_replaced(run, role, killed) and run.ready(role, count))
        say(f"{role} was ready again after {time.monotonic() - began:.0f} s")
        run.wait_for_more_games()
    say("killing all pods of all roles")
    every = [pod["metadata"]["name"] for role in ROLES for pod in run.pods(role)]
    counts = {role: len(run.pods(role)) for role in ROLES}
    run.cluster.kubectl("delete", "pod", *every, *NOW)
    run.cluster.wait_for("every role is ready again", lambda: all(run.ready(role, count) for role, count in counts.items()))
    run.wait_for_more_games()


def is_replaced(run: Run, role: str, pod: dict) -> bool:
    return all(other["metadata"]["uid"] != pod["metadata"]["uid"] for other in run.pods(role, ending=True))


def hang(case: unittest.TestCase, run: Run) -> None:
    """A server that hangs gets no requests, and is started anew; no other container is."""
    run.cluster.kubectl("scale", "deployment/inference-server", "--replicas=2")
    run.cluster.wait_for("two inference servers are ready", lambda: run.ready("inference-server", 2))
    before = restarts(run)
    hanging = run.pods("inference-server")[0]
    name = hanging["metadata"]["name"]
    say(f"an inference server hangs: {name}")
    node = run.cluster.node(hanging["spec"]["nodeName"])
    node.docker("kill", "--signal", "STOP", hanging["status"]["containerStatuses"][0]["containerID"].removeprefix("docker://"))
    began = time.monotonic()
    addresses = f"{SPACE}/endpoints/inference-server"
    run.cluster.wait_for("the service leaves it out", lambda: hanging["status"]["podIP"] not in ready_addresses(run.api.get(addresses)))
    say(f"the service left it out after {time.monotonic() - began:.0f} s")
    run.wait_for_more_games()
    run.cluster.wait_for("the server is started anew", lambda: restarts(run).get(name, 0) > before[name] and run.ready("inference-server", 2))
    say(f"the server was started anew and ready after {time.monotonic() - began:.0f} s")
    others = {other: count for other, count in restarts(run).items() if other != name}
    case.assertEqual(others, {other: count for other, count in before.items() if other != name}, "another container was started anew")
    run.wait_for_more_games()


def restarts(run: Run) -> dict[str, int]:
    return {pod["metadata"]["name"]: status["restartCount"] for role in ROLES for pod in run.pods(role) for status in pod["status"]["containerStatuses"]}


def ready_addresses(endpoints: dict) -> list[str]:
    return [address["ip"] for subset in endpoints.get("subsets") or [] for address in subset.get("addresses") or []]


def disrupt(case: unittest.TestCase, run: Run) -> None:
    """Evictions one after the other are refused until the replacement of the first is ready."""
    first, second = (pod["metadata"]["name"] for pod in run.pods("inference-server"))
    with Load(case, run, "an inference server is evicted"):
        evict(run, first)
        with case.assertRaisesRegex(AssertionError, "429.*disruption budget"):
            evict(run, second)
        run.cluster.wait_for("two inference servers are ready", lambda: run.ready("inference-server", 2))
    run.wait_for_more_games()


def evict(run: Run, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "minuet"}}
    run.api.ask("POST", f"{SPACE}/pods/{pod}/eviction", eviction)


def drain_a_node(case: unittest.TestCase, run: Run) -> None:
    """The node of the store is emptied for maintenance, and comes back."""
    run.cluster.kubectl("scale", "deployment/inference-server", "--replicas=2")
    run.cluster.wait_for("two inference servers are ready", lambda: run.ready("inference-server", 2))
    counts = {role: len(run.pods(role)) for role in ROLES}
    node = node_of(run, "replay-store")
    say(f"draining {node.host}, which has {', '.join(pods_of(run, node))}")
    began = time.monotonic()
    run.cluster.kubectl("drain", node.host, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=900s", f"--pod-selector={PART},app.kubernetes.io/name!=object-store")
    case.assertEqual([pod for pod in pods_of(run, node) if not pod.startswith("object-store")], [])
    run.cluster.wait_for("every role is ready on other nodes", lambda: all(run.ready(role, count) for role, count in counts.items()))
    say(f"the node was empty and every role ready elsewhere after {time.monotonic() - began:.0f} s")
    run.wait_for_more_games()
    run.cluster.kubectl("uncordon", node.host)


def kill_a_node(run: Run) -> None:
    """The node of the store dies. Its other pods are replaced by themselves; the store's by hand, because only a person knows that it is dead."""
    node = node_of(run, "replay-store")
    say(f"killing {node.host}, which has {', '.join(pods_of(run, node))}")
    began, counts = time.monotonic(), {role: len(run.pods(role)) for role in ROLES}
    node.kill()
    run.cluster.wait_for("the cluster misses the node", lambda: not run.cluster.is_ready(node))
    say(f"the cluster missed the node after {time.monotonic() - began:.0f} s")
    run.cluster.wait_for("the store is to end", lambda: not run.pods("replay-store"))
    run.cluster.kubectl("delete", "pod", "replay-store-0", *NOW)
    run.cluster.wait_for("every role is ready on the other nodes", lambda: all(run.ready(role, count) for role, count in counts.items()))
    say(f"every role was ready elsewhere after {time.monotonic() - began:.0f} s")
    run.wait_for_more_games()
    say(f"starting {node.host} again")
    run.cluster.restart(node)
    run.cluster.wait_for("the node is ready", lambda: run.cluster.is_ready(node))
    run.wait_for_more_games()


def node_of(run: Run, role: str) -> KubernetesNode:
    return run.cluster.node(run.pods(role)[0]["spec"]["nodeName"])


def pods_of(run: Run, node: KubernetesNode) -> list[str]:
    """Return the names of the roles' pods on a node."""
    labelled = f"{SPACE}/pods?labelSelector=app.kubernetes.io%2Fpart-of%3Dminuet&fieldSelector=spec.nodeName%3D{node.host}"
    return [pod["metadata"]["name"] for pod in run.api.get(labelled)["items"] if pod["status"]["phase"] in ("Pending", "Running")]
