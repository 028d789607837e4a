"""What the API server, the scheduler and the accounts' rights make of the manifests: every overlay, GPU nodes, priorities."""

from __future__ import annotations

import unittest

from ..images import DEPLOY, ROLES, say
from .cluster import Cluster
from .render import Changes, as_list, kustomized
from .run import SPACE, Run

OVERLAYS = (*(f"kubernetes/overlays/{name}" for name in ("local", "gpu", "production")), "tests/every-component")
GPU = "nvidia.com/gpu"
GPU_SPACE = "minuet-gpu"


def try_every_overlay(cluster: Cluster) -> None:
    """The real server admits each overlay, after the changes for its version. Nothing is made."""
    for overlay in OVERLAYS:
        resources = Changes().apply(kustomized(DEPLOY / overlay))
        admitted = cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=as_list(resources)).splitlines()
        say(f"the server admits {overlay}: {len(admitted)} resources")
        if len(admitted) != len(resources):
            raise AssertionError(f"{overlay}: {len(resources)} resources, admitted were {admitted}")


def check_rights(case: unittest.TestCase, run: Run) -> None:
    """No account of a role may do anything, and no pod has a token of the API."""
    for role in (*ROLES, "rating", "studio", "backup"):
        account = f"system:serviceaccount:minuet:{role}"
        for verb, what in (("get", "pods"), ("list", "secrets"), ("create", "pods"), ("get", "configmaps")):
            answer = run.cluster.kubectl("auth", "can-i", verb, what, f"--as={account}", check=False).strip()
            case.assertEqual(answer, "no", f"{account} may {verb} {what}")
    for role in ROLES:
        name = run.pods(role)[0]["metadata"]["name"]
        case.assertEqual(run.cluster.kubectl("exec", name, "--", "sh", "-c", "ls /var/run/secrets 2> /dev/null || true").split(), [], role)


def schedule_on_gpus(case: unittest.TestCase, cluster: Cluster) -> None:
    """Pods of the overlay `gpu` go to nodes that say they have a GPU, one for each; self-play goes to the others."""
    *_, gpu_node = cluster.nodes
    path = f"/api/v1/nodes/{gpu_node.host}"
    cluster.api.patch(f"{path}/status", [{"op": "add", "path": f"/status/capacity/{GPU.replace('/', '~1')}", "value": "2"}])
    cluster.kubectl("label", "node", gpu_node.host, f"{GPU}.present=true")
    cluster.kubectl("taint", "node", gpu_node.host, f"{GPU}=true:NoSchedule")
    try:
        cluster.kubectl("create", "namespace", GPU_SPACE)
        resources = Changes().apply(kustomized(DEPLOY / "kubernetes/overlays/gpu"))
        made = [resource for resource in resources if resource["kind"] in ("Deployment", "ServiceAccount", "PersistentVolumeClaim", "PriorityClass")]
        for resource in made:
            if "namespace" in resource["metadata"]:
                resource["metadata"]["namespace"] = GPU_SPACE
            if resource["kind"] == "Deployment":
                name, spec = resource["metadata"]["name"], resource["spec"]
                # Two servers and the learner want three GPUs, and the node has two.
                spec["replicas"] = {"inference-server": 2, "learner": 1}.get(name, 2)
                spec["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10m"
        cluster.kubectl("apply", "-f", "-", input=as_list(made))
        pods = lambda: cluster.api.get(f"/api/v1/namespaces/{GPU_SPACE}/pods")["items"]  # noqa: E731
        places = lambda: [(role(pod), pod["spec"].get("nodeName")) for pod in pods()]  # noqa: E731
        cluster.wait_for("the scheduler has placed all but one pod", lambda: len(places()) == 5 and sum(node is None for _, node in places()) == 1)
        waiting = [pod for pod in pods() if "nodeName" not in pod["spec"]]
        cluster.wait_for("it says why", lambda: any(GPU in condition.get("message", "") for condition in get(cluster, waiting[0])["status"]["conditions"]))
        case.assertIn(role(waiting[0]), ("inference-server", "learner"))
        on_gpus = {name for name, node in places() if node == gpu_node.host}
        case.assertLessEqual(on_gpus, {"inference-server", "learner"}, "self-play took a GPU node")
        case.assertEqual(sum(node == gpu_node.host for _, node in places()), 2)
        say("of three pods that want a GPU two are on the node with two, one waits, and self-play is on the other nodes")
    finally:
        cluster.kubectl("delete", "namespace", GPU_SPACE, "--wait=false", check=False)
        cluster.kubectl("taint", "node", gpu_node.host, f"{GPU}:NoSchedule-", check=False)
        cluster.kubectl("label", "node", gpu_node.host, f"{GPU}.present-", check=False)


def role(pod: dict) -> str:
    return pod["metadata"]["labels"]["app.kubernetes.io/name"]


def get(cluster: Cluster, pod: dict) -> dict:
    return cluster.api.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")


def displace_self_play(case: unittest.TestCase, run: Run) -> None:
    """A pod of usual priority gets the place of an actor if there is no other."""
    actor = run.pods("actor")[0]
    host = actor["spec"]["nodeName"]
    node = run.api.get(f"/api/v1/nodes/{host}")
    pods = run.api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{host}")["items"]
    taken = sum(cores(container["resources"].get("requests", {}).get("cpu", "0")) for pod in pods for container in pod["spec"]["containers"])
    # Half an actor more than is free.
    wanted = cores(node["status"]["allocatable"]["cpu"]) - taken + 50
    container = {"name": "work", "image": "minuet-actor:local", "command": ["sleep", "infinity"], "resources": {"requests": {"cpu": f"{wanted}m"}}}
    pod = {"metadata": {"name": "work"}, "spec": {"nodeSelector": {"kubernetes.io/hostname": host}, "containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}}
    run.api.ask("POST", f"{SPACE}/pods", pod)
    run.cluster.wait_for("the pod has taken the place of an actor or of a rating", lambda: run.api.get(f"{SPACE}/pods/work")["status"]["phase"] == "Running")
    kept = {role: run.pods(role) for role in ("replay-store", "inference-server", "learner")}
    before = {pod["metadata"]["uid"] for pod in pods}
    gone = before - {pod["metadata"]["uid"] for pod in run.api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{host}")["items"]}
    displaced = {pod["spec"].get("priorityClassName") for pod in pods if pod["metadata"]["uid"] in gone}
    case.assertEqual(displaced, {"minuet-actor"})
    case.assertTrue(all(kept.values()))
    run.cluster.kubectl("delete", "pod", "work")
    run.wait_for_more_games()


def cores(quantity: str) -> int:
    """Convert a quantity of cores to thousandths."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000
