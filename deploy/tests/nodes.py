"""Machines for the tests of clusters: Docker engines in containers on one network, which can be killed and cut off."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .images import ENGINE_IMAGE, run, say

# Longest time in seconds until an engine answers.
START_S = 60
NAME = f"minuet-nodes-{os.getpid()}"
# Folder that all nodes share, in place of an object store. It belongs to the account of the roles.
SHARED = "/shared"


class Node:
    """A Docker engine in a container of its own, with its own images and volumes."""

    def __init__(self, host: str, folder: Path, *settings: str):
        """`folder` is there on every node, under its own path. `settings` are further arguments of the engine."""
        self.host = host
        self.settings = settings
        self.container = f"{NAME}-{host}"
        self.folder = folder
        sockets = folder / host
        sockets.mkdir()
        self.socket = sockets / "docker.sock"
        self.runs = False

    def create(self) -> None:
        # An engine needs all rights of a privileged container but SYS_RESOURCE, which a machine that is a container may lack itself.
        rights = ["--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"]
        # A restarted engine must not find the state of the processes that ended with it in /run.
        places = ["--tmpfs", "/run", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup", "--volume", "/var/lib/docker"]
        shared = ["--volume", f"{NAME}:{SHARED}", "--volume", f"{self.folder}:{self.folder}"]
        names = ["--name", self.container, "--hostname", self.host, "--network", NAME]
        engine = ["dockerd", "--host", f"unix://{self.socket}", *self.settings]
        run("docker", "create", "--init", "--cgroupns", "host", *rights, *places, *shared, *self.mounts(), *names, ENGINE_IMAGE, *engine)

    def mounts(self) -> list[str]:
        """Return further options of the node's container."""
        return []

    def start(self) -> None:
        """Start the engine, or start it again after `kill`, and wait until it answers."""
        run("docker", "start", self.container)
        deadline = time.monotonic() + START_S
        while subprocess.run(["docker", "--host", f"unix://{self.socket}", "version"], capture_output=True).returncode != 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"the engine of {self.host} does not answer\n{run('docker', 'logs', '--tail', '20', self.container)}")
            time.sleep(0.5)
        self.runs = True

    def kill(self) -> None:
        """Kill the engine and all its containers, as a power failure does."""
        self.runs = False
        run("docker", "kill", self.container)

    def cut_off(self) -> None:
        """Drop all packets between this node and the others."""
        self.change_cut("--insert")

    def heal(self) -> None:
        self.change_cut("--delete")

    def change_cut(self, change: str) -> None:
        for chain, direction in (("INPUT", "-i"), ("OUTPUT", "-o"), ("FORWARD", "-i"), ("FORWARD", "-o")):
            run("docker", "exec", self.container, "iptables", change, chain, direction, "eth0", "-j", "DROP")

    def docker(self, *words: str, check: bool = True, **options) -> str:
        """Run a command of this node's engine."""
        return run("docker", "--host", f"unix://{self.socket}", *words, check=check, **options)

    def load(self, *images: str) -> None:
        """Copy images of the machine's own engine."""
        with subprocess.Popen(["docker", "save", *images], stdout=subprocess.PIPE) as saved:
            self.docker("load", "--quiet", stdin=saved.stdout)
        if saved.returncode != 0:
            raise AssertionError(f"docker save {' '.join(images)} failed")

    def log(self, container: str) -> str:
        """Return what a container wrote to stderr, also one that has ended. Empty if it is removed meanwhile."""
        return subprocess.run(["docker", "--host", f"unix://{self.socket}", "logs", container], capture_output=True, text=True).stderr


class Nodes:
    """Nodes on a network of their own, which begin and end with a `with` statement."""

    def __init__(self, *nodes: Node):
        self.nodes = nodes
        self.cgroups = cgroups()

    def __enter__(self) -> tuple[Node, ...]:
        say(f"starting the engines of {len(self.nodes)} nodes")
        try:
            run("docker", "network", "create", NAME)
            for node in self.nodes:
                node.create()
                node.start()
            run("docker", "exec", self.nodes[0].container, "chown", "65532:65532", SHARED)
        except BaseException:
            self.__exit__()
            raise
        return self.nodes

    def __exit__(self, *_error) -> None:
        for node in self.nodes:
            run("docker", "rm", "--force", "--volumes", node.container, check=False)
        run("docker", "volume", "rm", "--force", NAME, check=False)
        run("docker", "network", "rm", NAME, check=False)
        # An engine that is killed leaves the cgroups of its containers.
        for folder in cgroups() - self.cgroups:
            with suppress(OSError):  # in use, by another container that has begun meanwhile
                folder.rmdir()


def cgroups() -> set[Path]:
    """Return the cgroups of containers on this machine (version 1)."""
    return set(Path("/sys/fs/cgroup").glob("*/docker/*/"))
