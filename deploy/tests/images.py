"""Images for the tests in containers: a Debian base image made on this machine, and the role images of the shipped Dockerfile.

The role images are made from the binaries in target/release, once for all tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RELEASE = ROOT / "target" / "release"
BASE_IMAGE = "minuet-test-base:bookworm-1"
DIST_IMAGE = "minuet-test-dist:local"
ROLES = ("replay-store", "inference-server", "learner", "actor")

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
    if has_image(BASE_IMAGE):
        return None
    if os.geteuid() != 0:
        return "debootstrap, which makes the base image, needs root"
    if debootstrap() is None:
        return "there is no debootstrap to make a base image with (Debian: apt install debootstrap)"
    return None


def debootstrap() -> Path | None:
    """Return the installed debootstrap, or one that was fetched without installing it."""
    script = ROOT / "scripts" / "debian_program.py"
    done = subprocess.run([sys.executable, script, "debootstrap"], stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def dangling() -> set[str]:
    """Return images without a name, which build stages leave behind."""
    return set(run("docker", "images", "--quiet", "--no-trunc", "--filter", "dangling=true").split())


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def make_base_image() -> str | None:
    """Import a Debian tree as the base image. Return the reason if debootstrap fails."""
    if has_image(BASE_IMAGE):
        return None
    say("making a Debian base image (once)")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        tree = Path(folder) / "tree"
        program = debootstrap()
        command = [str(program), "--variant=minbase", "--include=libstdc++6", "bookworm", str(tree)]
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
        run("docker", "import", "-", BASE_IMAGE, stdin=tar.stdout)
        tar.wait()
    return None


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
        self.names = [f"minuet-{role}:{self.tag}" for role in (*ROLES, "command")]
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
        say("copying the binaries into an image")
        make_dist_image()
        say("building the role images")
        file = str(DEPLOY / "docker-compose.yml")
        run("docker-compose", "-f", file, "--profile", "command", "build", *ROLES, "command", env=self.environment)
        return self

    def __exit__(self, *_error) -> None:
        # The base image stays for the next test.
        run("docker", "rmi", "--force", *self.names, DIST_IMAGE, *(dangling() - self.before), check=False)
