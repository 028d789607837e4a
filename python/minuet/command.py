"""All commands of `minuet`, for a game of one's own: `python -m minuet up my_game.py`.

The interpreter is given the rules, and runs the command line of Minuet. `up` starts another interpreter for each role that needs the
rules, and the programs of Minuet for the others. Those of the wheel are taken, or of the folder that the environment variable
MINUET_PROGRAMS names, or from PATH. A command for another game is run by the program `minuet` of the wheel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any

from . import programs
from ._minuet import add_own_game, run_command
from .own import Adapter, observe
from .source import Source, SourceError

#: Program whose folder is that of all programs.
PROGRAM = "minuet-learner"
#: Commands that read `--game`.
OF_GAME = ("up", "play", "arena", "perft", "config")
#: Commands that read `--run`.
OF_RUN = ("games", "studio", "doctor", "up")
#: Roles, which read `--config`, or the settings that the environment variable MINUET_CONFIG names.
ROLES = ("rating", "actor")
#: Commands that cannot play a game in Python, and why.
REFUSED = {
    "bench": "minuet-bench, a program of its own, knows the games that come with Minuet alone; `check` measures the rules",
    "lab": "minuet-bench, a program of its own, knows the games that come with Minuet alone; `up` with other settings and `arena` compare two runs",
    "plan": "its figures are those of `bench`, which knows the games that come with Minuet alone",
    "solve": "it solves problems of the generator game",
    "uci": "it is an engine of chess",
    "gtp": "it is an engine of games on the boards of that protocol",
}


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Raises RulesError or SourceError if the game cannot be used."""
    words = [*arguments]
    named = next((word for word in words if Source.is_named_by(word)), None)
    folder = run_in([*words, os.environ.get("MINUET_CONFIG", "")] if words[:1] and words[0] in ROLES else words)
    known = description_in(folder) if folder else None
    command = next((word for word in words if not word.startswith("-")), "")
    if command in REFUSED and (named is not None or known is not None):
        raise SourceError(f"`{command}` cannot play a game in Python: {REFUSED[command]}")
    if named is not None:
        source = Source.load(named)
        folder = folder or Path("runs") / Adapter(source.rules).name
        known = known or description_in(folder)
    elif known is not None:
        source = described(known, folder)
    elif programs.FOLDER.is_dir() and "MINUET_PROGRAMS" not in os.environ:
        return programs.run("minuet", words)
    else:
        return native(words)
    adapter = Adapter(source.rules, source)
    description = adapter.continued(known) if known else adapter.describe(observe(adapter, 1))
    add_own_game(json.dumps(description), adapter)
    return native(complete(words, named, adapter.name, folder))


def described(known: dict[str, Any], folder: Path | None) -> Source:
    """Load the class of a game from the place that its description names. Raises SourceError if it is not there."""
    try:
        return Source.load(known["rules"])
    except SourceError as error:
        raise SourceError(f"the description of the game of {folder}: {error}; name the file of the rules in the command") from error


def complete(words: list[str], named: str | None, name: str, folder: Path | None) -> list[str]:
    """Return the arguments for the native command line, in which a game has a name."""
    command = next((word for word in words if not word.startswith("-")), "")
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    if named is not None and "--game" in options:
        words = [word.replace(named, name) for word in words]
    elif named is not None:
        words = [word for word in words if word != named]
    more: list[str] = []
    is_file = "--check" in options or "--short" in options
    if command in OF_GAME and "--game" not in options and not is_file and (named is not None or command not in ("up", "config")):
        more += ["--game", name]
    if command in ROLES and "--config" not in options and "MINUET_CONFIG" not in os.environ and folder:
        more += ["--config", str(folder / "run.toml")]
    if command == "grow" and "--from" not in options:
        more += ["--from", str(Path("runs") / name)]
    # `doctor` looks at the machine alone before the first run.
    is_new = command == "doctor" and folder is not None and not folder.is_dir()
    if command in OF_RUN and "--run" not in options and "--config" not in options and folder and not is_new:
        more += ["--run", str(folder)]
    if command == "play" and "--opponent" not in options and folder and (folder / "checkpoints").is_dir():
        more += ["--opponent", str(folder)]
    if command == "query" and named is not None:
        words = [words[0], str(folder), *words[1:]]
    return words + more


def native(words: list[str]) -> int:
    """Run a command of the native command line in this interpreter."""
    programs.prepare(["minuet", *words])
    program = shutil.which(PROGRAM)
    if program and "MINUET_PROGRAMS" not in os.environ:
        os.environ["MINUET_PROGRAMS"] = str(Path(program).parent)
    # The native code ends in its own way.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command([sys.executable, "-P", "-m", "minuet"], ["minuet", *words])


def run_in(words: list[str]) -> Path | None:
    """Return the folder of the run of a game from outside that the arguments name."""
    for word in words:
        for text in {word, *re.split("[=,@]", word)} - {""}:
            path = Path(text)
            if not path.exists():
                continue
            for folder in (path, *path.resolve().parents):
                if description_in(folder) is not None:
                    return folder
    return None


def description_in(folder: Path) -> dict[str, Any] | None:
    """Return the description of the game in the folder of a run. None if there is no run, or if its game comes with Minuet."""
    try:
        settings = tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))
        file = settings.get("game", {}).get("description")
        if not file:
            return None
        description: dict[str, Any] = json.loads((folder / file).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return description
