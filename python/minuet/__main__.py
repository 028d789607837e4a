"""Commands for a game of one's own, and all commands of `minuet`. The wheel's command `minuet` does the same.

    python -m minuet new my_game.py      writes a small, complete game, ready to be changed
    python -m minuet check my_game.py    plays it at random and checks every promise
    python -m minuet up my_game.py       trains it; the same command continues the run
    python -m minuet describe my_game.py > game.json    what roles need that do not know the rules, for a run in containers

A game is FILE.py, or FILE.py:CLASS if the file has several. Other commands take it as `up` does, or the folder of its run:

    python -m minuet play my_game.py
    python -m minuet games list --run runs/my-game

The commands of `minuet` follow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from . import Error, command, programs
from .check import GAMES, check
from .own import Adapter, RulesError, observe
from .source import Source, SourceError

EXAMPLE = Path(__file__).parent / "new_game.py"


def main() -> int:
    """Run the command of the command line and return its exit status."""
    words = sys.argv[1:]
    try:
        if words[:1] in (["new"], ["check"], ["describe"]):
            return own(words)
        if not words or words[0] in ("-h", "--help", "help"):
            print(__doc__, flush=True)
        return command.run(words)
    except RulesError as error:
        print(f"minuet: {error}", file=sys.stderr)
        return 1
    except (SourceError, FileExistsError, Error, programs.MissingError) as error:
        print(f"minuet: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        traceback.print_exception(error)
        return 1


def own(words: list[str]) -> int:
    """Run a command that is not one of `minuet`."""
    parser = argparse.ArgumentParser(prog="python -m minuet")
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", help="write a small, complete game", epilog="Example:\n  python -m minuet new my_game.py")
    new.add_argument("file", type=Path)
    checking = commands.add_parser("check", help="check a game", epilog="Example:\n  python -m minuet check my_game.py:MyGame")
    checking.add_argument("game", metavar="FILE.py[:CLASS]")
    checking.add_argument("--games", type=int, default=GAMES, help=f"random games [default: {GAMES}]")
    describing = commands.add_parser("describe", help="print the description of a game", epilog="Example:\n  python -m minuet describe my_game.py > game.json")
    describing.add_argument("game", metavar="FILE.py[:CLASS]")
    arguments = parser.parse_args(words)
    if arguments.command == "new":
        with arguments.file.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE.read_text(encoding="utf-8"))
        print(f"wrote {arguments.file}: python -m minuet check {arguments.file}")
        return 0
    source = Source.load(arguments.game)
    if arguments.command == "describe":
        adapter = Adapter(source.rules, source)
        print(json.dumps(adapter.describe(observe(adapter, 1))))
    else:
        print(check(source.rules, games=max(1, arguments.games)))
    return 0


def start() -> NoReturn:
    """The command `minuet`."""
    end(main())


def start_role() -> NoReturn:
    """The command of a role, e.g. `minuet-learner`."""
    try:
        end(programs.run(Path(sys.argv[0]).name, sys.argv[1:]))
    except programs.MissingError as error:
        print(f"minuet: {error}", file=sys.stderr)
        end(1)


def end(status: int) -> NoReturn:
    """End the process. Threads of the native code may still run; the interpreter would wait for them, or they for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    start()
