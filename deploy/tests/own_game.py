"""A game in Python in the compose stack, by the steps of README.md: an image with its rules, a description for the other roles."""

from __future__ import annotations

import json
import re
import shutil
import unittest
from pathlib import Path

from .images import DEPLOY, ROLES, ROOT, Images, run, say
from .stack import Stack


def of_page(language: str) -> str:
    """Return the block of a language on the operator's page in the section about a game of one's own."""
    section = (DEPLOY / "README.md").read_text().partition("## A game of your own\n")[2].partition("\n## ")[0]
    return re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)[1]


class OwnGame(Stack):
    """A stack of the shipped files for the game that `python -m minuet new` writes."""

    SERVICES = (*ROLES, "rating")

    def __init__(self, folder: Path, images: Images):
        folder.mkdir()
        super().__init__(folder, images)
        self.image = f"minuet-own-game:{images.tag}"
        self.build(folder / "image")
        described = run("docker", "run", "--rm", "--network", "none", self.image, "describe", "my_game.py")
        (folder / "game.json").write_text(described)
        self.name = json.loads(described)["name"]
        settings = (folder / "run.toml").read_text()
        (folder / "run.toml").write_text(re.sub(r"\[game\]\n.*?\n(?=\[(?!game))", lambda _: f"{of_page('toml')}\n", settings, flags=re.DOTALL))
        services = (*self.SERVICES, "studio", "command")
        volumes = [self.volume, f"{folder / 'game.json'}:/etc/minuet/game.json:ro"]
        (folder / "game.yml").write_text(json.dumps({"version": "3.9", "services": {role: {"volumes": volumes} for role in services}}))
        self.files += ["-f", str(DEPLOY / "docker-compose.own-game.yml"), "-f", str(folder / "game.yml")]

    def build(self, folder: Path) -> None:
        """Build the image of the page's Dockerfile."""
        folder.mkdir()
        shutil.copy(ROOT / "python" / "minuet" / "new_game.py", folder / "my_game.py")
        (folder / "Dockerfile").write_text(of_page("dockerfile").replace("minuet-python:local", self.images.python))
        run("docker", "build", "--quiet", "--tag", self.image, str(folder), env=self.environment)

    def down(self) -> None:
        super().down()
        run("docker", "rmi", "--force", self.image, check=False)

    def exercise(self, case: unittest.TestCase) -> None:
        """Train: games are stored and checked, a checkpoint is published and played with."""
        say("starting the stack with a game in Python")
        self.up()
        self.wait("every container is healthy", lambda: all(self.healthy(role, 1) for role in self.SERVICES))
        self.wait("a trained checkpoint is served", lambda: self.metric(self.containers("inference-server"), "minuet_inference_model_step") >= 1)
        self.wait("games are played with the trained checkpoint", lambda: any(int(version[:12]) for game in self.games() for version in game["model_versions"]))
        case.assertEqual({game["game"] for game in self.games()}, {self.name})
        case.assertEqual(self.metric(self.containers("actor"), "minuet_actor_games_refused_total"), 0)
        say(f"{len(self.games())} games of {self.name} are stored")
