"""Prometheus in the compose stack: Debian's program in place of the public image, with the shipped service, file and rules.

The rules are the shipped ones with shorter times, so that alerts fire within the time of a test.
"""

from __future__ import annotations

import json
import math
import re
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from .images import DEPLOY, ROLES

if TYPE_CHECKING:
    from .stack import Stack

# Alerts that fire while a role is down, with the job that they name.
ALERTS = {
    "replay-store": {("MinuetRoleDown", "replay-store"), ("MinuetNoNewGame", "")},
    "inference-server": {("MinuetRoleDown", "inference-server")},
    "learner": {("MinuetRoleDown", "learner"), ("MinuetNoCheckpoint", "")},
}

# Beginning of the series about problems, which only the generator game has. The stack plays another game.
PROBLEMS = "minuet_actor_problem_"

# Shorter forms of minutes and hours. Times of a few seconds are not in the alerts.
SHORTER = {"m": "s", "h": "m"}


def faster_rules(rules: str) -> str:
    """Return rules whose alerts have seconds in place of minutes, and minutes in place of hours. Recordings keep their times."""
    recordings, alerts = rules.split("  - name: minuet-alerts\n")
    alerts = re.sub(r"\b(\d+)([mh])\b", lambda time: time[1] + SHORTER[time[2]], alerts)
    return f"{recordings}  - name: minuet-alerts\n{alerts}"


def faster_configuration(configuration: str) -> str:
    """Return a configuration that scrapes and evaluates every two seconds, so that `faster_rules` have several samples."""
    shorter, count = re.subn(r"^  (scrape|evaluation)_interval: \d+s$", r"  \1_interval: 2s", configuration, flags=re.MULTILINE)
    if count != 2:
        raise AssertionError(f"{count} intervals in prometheus.yml, not 2")
    return shorter


def write_configuration(folder: Path) -> None:
    """Write the shipped files with shorter times into a new folder."""
    folder.mkdir()
    for name, faster in {"prometheus.yml": faster_configuration, "alerts.yml": faster_rules}.items():
        (folder / name).write_text(faster((DEPLOY / "prometheus" / name).read_text()))


def panels() -> list[str]:
    """Return every query of the shipped dashboards, but for those about problems."""
    boards = [json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))]
    queries = [target["expr"] for board in boards for panel in board["panels"] for target in panel.get("targets", [])]
    return [query for query in queries if PROBLEMS not in query]


class Prometheus:
    """The Prometheus of a stack, asked through its HTTP interface."""

    def __init__(self, stack: Stack):
        self.stack = stack

    def ask(self, path: str, **parameters: str) -> dict:
        (container,) = self.stack.containers("prometheus")
        url = f"http://{self.stack.address(container)}:9090/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            answered = json.load(answer)
        if answered["status"] != "success":
            raise AssertionError(f"{url}: {answered}")
        return answered["data"]

    def query(self, expression: str) -> list[dict]:
        return self.ask("query", query=expression)["result"]

    def targets(self) -> dict[str, list[str]]:
        """Return the health of each target that was found, by job."""
        found: dict[str, list[str]] = {}
        for target in self.ask("targets", state="active")["activeTargets"]:
            found.setdefault(target["labels"]["job"], []).append(target["health"])
        return found

    def firing(self) -> set[tuple[str, str]]:
        """Return name and job (empty for alerts of no job) of each alert that fires."""
        return {(series["metric"]["alertname"], series["metric"].get("job", "")) for series in self.query('ALERTS{alertstate="firing"}')}

    def wait_for_targets(self) -> None:
        """Wait until Prometheus has found every container and reads its page."""
        expected = {role: ["up"] * len(self.stack.containers(role)) for role in (*ROLES, "rating")}
        self.stack.wait(f"Prometheus reads {sum(map(len, expected.values()))} pages", lambda: self.targets() == expected)

    def wait_for_alerts(self, role: str) -> None:
        """Wait until the alerts of a role that is down fire, each after it was pending."""
        self.stack.wait(", ".join(sorted(f"{name} fires" for name, _ in ALERTS[role])), lambda: ALERTS[role] <= self.firing())
        for name, _ in ALERTS[role]:
            if not self.query(f'max_over_time(ALERTS{{alertname="{name}",alertstate="pending"}}[10m])'):
                raise AssertionError(f"{name} was never pending")

    def wait_until_resolved(self, role: str) -> None:
        self.stack.wait(f"the alerts of {role} are over", lambda: not ALERTS[role] & self.firing())

    def wait_for_panels(self) -> None:
        """Wait until every query of every dashboard has had a finite value, each at some time."""
        waiting = panels()

        def all_had_figures() -> bool:
            values = {query: [float(series["value"][1]) for series in self.query(query)] for query in waiting}
            waiting[:] = [query for query, found in values.items() if not any(map(math.isfinite, found))]
            return not waiting

        try:
            self.stack.wait(f"each of {len(waiting)} queries of the dashboards has a figure", all_had_figures)
        except AssertionError as error:
            raise AssertionError(f"queries without a figure: {waiting}") from error
