"""A run in the cluster: the overlay of this test, its pods, their pages of metrics, their games."""

from __future__ import annotations

import json
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

from ..images import DEPLOY, ROLES, ROOT, Images, run, say
from ..stack import ACTOR_LOG, AcknowledgedGames, tiny_configuration
from .api import BROKEN
from .cluster import Cluster
from .render import Changes, as_list, kustomized, relative, template

SPACE = "/api/v1/namespaces/minuet"
# Processor time of each role's containers at most, as in the test of the compose stack.
CORES = {"inference-server": "300m", "learner": "1", "actor": "200m", "rating": "200m", "studio": "300m"}
COMPONENTS = ("backup", "rating", "studio", "tls")
OBJECT_STORE = "http://object-store:8333"
# The image of a store with S3's interface, and of clients, is made of the command line's.
TOOLS_IMAGE = "minuet-test-tools"
CLIENT = "client"
# The node of the object store, which keeps all in memory, and of the client.
OUTSIDE = "node1"
COMMAND = """[security]
plaintext = "loopback"
ca = "/client/ca.crt"
client_certificate = "/client/{0}.crt"
client_key = "/client/{0}.key"
token = "/client/{0}.token"
"""


class Run:
    """The overlay `local` with further components, a tiny run, few cores, and an object store of Python in place of the image."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        self.api = cluster.api
        self.folder = folder / "overlay"
        self.secrets = folder / "secrets"
        self.changes = Changes()
        self.games = AcknowledgedGames()
        self.followed: set[str] = set()
        self.folder.mkdir()
        self.settings = tiny_configuration(DEPLOY / "kubernetes" / "base" / "run.toml")
        run("sh", str(DEPLOY / "kubernetes" / "secrets.sh"), str(self.secrets), "notebook")

    def render(self) -> list[dict]:
        """Render an overlay as an operator writes one, on top of the shipped overlay `local`."""
        (self.folder / "run.toml").write_text(self.settings)
        access = (DEPLOY / "kubernetes" / "overlays" / "local" / "object-store.env").read_text()
        (self.folder / "object-store.env").write_text(access)
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": "minuet",
            "resources": [relative(self.folder, "overlays/local")],
            "components": [relative(self.folder, f"components/{name}") for name in COMPONENTS],
            "configMapGenerator": [{"name": "run", "behavior": "replace", "files": ["run.toml"]}],
            "secretGenerator": [{"name": f"object-store-{role}", "envs": ["object-store.env"]} for role in ("rating", "studio")],
            "images": [{"name": "minuet-command", "newTag": "local"}, {"name": "chrislusf/seaweedfs", "newName": TOOLS_IMAGE, "newTag": "local"}],
        }
        (self.folder / "kustomization.yaml").write_text(json.dumps(overlay))
        resources = self.changes.apply(kustomized(self.folder))
        for resource in resources:
            if made := template(resource):
                self.fit(resource["metadata"]["name"], made["spec"])
        return resources

    def fit(self, name: str, pod: dict) -> None:
        """Give a pod the processor time of the test, and the actors a log of the games that were acknowledged."""
        (container,) = pod["containers"]
        container["resources"]["requests"]["cpu"] = "100m"
        if name in CORES:
            container["resources"].setdefault("limits", {})["cpu"] = CORES[name]
        if name == "actor":
            # Many streams, as in the tiny run's settings, so that each of a few servers gets some of them.
            container["args"][container["args"].index("actor.threads=1")] = "actor.threads=4"
            container.setdefault("env", []).append({"name": "MINUET_LOG", "value": ACTOR_LOG})
        host = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [OUTSIDE]}]}
        if name == "replay-store":
            # Its nodes are drained and killed, with which the objects in memory would be lost.
            host["matchExpressions"][0]["operator"] = "NotIn"
        if name in ("object-store", "replay-store"):
            pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [host]}}}
        if name == "object-store":
            container["command"] = ["python3", "/opt/test/s3_server.py", "0.0.0.0:8333"]
            container["args"] = []
            # The server ends with its input.
            container["stdin"] = True
            container["env"] = [{"name": "PYTHONPATH", "value": "/opt/test/objects"}]

    def apply(self) -> None:
        """Apply the overlay, again after a change of the settings."""
        self.cluster.kubectl("apply", "-f", "-", input=as_list(self.render()))

    def begin(self) -> None:
        """Apply what the run needs and the run, and start a pod of a client."""
        self.cluster.kubectl("apply", "-f", str(self.secrets / "secrets.yaml"))
        files = [f"--from-file={self.secrets / name}" for name in ("ca.crt", *(f"{who}.{kind}" for who in ("command", "notebook") for kind in ("crt", "key", "token")))]
        texts = [f"--from-literal={who}.toml={COMMAND.format(who)}" for who in ("command", "notebook")]
        self.cluster.kubectl("create", "secret", "generic", CLIENT, *files, *texts)
        self.apply()
        self.changes.say()
        self.api.ask("POST", f"{SPACE}/pods", self.client_pod())

    def client_pod(self) -> dict:
        labels = {"minuet.dev/evaluates": "true", "minuet.dev/keeps-games": "true"}
        container = {
            "name": CLIENT,
            "image": f"{TOOLS_IMAGE}:local",
            "command": ["python3", "/opt/test/load.py", "inference-server:50051"],
            "env": [{"name": "PYTHONPATH", "value": "/opt/test/kserve"}],
            "volumeMounts": [{"name": CLIENT, "mountPath": "/client"}],
            # The test reads the games with this pod, also when the roles leave few cores.
            "resources": {"requests": {"cpu": "500m"}},
        }
        volume = {"name": CLIENT, "secret": {"secretName": CLIENT}}
        return {"metadata": {"name": CLIENT, "labels": labels}, "spec": {"nodeName": OUTSIDE, "automountServiceAccountToken": False, "containers": [container], "volumes": [volume]}}

    def client(self, account: str, *words: str) -> str:
        """Run a program in the client's pod with the certificate and the token of an account. It must be one that may run again."""
        command = ["exec", CLIENT, "--", "env", f"MINUET_CONFIG=/client/{account}.toml", *words]
        for _ in range(2):
            # On a busy machine the connection of `exec` breaks now and then.
            with suppress(AssertionError):
                return self.cluster.kubectl(*command)
        return self.cluster.kubectl(*command)

    def load(self) -> dict:
        """Return the last line of the client that sends requests all the time."""
        lines = self.cluster.kubectl("logs", "--tail", "20", CLIENT).splitlines()
        return json.loads(next(line for line in reversed(lines) if line.startswith("{")))

    def log(self, role: str) -> str:
        """Return the log of a role's pod, of its container before if that one has ended."""
        name = self.pods(role)[0]["metadata"]["name"]
        return self.cluster.kubectl("logs", name) + self.cluster.kubectl("logs", "--previous", name, check=False)

    def pods(self, role: str, *, ending: bool = False) -> list[dict]:
        """Return the pods of a role, without those that end."""
        found = self.api.get(f"{SPACE}/pods?labelSelector=app.kubernetes.io/name%3D{role}")["items"]
        return [pod for pod in found if ending or "deletionTimestamp" not in pod["metadata"]]

    def ready(self, role: str, count: int) -> bool:
        """True if a role has `count` pods, all of them ready. Begins to read the logs of new actors."""
        found = self.pods(role)
        if role == "actor":
            self.follow(found)
        return len(found) == count and all(is_ready(pod) for pod in found)

    def ready_client(self) -> bool:
        return is_ready(self.api.get(f"{SPACE}/pods/{CLIENT}"))

    def all_ready(self) -> bool:
        return all(self.ready(role, 1) for role in (*ROLES, "rating", "studio", "object-store"))

    def page(self, pod: dict) -> list[str]:
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:9100/metrics", timeout=5) as page:
            return page.read().decode().splitlines()

    def metric(self, pods: list[dict], name: str) -> float:
        """Return a metric's sum over pods."""
        lines = [line for pod in pods for line in self.page(pod)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def follow(self, actors: list[dict]) -> None:
        """Read the log of each container of these actors from its beginning to its end, to know which games were acknowledged."""
        for pod in actors:
            name, statuses = pod["metadata"]["name"], pod["status"].get("containerStatuses", [])
            identity = statuses[0].get("containerID") if statuses and "running" in statuses[0]["state"] else None
            if identity and identity not in self.followed:
                self.followed.add(identity)
                threading.Thread(target=self.read, args=(name,), daemon=True).start()

    def read(self, actor: str) -> None:
        try:
            for line in self.api.lines(f"{SPACE}/pods/{actor}/log?follow=true"):
                self.games.read(line)
        except BROKEN:
            pass  # the node is gone, and with it the rest of the log

    def listed(self) -> list[dict]:
        """Return all stored games, read through the store's service by another pod."""
        words = ["/opt/minuet/bin/minuet", "games", "list", "--store", "replay-store:50052", "--limit", "1000000", "--json"]
        return [json.loads(line) for line in self.client("command", *words).splitlines()]

    def newest_step(self) -> int:
        """Return the training step of the newest checkpoint that a stored game was played with."""
        return max((int(version[:12]) for game in self.listed() for version in game["model_versions"]), default=0)

    def check_games(self) -> tuple[int, int]:
        """Check that no acknowledged game is lost and none is stored twice. Return how many were acknowledged and are stored."""
        self.follow(self.pods("actor"))
        # Read first, because games that are acknowledged later may be missing in the list.
        acknowledged = set(self.games.ids)
        stored = [game["id"] for game in self.listed()]
        if len(stored) != len(set(stored)):
            raise Lost(f"{len(stored) - len(set(stored))} games are stored twice")
        if missing := acknowledged - set(stored):
            raise Lost(f"{len(missing)} of {len(acknowledged)} acknowledged games are missing")
        return len(acknowledged), len(stored)

    def wait_for_more_games(self) -> None:
        before = len(self.games.ids)

        def more() -> bool:
            self.follow(self.pods("actor"))
            return len(self.games.ids) >= before + 5

        self.cluster.wait_for("more games are acknowledged", more)
        acknowledged, stored = self.check_games()
        say(f"{acknowledged} games were acknowledged, {stored} are stored; none is lost, none is stored twice")

    def make_bucket(self) -> None:
        """Make the run's bucket, which this store does not make by itself."""
        script = f"import urllib.request as r; r.urlopen(r.Request('{OBJECT_STORE}/minuet', method='PUT', headers={{'Authorization': 'AWS4-HMAC-SHA256 Credential=minuet/20260101/us-east-1/s3/aws4_request'}}))"
        self.client("command", "python3", "-c", script)


class Lost(Exception):
    """Games are missing or stored twice, which no wait can repair."""


def is_ready(pod: dict) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", []))


def make_tools_image(images: Images, folder: Path, objects: Path, kserve: Path) -> str:
    """Build the image of the object store and of clients: the command line's, moto and NVIDIA's client."""
    folder.mkdir()
    for name, python in {"objects": objects, "kserve": kserve}.items():
        (packages,) = python.parent.parent.glob("lib/python*/site-packages")
        run("cp", "-r", str(packages), str(folder / name))
    for script in (Path(__file__).parent / "load.py", ROOT / "checkpoints" / "tests" / "common" / "s3_server.py"):
        run("cp", str(script), str(folder))
    name = f"{TOOLS_IMAGE}:{images.tag}"
    (folder / "Dockerfile").write_text(f"FROM minuet-command:{images.tag}\nCOPY . /opt/test\nENTRYPOINT []\n")
    run("docker", "build", "--quiet", "--tag", name, str(folder), env=images.environment)
    return name
