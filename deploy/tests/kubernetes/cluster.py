"""A whole Kubernetes of this machine: a control plane, and a kubelet on each of several Docker engines in containers."""

from __future__ import annotations

import csv
import json
import secrets
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..images import BASE_IMAGE, ENGINE_IMAGE, run, say
from ..nodes import NAME, Node, Nodes
from .api import Api
from .names import DOMAIN, Names
from .volumes import Volumes

# Addresses of pods: a network for each node. Those of services.
PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
PORT = 6443
# Longest wait in seconds. A test that waits this long is assumed to hang, also on a machine with much other work.
TIMEOUT_S = 900
# The control plane goes before the nodes when cores are few. Its requests would time out otherwise.
FIRST = ("--cpu-shares", "8192")
PAUSE_IMAGE = "minuet-test-pause:local"
# A pod's first container, which keeps the pod's network until it is told to end.
PAUSE = f'FROM {BASE_IMAGE}\nENTRYPOINT ["sh", "-c", "trap exit TERM INT; sleep infinity & wait"]\n'
# Accounts of the parts, with the groups that give them the rights which the API server has for them.
ACCOUNTS = {"admin": "system:masters", "system:kube-controller-manager": "", "system:kube-scheduler": "", "system:kube-proxy": ""}
# Settings of the kernel that every kubelet writes. They belong to the whole machine and are put back at the end.
KERNEL = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")


class Cluster:
    """The cluster, which begins and ends with a `with` statement. Files of its parts and their logs are in `folder`."""

    def __init__(self, folder: Path, programs: Path, *hosts: str):
        folder.mkdir()
        folder.chmod(0o755)
        self.folder = folder
        self.programs = programs
        engine = "--bip={}", "--iptables=false", "--ip-masq=false", "--host=unix:///var/run/docker.sock"
        settings = {host: [setting.format(f"10.244.{number}.1/24") for setting in engine] for number, host in enumerate(hosts, 1)}
        self.nodes = [KubernetesNode(host, folder, programs, *settings[host]) for host in hosts]
        self.started = Nodes(*self.nodes)
        self.tokens = {account: secrets.token_hex(16) for account in (*ACCOUNTS, *(f"system:node:{host}" for host in hosts))}
        self.parts = [f"{NAME}-{part}" for part in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")]
        self.kernel = {name: value.read_text() for name in KERNEL if (value := Path("/proc/sys") / name).exists()}
        self.threads: list[Names | Volumes] = []
        # Known once the API server's container has an address.
        self.server = ""

    def __enter__(self) -> Cluster:
        try:
            make_pause_image()
            self.started.__enter__()
            self.start_control_plane()
            self.threads = [Names(self.api, gateway()), Volumes(self.api, self.folder / "volumes")]
            self.connect(*self.nodes)
            for node in self.nodes:
                node.load(PAUSE_IMAGE)
                self.start_kubelet(node)
            self.wait_for("every node is ready", lambda: all(self.is_ready(node) for node in self.nodes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error) -> None:
        for thread in self.threads:
            thread.end()
        run("docker", "rm", "--force", "--volumes", *reversed(self.parts), check=False)
        self.started.__exit__()
        run("docker", "rmi", "--force", PAUSE_IMAGE, check=False)
        for name, value in self.kernel.items():
            (Path("/proc/sys") / name).write_text(value)

    def start_control_plane(self) -> None:
        """Start the parts in one container each. They share the network of the first one."""
        etcd, api_server, *_ = self.parts
        store = ["etcd", "--data-dir=/etcd/data"]
        run("docker", "run", "--detach", "--name", etcd, *FIRST, "--network", NAME, "--tmpfs", "/etcd", ENGINE_IMAGE, *store)
        address = address_of(etcd)
        with (self.folder / "tokens.csv").open("w") as file:
            for account, token in self.tokens.items():
                groups = ACCOUNTS.get(account, "system:nodes")
                csv.writer(file).writerow([token, account, account, *([groups] if groups else [])])
        run("openssl", "genrsa", "-out", str(self.folder / "accounts.key"), "2048")
        run("openssl", "rsa", "-in", str(self.folder / "accounts.key"), "-pubout", "-out", str(self.folder / "accounts.pub"))
        files = {"authority": self.folder / "certificates" / "apiserver.crt", "key": self.folder / "accounts.key"}
        self.part(
            api_server,
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={address}",
            f"--secure-port={PORT}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={self.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={files['key']}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICES}",
            "--kubelet-preferred-address-types=InternalIP",
            # Pods of a lost node are replaced sooner than after the usual five minutes.
            "--default-not-ready-toleration-seconds=20",
            "--default-unreachable-toleration-seconds=20",
        )
        self.server = f"https://{address}:{PORT}"
        self.wait_for("the API server has its certificate", files["authority"].exists)
        self.api = Api(self.server, files["authority"], self.tokens["admin"])
        self.wait_for("the API server is ready", lambda: self.api.open("GET", "/readyz").read() == b"ok")
        controllers = ["--leader-elect=false", "--kubeconfig"]
        key = [f"--service-account-private-key-file={files['key']}", f"--root-ca-file={files['authority']}"]
        # Each controller has the rights of an account of its own. A node counts as lost sooner than in a cluster of several machines.
        settings = ["--use-service-account-credentials=true", "--node-monitor-period=2s", "--node-monitor-grace-period=20s"]
        self.part(self.parts[2], *controllers, self.access("system:kube-controller-manager"), *key, *settings)
        self.part(self.parts[3], *controllers, self.access("system:kube-scheduler"))

    def part(self, container: str, *arguments: str) -> None:
        """Start a part of the control plane."""
        program = container.removeprefix(f"{NAME}-")
        volumes = [word for folder in (self.folder, self.programs) for word in ("--volume", f"{folder}:{folder}")]
        network = f"container:{self.parts[0]}"
        run("docker", "run", "--detach", "--name", container, *FIRST, "--network", network, *volumes, ENGINE_IMAGE, str(self.programs / program), *arguments)

    def access(self, account: str) -> str:
        """Write the file with which an account reaches the API server, and return its path."""
        cluster = {"server": self.server, "certificate-authority": str(self.folder / "certificates" / "apiserver.crt")}
        named = {
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": self.tokens[account]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "minuet"}}],
        }
        file = self.folder / f"{account.replace(':', '-')}.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "test", **named}))
        return str(file)

    def connect(self, *started: KubernetesNode) -> None:
        """Give every node the ways to the pods of the others, this machine the ways to all, and started nodes that to the outside."""
        for number, node in enumerate(self.nodes, 1):
            way = ["ip", "route", "replace", f"10.244.{number}.0/24", "via", node.address()]
            run(*way)
            for other in self.nodes:
                if other is not node:
                    other.run(*way)
        for node in started:
            outside = ["--source", PODS, "!", "--destination", PODS]
            node.run("iptables", "--table", "nat", "--append", "POSTROUTING", *outside, "--jump", "MASQUERADE")

    def start_kubelet(self, node: KubernetesNode) -> None:
        """Start kubelet and kube-proxy on a node, whose processes end with the node."""
        configuration = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            # All nodes have the cgroups of this machine, so none may remove those that it does not know.
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
            "clusterDNS": [gateway()],
            "clusterDomain": DOMAIN,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "nodeStatusUpdateFrequency": "4s",
            "syncFrequency": "20s",
        }
        (self.folder / "kubelet.json").write_text(json.dumps(configuration))
        node.background(
            "kubelet",
            f"--kubeconfig={self.access(f'system:node:{node.host}')}",
            f"--config={self.folder / 'kubelet.json'}",
            f"--pod-infra-container-image={PAUSE_IMAGE}",
            f"--hostname-override={node.host}",
            f"--node-ip={node.address()}",
        )
        # The limits of connections belong to the whole machine.
        limits = ["--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s"]
        node.background("kube-proxy", f"--kubeconfig={self.access('system:kube-proxy')}", f"--cluster-cidr={PODS}", f"--hostname-override={node.host}", *limits)

    def restart(self, node: KubernetesNode) -> None:
        """Start a node again that was killed."""
        node.start()
        self.connect(node)
        self.start_kubelet(node)

    def load(self, hosts: Sequence[str], *images: str) -> None:
        """Copy images of the machine's own engine to nodes, under the tag `local`."""
        nodes = [self.node(host) for host in hosts]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.load(*images), nodes))
        for node in nodes:
            for image in images:
                node.docker("tag", image, f"{image.partition(':')[0]}:local")

    def kubectl(self, *words: str, check: bool = True, **options) -> str:
        """Run a command of the cluster's own kubectl, as an administrator, in the namespace `minuet`."""
        return run(str(self.programs / "kubectl"), "--kubeconfig", self.access("admin"), *words, check=check, **options)

    def node(self, host: str) -> KubernetesNode:
        return next(node for node in self.nodes if node.host == host)

    def is_ready(self, node: KubernetesNode) -> bool:
        conditions = self.api.get(f"/api/v1/nodes/{node.host}")["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def wait_for(self, what: str, holds) -> None:
        say(f"waiting in the cluster: {what}")
        deadline, failure = time.monotonic() + TIMEOUT_S, ""
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
                failure = ""
            except (AssertionError, OSError, IndexError, KeyError, StopIteration, json.JSONDecodeError) as error:
                failure = repr(error)  # expected while parts start, and for a short time after one ends
            time.sleep(0.5)
        raise AssertionError(f"timed out: {what}\n{failure}\n{self.state()}")

    def state(self) -> str:
        """Return what may explain a failure: pods, events, the last lines of the parts' logs."""
        seen = [self.kubectl(*words, check=False) for words in (["get", "nodes,pods", "-o", "wide"], ["get", "events", "--sort-by=.lastTimestamp"])]
        logs = [subprocess.run(["docker", "logs", "--tail", "5", part], capture_output=True, text=True).stderr for part in self.parts]
        kubelets = ["".join(log.read_text().splitlines(keepends=True)[-8:]) for log in sorted(self.folder.glob("*-kubelet.log"))]
        return "\n".join([seen[0], seen[1][-4000:], *logs, *kubelets])


class KubernetesNode(Node):
    """An engine whose container also has Kubernetes' programs."""

    def __init__(self, host: str, folder: Path, programs: Path, *settings: str):
        super().__init__(host, folder, *settings)
        self.programs = programs

    def mounts(self) -> list[str]:
        # The kubelet reads the kernel's messages about memory. Its folder must be one in which mounts are seen by the engine.
        return ["--volume", f"{self.programs}:{self.programs}:ro", "--volume", "/var/lib/kubelet", "--device", "/dev/kmsg"]

    def address(self) -> str:
        return address_of(self.container)

    def run(self, *words: str, check: bool = True) -> str:
        return run("docker", "exec", self.container, *words, check=check)

    def background(self, program: str, *arguments: str) -> None:
        """Start one of Kubernetes' programs in the node. Its log is in the shared folder."""
        log = self.folder / f"{self.host}-{program}.log"
        words = ["sh", "-c", f'exec "$@" >> {log} 2>&1', program, str(self.programs / program), *arguments]
        run("docker", "exec", "--detach", self.container, *words)


def make_pause_image() -> None:
    run("docker", "build", "--quiet", "--tag", PAUSE_IMAGE, "-", input=PAUSE)


def address_of(container: str) -> str:
    networks = json.loads(run("docker", "inspect", container))[0]["NetworkSettings"]["Networks"]
    return networks[NAME]["IPAddress"]


def gateway() -> str:
    """Return this machine's address on the nodes' network."""
    return json.loads(run("docker", "network", "inspect", NAME))[0]["IPAM"]["Config"][0]["Gateway"]
