"""Images for the tests in containers: Debian images made on this machine, and the role images of the shipped Dockerfile.

The role images are made from the binaries in target/release, once for all tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RELEASE = ROOT / "target" / "release"
BASE_IMAGE = "minuet-test-base:bookworm-2"
# A Docker engine for the nodes of a swarm, and what a kubelet, kube-proxy and a control plane need.
ENGINE_IMAGE = "minuet-test-engine:bookworm-2"
# Debian images, which stay for the next test, and what they add to a minimal system.
DEBIAN_IMAGES = {BASE_IMAGE: "libstdc++6,python3-numpy", ENGINE_IMAGE: "docker.io,iptables,iproute2,conntrack,socat,etcd-server"}
DIST_IMAGE = "minuet-test-dist:local"
ROLES = ("replay-store", "inference-server", "learner", "actor")
PROMETHEUS = f"""FROM {BASE_IMAGE}
RUN install -d -o 65534 -g 65534 /prometheus
COPY prometheus /bin/prometheus
USER 65534
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]
"""

BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"  docker, {time.monotonic() - BEGAN:4.0f} s: {text}", file=sys.stderr, flush=True)


def run(*command: str, check: bool = True, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def missing() -> str | None:
    """Return what is missing on this machine, as a sentence."""
    for tool in ("docker", "docker-compose"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    if subprocess.run(["docker", "info"], capture_output=True).returncode != 0:
        return "the Docker engine does not answer, or this user may not use it"
    if debian_program("prometheus") is None:
        return "there is no Prometheus (Debian: apt install prometheus)"
    if all(has_image(name) for name in DEBIAN_IMAGES):
        return None
    if os.geteuid() != 0:
        return "debootstrap, which makes Debian images, needs root"
    if debian_program("debootstrap") is None:
        return "there is no debootstrap to make Debian images with (Debian: apt install debootstrap)"
    return None


def leave_out(case: unittest.TestCase, what: str) -> None:
    """Write down what this machine cannot test, and fail if nothing may be left out."""
    print(f"\nSKIPPED: {what}", file=sys.stderr, flush=True)
    if file := os.environ.get("MINUET_SKIPS"):
        with open(file, "a") as skips:
            skips.write(what + "\n")
    if os.environ.get("MINUET_FORBID_SKIPS") == "1":
        case.fail(f"skips are forbidden here (MINUET_FORBID_SKIPS=1): {what}")


def debian_program(name: str) -> Path | None:
    """Return an installed program, or one that was fetched without installing it. None if it cannot be fetched."""
    script = ROOT / "scripts" / "debian_program.py"
    done = subprocess.run([sys.executable, script, name], stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def dangling() -> set[str]:
    """Return images without a name, which build stages leave behind."""
    return set(run("docker", "images", "--quiet", "--no-trunc", "--filter", "dangling=true").split())


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def make_debian_images() -> str | None:
    """Make the Debian images that are not there yet. Return the reason if debootstrap fails."""
    reasons = [import_debian(name, packages) for name, packages in DEBIAN_IMAGES.items() if not has_image(name)]
    return next((reason for reason in reasons if reason), None)


def import_debian(name: str, packages: str) -> str | None:
    """Import a Debian tree as an image. Return the reason if debootstrap fails."""
    say(f"making the image {name} (once)")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        tree = Path(folder) / "tree"
        program = debian_program("debootstrap")
        command = [str(program), "--variant=minbase", f"--include={packages}", "bookworm", str(tree)]
        # dpkg calls fsync after each file, which takes most of the time and is not needed for a temporary tree.
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
        run("docker", "import", "-", name, stdin=tar.stdout)
        tar.wait()
    return None


def make_prometheus_image(name: str) -> None:
    """Build an image of Debian's Prometheus with the account, the folder of data and the program's place of the public image."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(debian_program("prometheus"), f"{folder}/prometheus")
        (Path(folder) / "Dockerfile").write_text(PROMETHEUS)
        run("docker", "build", "--quiet", "--tag", name, folder, env={**os.environ, "DOCKER_BUILDKIT": "0"})


def make_dist_image() -> None:
    """Build the base image with /dist, in place of the Dockerfile's compile stage."""
    with tempfile.TemporaryDirectory() as folder:
        run("sh", str(DEPLOY / "docker" / "dist.sh"), f"{folder}/dist")
        (Path(folder) / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nCOPY dist /dist\n")
        run("docker", "build", "--quiet", "--tag", DIST_IMAGE, folder, env={**os.environ, "DOCKER_BUILDKIT": "0"})


class Images:
    """The role images of this test, named minuet-ROLE:TAG. Use it in a `with` statement, which removes them at its end."""

    def __init__(self):
        self.tag = f"test-{os.getpid()}"
        self.prometheus = f"minuet-prometheus:{self.tag}"
        self.python = f"minuet-python:{self.tag}"
        self.names = [*(f"minuet-{role}:{self.tag}" for role in (*ROLES, "command")), self.python]
        self.environment = {
            **os.environ,
            "MINUET_BUILD_IMAGE": DIST_IMAGE,
            "MINUET_RUNTIME_IMAGE": BASE_IMAGE,
            "MINUET_TAG": self.tag,
            "DOCKER_BUILDKIT": "0",
            "COMPOSE_DOCKER_CLI_BUILD": "0",
        }

    def __enter__(self) -> Images:
        self.before = dangling()
        make_prometheus_image(self.prometheus)
        say("copying the binaries into an image")
        make_dist_image()
        say("building the role images")
        file = str(DEPLOY / "docker-compose.yml")
        run("docker-compose", "-f", file, "--profile", "command", "build", *ROLES, "command", env=self.environment)
        arguments = [word for name in ("BUILD_IMAGE", "RUNTIME_IMAGE") for word in ("--build-arg", f"{name}={self.environment[f'MINUET_{name}']}")]
        dockerfile = str(DEPLOY / "docker" / "Dockerfile")
        run("docker", "build", "--file", dockerfile, "--target", "python", *arguments, "--tag", self.python, str(ROOT), env=self.environment)
        return self

    def __exit__(self, *_error) -> None:
        run("docker", "rmi", "--force", *self.names, self.prometheus, DIST_IMAGE, *(dangling() - self.before), check=False)
