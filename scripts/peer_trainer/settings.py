"""Constants of the game, and the hyper-parameters of the training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Root of the repository.
ROOT = Path(__file__).resolve().parent.parent.parent
#: Minuet's name of the game.
GAME = "connect-four"
#: Size of the board. An action is the number of a column.
ROWS, COLUMNS = 6, 7

#: Nested tuples, lists and dictionaries of arrays.
Tree = Any


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
