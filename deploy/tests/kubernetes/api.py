"""A client of the Kubernetes API: one JSON request, a followed list of resources, a followed log."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# Longest time in seconds for one answer.
ANSWER_S = 20
# What an answer that never comes, or breaks off, raises.
BROKEN = (OSError, AssertionError, ValueError, http.client.HTTPException)


class Api:
    """Requests with the rights of a token."""

    def __init__(self, address: str, authority: Path, token: str):
        self.address = address
        self.token = token
        self.context = ssl.create_default_context(cafile=str(authority))

    def open(self, method: str, path: str, body: object = None, kind: str = "application/json", timeout: float | None = ANSWER_S):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = urllib.request.Request(f"{self.address}{path}", data, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=timeout, context=self.context)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:2000]}") from error

    def ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict:
        with self.open(method, path, body, kind) as answer:
            return json.load(answer)

    def get(self, path: str) -> dict:
        return self.ask("GET", path)

    def patch(self, path: str, change: object) -> dict:
        """Change a resource: a list is a JSON patch, an object is merged."""
        kind = "json-patch" if isinstance(change, list) else "merge-patch"
        return self.ask("PATCH", path, change, f"application/{kind}+json")

    def lines(self, path: str) -> Iterator[str]:
        """Return the lines of an answer without an end, as they come, until the server ends it."""
        with self.open("GET", path, timeout=None) as answer:
            for line in answer:
                yield line.decode(errors="replace")


class Follower(threading.Thread):
    """Calls a function for each event of a list (`ADDED`, `MODIFIED`, `DELETED`), those of the present resources first."""

    def __init__(self, api: Api, path: str, changed):
        super().__init__(daemon=True)
        self.api = api
        self.path = path
        self.changed = changed
        self.ends = False
        self.start()

    def run(self) -> None:
        while not self.ends:
            try:
                for line in self.api.lines(f"{self.path}?watch=true&timeoutSeconds=60"):
                    if self.ends:
                        return
                    event = json.loads(line)
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        self.changed(event["type"], event["object"])
            except BROKEN:
                threading.Event().wait(0.2)  # the server is away; the next watch begins with all resources

    def end(self) -> None:
        self.ends = True
