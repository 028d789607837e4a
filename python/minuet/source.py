"""Where the rules of a game of one's own are: a file, or a game of OpenSpiel."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path


class SourceError(Exception):
    """There is no class of a game where one was named."""


@dataclass(frozen=True)
class Source:
    """A class of a game, and where it is from."""

    rules: type
    #: Place from which the class is loaded again; empty if there is none.
    place: str = ""
    #: Text of the rules.
    text: bytes = b""

    @staticmethod
    def is_named_by(text: str) -> bool:
        """True if a text names a game from outside: FILE.py, FILE.py:CLASS, openspiel:NAME(PARAMETERS)."""
        return text.startswith("openspiel:") or re.search(r"\.py(:\w+)?$", text) is not None

    @staticmethod
    def load(name: str) -> Source:
        """Load the class of a game: FILE.py, FILE.py:CLASS if the file has several, or a game of OpenSpiel. Raises SourceError if there is none."""
        if name.startswith("openspiel:"):
            try:
                from . import from_openspiel
            except ImportError as error:
                raise SourceError(f"{name}: {error}; install the package open_spiel") from error
            return from_openspiel.load(name)
        path, _, wanted = name.partition(":")
        file = Path(path).resolve()
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None or not file.is_file():
            raise SourceError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        # Its own modules are next to it.
        sys.path.insert(0, str(file.parent))
        spec.loader.exec_module(module)
        own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
        found = [value for value in own if value.__name__ == wanted or not wanted and callable(getattr(value, "legal_actions", None))]
        if len(found) != 1:
            names = ", ".join(value.__name__ for value in found or own) or "none"
            raise SourceError(f"{path} has {len(found)} classes of games; name one as {path}:CLASS (there are {names})")
        return Source(found[0], f"{file}:{found[0].__name__}", file.read_bytes())


def text_of(rules: type) -> bytes:
    """Return the source text of a class; empty if there is none."""
    try:
        return inspect.getsource(rules).encode()
    except (OSError, TypeError):
        return b""
