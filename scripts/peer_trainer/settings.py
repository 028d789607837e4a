"""The games, and the hyper-parameters of the training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Root of the repository.
ROOT = Path(__file__).resolve().parent.parent.parent

#: Nested tuples, lists and dictionaries of arrays.
Tree = Any


@dataclass(frozen=True)
class Game:
    """A game of Pgx, with the shape of its observation and the number of its actions. The first actions may be the squares."""

    #: Pgx's name of the game.
    name: str
    rows: int
    columns: int
    planes: int
    actions: int
    #: True if training turns and mirrors the board at random; then the first actions must be the squares.
    symmetric: bool = False


CONNECT_FOUR = Game("connect_four", rows=6, columns=7, planes=2, actions=7)
#: Eight positions with own and other stones, and the colour of the player to move. The last action is the pass.
GO = Game("go_9x9", rows=9, columns=9, planes=17, actions=82, symmetric=True)


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters. Numbers of games and samples are those of all devices together, and multiples of `devices`."""

    #: Residual blocks of the network.
    blocks: int = 4
    #: Channels of a convolution in the residual tower.
    filters: int = 32
    #: Simulations of the search for each move.
    simulations: int = 32
    #: Games that are played at the same time.
    games: int = 256
    #: Moves of each game in an iteration.
    steps: int = 8
    #: Number of the last iterations whose positions are trained on.
    window: int = 16
    #: Samples trained on for each position played.
    samples: float = 4.0
    #: Samples of a training step.
    batch: int = 256
    #: Learning rate of Adam.
    rate: float = 2e-3
    #: Each game begins with 0 to this many random moves.
    random_plies: int = 0
    #: The first games begin with 0 to this many random moves, so that they end at different times and the first results are known soon.
    first_plies: int = 0
    #: Devices that share the work. Each computes with one thread.
    devices: int = 2

    @property
    def updates(self) -> int:
        """Return the number of training steps in an iteration."""
        return max(1, round(self.samples * self.games * self.steps / self.batch))

    @property
    def length(self) -> int:
        """Return the number of moves of each game that the window holds."""
        return self.window * self.steps


#: Settings of each game.
USUAL = {
    CONNECT_FOUR: Settings(),
    # With 64 channels a minute has a third of the positions. Fewer games at a time finish sooner.
    GO: Settings(games=32, steps=16, window=32, batch=128, first_plies=140),
}
