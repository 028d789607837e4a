"""The shipped manifests for a Kubernetes 1.20: kustomize renders them, and a short list of changes takes the place of newer fields."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..images import DEPLOY, ROOT, debian_program, run, say

# Later versions of resources, and the versions in which 1.20 has them with the same fields.
VERSIONS = {
    ("policy/v1", "PodDisruptionBudget"): "policy/v1beta1",
    ("batch/v1", "CronJob"): "batch/v1beta1",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "autoscaling/v2beta2",
}
# Resources of operators, which this cluster does not have.
OPERATORS = ("keda.sh/", "monitoring.coreos.com/")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
# Seconds for a program that asks the port for health, in a container that has a part of a core on a busy machine.
PROBE_S = 30
PARSE = "import json, sys, yaml; json.dump([document for document in yaml.safe_load_all(sys.stdin) if document], sys.stdout)"


def kustomized(folder: Path) -> list[dict]:
    """Render a folder. Kubectl writes YAML, which the packages of scripts/python/objects.txt can read."""
    rendered = run(str(debian_program("kubectl")), "kustomize", str(folder))
    return json.loads(run(str(python_with("objects")), "-c", PARSE, input=rendered))


def python_with(name: str) -> Path:
    """Return an interpreter that has the packages of scripts/python/NAME.txt."""
    return Path(run("python3", str(ROOT / "scripts" / "python_env.py"), name).strip())


def relative(folder: Path, below: str) -> str:
    """Return the path of a folder below deploy/kubernetes as a kustomization in `folder` names it."""
    return os.path.relpath(DEPLOY / "kubernetes" / below, folder)


class Changes:
    """The changes that 1.20 needs, counted."""

    def __init__(self):
        self.made: Counter[str] = Counter()

    def apply(self, resources: list[dict]) -> list[dict]:
        """Return the resources that 1.20 knows, changed so that it takes them."""
        kept = []
        for resource in resources:
            if resource["apiVersion"].startswith(OPERATORS):
                self.made[f"{resource['kind']}: left out, no operator"] += 1
                continue
            self.version(resource)
            if resource["kind"] == "StatefulSet" and resource["spec"].pop("persistentVolumeClaimRetentionPolicy", None):
                self.made["StatefulSet: without persistentVolumeClaimRetentionPolicy (1.27)"] += 1
            for claim in [resource, *resource.get("spec", {}).get("volumeClaimTemplates", [])]:
                self.access(claim)
            for container in containers(resource):
                self.container(resource["metadata"]["name"], container)
            kept.append(resource)
        return kept

    def version(self, resource: dict) -> None:
        newer = resource["apiVersion"]
        if older := VERSIONS.get((newer, resource["kind"])):
            resource["apiVersion"] = older
            self.made[f"{resource['kind']}: {newer} → {older}"] += 1

    def access(self, claim: dict) -> None:
        spec = claim.get("spec", {})
        if spec.get("accessModes") == ["ReadWriteOncePod"]:
            spec["accessModes"] = ["ReadWriteOnce"]
            self.made["claims: ReadWriteOncePod (1.27) → ReadWriteOnce"] += 1

    def container(self, name: str, container: dict) -> None:
        for kind in PROBES:
            probe = container.get(kind, {})
            if asked := probe.pop("grpc", None):
                probe["exec"] = {"command": [*program(name), "--probe", f"127.0.0.1:{asked['port']}"]}
                probe["timeoutSeconds"] = PROBE_S
                self.made["probes: grpc (1.24) → the program's own --probe"] += 1
        hook = container.get("lifecycle", {}).get("preStop", {})
        if pause := hook.pop("sleep", None):
            hook["exec"] = {"command": ["sleep", str(pause["seconds"])]}
            self.made["preStop: sleep (1.30) → the program sleep"] += 1
        for variable in container.get("env", []):
            field = variable.get("valueFrom", {}).get("fieldRef", {})
            if "batch.kubernetes.io/job-name" in field.get("fieldPath", ""):
                field["fieldPath"] = "metadata.labels['job-name']"
                self.made["jobs: label batch.kubernetes.io/job-name (1.27) → job-name"] += 1

    def say(self) -> None:
        for change, count in sorted(self.made.items()):
            say(f"for {count} of the manifests: {change}")


def program(name: str) -> list[str]:
    """Return the program of a role as its image has it."""
    return ["/opt/minuet/bin/minuet", "rating"] if name == "rating" else [f"/opt/minuet/bin/minuet-{name}"]


def template(resource: dict) -> dict | None:
    """Return the template of the pods that a resource makes."""
    spec = resource.get("spec", {})
    return spec.get("jobTemplate", {}).get("spec", spec).get("template")


def containers(resource: dict) -> list[dict]:
    made = template(resource)
    return made["spec"]["containers"] if made else []


def named(resources: list[dict], kind: str, name: str) -> dict:
    return next(resource for resource in resources if (resource["kind"], resource["metadata"]["name"]) == (kind, name))


def as_list(resources: list[dict]) -> str:
    """Return resources as one JSON text for `kubectl apply -f -`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": resources})
