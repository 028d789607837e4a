"""The Go Text Protocol, version 2, without the game: lines are read, given to a player and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from typing import Protocol

#: Letters of the files; Go skips the I.
LETTERS = "ABCDEFGHJKLMNOPQRST"
PASS = "pass"
#: Answer to a command with wrong arguments.
SYNTAX = "syntax error"


class Refused(Exception):
    """A command cannot be carried out. Its text is the answer."""


class Player(Protocol):
    """What plays. Points are numbered from A1 along the ranks, and the number after the last point is a pass. Black is 0, White 1."""

    #: Lines of the board in each direction.
    size: int

    def clear(self) -> None:
        """Begin a game."""

    def set_komi(self, komi: float) -> None:
        """Set White's compensation. Raise Refused if the player knows another one only."""

    def play(self, colour: int, action: int) -> None:
        """Play a move. Raise Refused if it is illegal."""

    def choose(self, colour: int) -> int:
        """Choose a move and play it."""

    def undo(self) -> None:
        """Take the last move back. Raise Refused if there is none."""

    def score(self) -> float:
        """Return Black's area minus White's, the compensation included."""


class Session:
    """Commands for a player."""

    def __init__(self, player: Player, name: str) -> None:
        self.player, self.name = player, name
        self.commands: dict[str, Callable[..., str]] = {
            "boardsize": self.boardsize,
            "clear_board": self.clear_board,
            "final_score": self.final_score,
            "genmove": self.genmove,
            "known_command": lambda command: str(command in self.commands).lower(),
            "komi": self.komi,
            "list_commands": lambda: "\n".join(self.commands),
            "name": lambda: self.name,
            "play": self.play,
            "protocol_version": lambda: "2",
            "quit": lambda: "",
            "undo": self.undo,
            "version": lambda: "1",
        }

    def answers(self, lines: Iterable[str]) -> Iterator[str]:
        """Return the answer of each line with a command, until `quit`."""
        for line in lines:
            words = line.split("#")[0].split()
            number = words.pop(0) if words and words[0].isdigit() else ""
            if words:
                try:
                    yield f"={number} {self.answer(words[0], words[1:])}\n\n"
                except Refused as reason:
                    yield f"?{number} {reason}\n\n"
                if words[0] == "quit":
                    return

    def answer(self, command: str, arguments: list[str]) -> str:
        """Return the answer of a command. Raise Refused with the reason if there is none."""
        if command not in self.commands:
            raise Refused("unknown command")
        carry_out = self.commands[command]
        if len(arguments) != len(signature(carry_out).parameters):
            raise Refused(SYNTAX)
        return carry_out(*arguments)

    def boardsize(self, size: str) -> str:
        if number_of(size) != self.player.size:
            raise Refused("unacceptable size")
        self.player.clear()
        return ""

    def clear_board(self) -> str:
        self.player.clear()
        return ""

    def komi(self, komi: str) -> str:
        self.player.set_komi(number_of(komi))
        return ""

    def play(self, colour: str, vertex: str) -> str:
        self.player.play(colour_of(colour), action_of(vertex, self.player.size))
        return ""

    def genmove(self, colour: str) -> str:
        return vertex_of(self.player.choose(colour_of(colour)), self.player.size)

    def undo(self) -> str:
        self.player.undo()
        return ""

    def final_score(self) -> str:
        score = self.player.score()
        return f"B+{score:g}" if score > 0 else f"W+{-score:g}" if score < 0 else "0"


def number_of(text: str) -> float:
    """Return a number. Raise Refused if the text is none."""
    try:
        return float(text)
    except ValueError as error:
        raise Refused(SYNTAX) from error


def colour_of(text: str) -> int:
    """Return the number of a colour. Raise Refused if the text is none."""
    names = ("b", "w", "black", "white")
    if text.lower() not in names:
        raise Refused(SYNTAX)
    return names.index(text.lower()) % 2


def action_of(vertex: str, size: int) -> int:
    """Return the action of a point or of a pass. Raise Refused if the text is neither."""
    if vertex.lower() == PASS:
        return size * size
    file, rank = LETTERS.find(vertex[:1].upper()), vertex[1:]
    if not (0 <= file < size and rank.isdecimal() and 1 <= int(rank) <= size):
        raise Refused(SYNTAX)
    return (int(rank) - 1) * size + file


def vertex_of(action: int, size: int) -> str:
    """Return the text of an action."""
    return PASS if action == size * size else f"{LETTERS[action % size]}{action // size + 1}"
