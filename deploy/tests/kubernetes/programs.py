"""Kubernetes' programs, built from Debian's source package in a container that has Go, and kept in the user's cache.

No package has a control plane. Debian 12 has the whole source of Kubernetes 1.20 with all that it needs, so that the build needs
no other network than apt's. It takes about a quarter of an hour, once.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..images import ROOT, has_image, import_debian, run, say

sys.path.insert(0, str(ROOT / "scripts"))
from fetch_libraries import cache_folder  # noqa: E402

VERSION = "1.20.5+really1.20.2-1.1+deb12u1"
RELEASE = "v1.20.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl", "kube-proxy")
BUILDER_IMAGE = "minuet-test-go:bookworm-1"
BUILDER_PACKAGES = "golang-go,gcc,libc6-dev,make,rsync,dpkg-dev"
# Seconds between two lines of progress.
PROGRESS_S = 30

# Kubelet and proxy give themselves and their containers scores below 0 for the kernel's choice of processes to kill, which a
# machine that is a container refuses. The build has 0 in their place.
BUILD = f"""
cd /build
dpkg-source --no-check --extract *.dsc source > /dev/null
cd source
sed -i -E 's/(KubeletOOMScoreAdj|KubeProxyOOMScoreAdj|guaranteedOOMScoreAdj)( *int)? *= *-[0-9]+/\\1\\2 = 0/' pkg/kubelet/qos/policy.go
sed -i -E 's/(defaultSandboxOOMAdj)( *int)? *= *-[0-9]+/\\1\\2 = 0/' pkg/kubelet/dockershim/docker_sandbox.go
if grep -E 'OOM.*Adj( *int)? *= *-' pkg/kubelet/qos/policy.go pkg/kubelet/dockershim/docker_sandbox.go; then exit 1; fi
export KUBE_GIT_VERSION={RELEASE} KUBE_GIT_COMMIT=debian KUBE_GIT_TREE_STATE=clean KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20
export HOME=/build/home GOFLAGS=-mod=vendor
make WHAT='{" ".join(f"cmd/{program}" for program in PROGRAMS)}'
cd _output/local/bin/linux/amd64
cp {" ".join(PROGRAMS)} /build/programs/
"""


class Unreachable(Exception):
    """The programs are neither in the cache nor can they be built here."""


def fetch_source(folder: Path) -> None:
    """Fetch Debian's source package with apt, which checks its signature. The machine's own lists of packages stay as they are."""
    sites = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm", check=False).split()
    if not sites:
        raise Unreachable("apt knows no site of Debian 12, whose source package of Kubernetes is built")
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb-src [signed-by={keys}] {sites[0]} bookworm main\n")
    places = {"Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": "-", "Dir::State::Lists": folder / "lists", "APT::Sandbox::User": "root"}
    options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
    (folder / "lists").mkdir()
    for words in (["update"], ["source", "--download-only", f"kubernetes={VERSION}"]):
        done = subprocess.run(["apt-get", "--quiet", *options, *words], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unreachable(f"apt-get {words[0]}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def build(folder: Path) -> None:
    """Build in a container without a network, and say from time to time how far it is."""
    for name in ("home", "programs"):
        (folder / name).mkdir()
    began = time.monotonic()
    words = ["docker", "run", "--rm", "--network", "none", "--volume", f"{folder}:/build", BUILDER_IMAGE, "sh", "-euc", BUILD]
    with (folder / "log").open("w") as log, subprocess.Popen(words, stdout=log, stderr=log) as build:
        while build.poll() is None:
            try:
                build.wait(PROGRESS_S)
            except subprocess.TimeoutExpired:
                # One object of the compiler's cache for each package.
                packages = len(list(folder.glob("source/_output/local/go/cache/*/*-d")))
                say(f"building Kubernetes: {packages} objects compiled in {time.monotonic() - began:.0f} s")
    if build.returncode != 0:
        lines = (folder / "log").read_text().splitlines()[-20:]
        raise AssertionError(f"Kubernetes' build failed with exit code {build.returncode}\n" + "\n".join(lines))
    say(f"Kubernetes {RELEASE} is built, in {time.monotonic() - began:.0f} s")


def programs() -> Path:
    """Return the folder of the programs, built if the cache does not have them."""
    final = cache_folder() / f"kubernetes-{VERSION.replace('+', '-')}"
    final.parent.mkdir(parents=True, exist_ok=True)
    with (final.parent / ".kubernetes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another clone may build them at the same time
        if final.exists():
            return final
        say(f"building Kubernetes {RELEASE} from Debian's source, into {final} (once, about 15 minutes of two cores)")
        if not has_image(BUILDER_IMAGE) and (reason := import_debian(BUILDER_IMAGE, BUILDER_PACKAGES)):
            raise Unreachable(reason)
        with tempfile.TemporaryDirectory(dir=final.parent) as scratch:
            folder = Path(scratch)
            fetch_source(folder)
            build(folder)
            shutil.move(folder / "programs", final)
        return final
