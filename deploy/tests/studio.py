"""The studio of the compose stack, asked as a browser without scripts does."""

from __future__ import annotations

import http.cookiejar
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

from .images import run, say

if TYPE_CHECKING:
    from .stack import Stack

# The folder of the studio's record in its container.
RECORD = "/var/lib/minuet/studio"


class Studio:
    """The studio of a stack, after signing in with the token that it has printed."""

    def __init__(self, stack: Stack):
        self.stack = stack
        (self.container,) = stack.containers("studio")
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.refusal = self.ask("/", None)
        self.ask("/login", {"token": self.token(), "to": "/"})

    def token(self) -> str:
        log = run("docker", "logs", self.container)
        found = re.search(r"^sign in with the token (\w+)$", log, re.MULTILINE)
        if found is None:
            raise AssertionError(f"the studio printed no token: {log}")
        return found[1]

    def ask(self, path: str, form: dict[str, str] | None) -> str:
        body = urllib.parse.urlencode(form).encode() if form else None
        try:
            with self.opener.open(f"http://{self.stack.address(self.container)}:7070{path}", body, timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def page(self, path: str) -> str:
        return self.ask(path, None)

    def losses(self) -> list[dict]:
        """Return the lines of training that the studio has recorded."""
        lines = subprocess.run(["docker", "exec", self.container, "cat", f"{RECORD}/learner/metrics.jsonl"], capture_output=True, text=True)
        return [json.loads(line) for line in lines.stdout.splitlines()]

    def look_through(self) -> None:
        """Wait until the pages show every process, losses, games, and rated matches."""
        if "Sign in" not in self.refusal or "Training" in self.refusal:
            raise AssertionError(f"the studio shows the run to everybody: {self.refusal}")
        names = [f"{role}-{self.stack.address(container)}" for role in ("inference-server", "actor") for container in self.stack.containers(role)]
        shown = ["Training", "replay-store", "learner", "rating", *names]
        self.stack.wait(f"the studio shows {len(names) + 3} processes", lambda: all(name in self.page("/") for name in shown))
        self.stack.wait("the studio records losses", lambda: len(self.losses()) >= 2)
        self.stack.wait("the studio lists games", lambda: 'href="/games/' in self.page("/games"))
        self.stack.wait("the studio lists rated matches", lambda: "<tbody" in self.page("/matches"))

    def wait_for_alarm(self, role: str) -> None:
        """Wait until the overview says that a role is down."""
        said = re.compile(rf"Role down</b>[^.]*: {role}\S* does not answer")
        self.stack.wait(f"the studio says that {role} is down", lambda: said.search(self.page("/")) is not None)

    def forget(self) -> Studio:
        """Start the studio without its record. The losses of the time before must come from Prometheus."""
        say("the studio begins without its record")
        before = self.losses()
        self.stack.compose("rm", "--stop", "--force", "studio")
        run("docker", "volume", "rm", f"{self.stack.project}_studio")
        self.stack.up()
        answered: list[Studio] = []
        # A container runs before its program listens.
        self.stack.wait("the studio answers", lambda: answered.append(Studio(self.stack)) is None)
        anew = answered[0]
        self.stack.wait("the studio has the losses of the time before", lambda: bool(anew.losses()))
        first = anew.losses()[0]
        if first["step"] > before[-1]["step"] or first["time_ms"] > before[-1]["time_ms"]:
            raise AssertionError(f"the first line is {first}; the record that was removed ended with {before[-1]}")
        return anew
