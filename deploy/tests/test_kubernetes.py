"""The Kubernetes manifests on a real cluster of this machine: control plane, three nodes, the overlay `local` with TLS, backup, rating, studio.

The test needs root, a Docker engine of cgroup version 1, and apt for Debian's source package of Kubernetes, which is built once into
the user's cache (a quarter of an hour). If one of them is missing, the test prints it and is skipped. Run it alone with

    python3 -m unittest -v deploy/tests/test_kubernetes.py
"""

from __future__ import annotations

import os
import tempfile
import time
import unittest
from pathlib import Path

from .images import RELEASE, ROLES, Images, leave_out, make_debian_images, missing, run, say
from .kubernetes import admission, failures, scaling, updates
from .kubernetes.cluster import Cluster
from .kubernetes.programs import Unreachable, programs
from .kubernetes.render import python_with
from .kubernetes.run import OUTSIDE, Run, make_tools_image

NODES = ("node1", "node2", "node3")


def unfit() -> str | None:
    """Return what this machine lacks, as a sentence."""
    if os.geteuid() != 0:
        return "kubelets need root"
    if run("docker", "info", "--format", "{{.CgroupVersion}}", check=False).strip() != "1":
        return "this version of Kubernetes needs an engine with cgroup version 1"
    return missing() or make_debian_images()


class KubernetesTest(unittest.TestCase):
    def setUp(self) -> None:
        try:
            reason = unfit()
            self.programs = None if reason else programs()
        except Unreachable as error:
            reason = str(error)
        if reason:
            leave_out(self, f"the Kubernetes cluster: {reason}")
            self.skipTest(reason)
        for role in ROLES:
            if not (RELEASE / f"minuet-{role}").exists():
                self.fail(f"minuet-{role} is not built: run make build first")

    def test_a_run_in_a_cluster_trains_scales_is_updated_and_survives(self) -> None:
        with tempfile.TemporaryDirectory() as scratch, Images() as images:
            folder = Path(scratch)
            folder.chmod(0o755)
            tools = make_tools_image(images, folder / "tools", python_with("objects"), python_with("kserve"))
            try:
                with Cluster(folder / "cluster", self.programs, *NODES) as cluster:
                    say("copying the images to the nodes")
                    cluster.load(NODES, *(f"minuet-{role}:{images.tag}" for role in (*ROLES, "command")))
                    cluster.load([OUTSIDE], tools)
                    self.exercise(cluster, folder)
            finally:
                run("docker", "rmi", "--force", tools, check=False)

    def exercise(self, cluster: Cluster, folder: Path) -> None:
        cluster.kubectl("create", "namespace", "minuet")
        admission.try_every_overlay(cluster)
        admission.schedule_on_gpus(self, cluster)
        trial = Run(cluster, folder)
        began = time.monotonic()
        trial.begin()
        cluster.wait_for("the client runs", lambda: trial.ready_client() and trial.ready("object-store", 1))
        cluster.wait_for("the learner says that the bucket is missing", lambda: "bucket does not exist" in trial.log("learner"))
        trial.make_bucket()
        cluster.wait_for("every pod is ready", trial.all_ready)
        say(f"every pod was ready after {time.monotonic() - began:.0f} s")
        cluster.wait_for("games are played with a trained checkpoint", lambda: trial.newest_step() > 0)
        say(f"games were played with a trained checkpoint after {time.monotonic() - began:.0f} s")
        admission.check_rights(self, trial)
        scaling.ask(self, trial)
        scaling.scale_actors(self, trial)
        scaling.scale_inference(self, trial)
        updates.roll(self, trial)
        failures.disrupt(self, trial)
        failures.hang(self, trial)
        failures.kill_pods(trial)
        updates.change_settings(self, trial)
        updates.change_token(self, trial)
        admission.displace_self_play(self, trial)
        updates.back_up(self, trial)
        failures.drain_a_node(self, trial)
        failures.kill_a_node(trial)


if __name__ == "__main__":
    unittest.main(verbosity=2)
