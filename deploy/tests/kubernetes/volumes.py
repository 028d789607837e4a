"""Volumes for claims: a folder that every node has, in place of a storage class of a disk in the network."""

from __future__ import annotations

import os
from pathlib import Path

from .api import Api, Follower

# Account of the roles. No driver changes the owner of a folder of the host, as it does for a disk's file system.
ACCOUNT = 65532


class Volumes:
    """Makes a volume for each claim that has none. Folders stay when claims are deleted."""

    def __init__(self, api: Api, folder: Path):
        self.api = api
        self.folder = folder
        folder.mkdir()
        self.made: set[str] = set()
        self.follower = Follower(api, "/api/v1/persistentvolumeclaims", self.claimed)

    def claimed(self, change: str, claim: dict) -> None:
        place = claim["metadata"]
        name = f"{place['namespace']}-{place['name']}-{place['uid'][:8]}"
        if change == "DELETED" or claim["spec"].get("volumeName") or name in self.made:
            return
        folder = self.folder / name
        # There already if the request was not answered.
        folder.mkdir(exist_ok=True)
        os.chown(folder, ACCOUNT, ACCOUNT)
        volume = {
            "metadata": {"name": name},
            "spec": {
                "capacity": claim["spec"]["resources"]["requests"],
                "accessModes": claim["spec"]["accessModes"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(folder), "type": "Directory"},
                "claimRef": {"namespace": place["namespace"], "name": place["name"], "uid": place["uid"]},
            },
        }
        self.api.ask("POST", "/api/v1/persistentvolumes", volume)
        self.made.add(name)

    def end(self) -> None:
        self.follower.end()
