"""Five in a row on 7×7 squares: an example of a game of one's own. Change it, then: python -m minuet check THIS_FILE"""

import numpy as np

SIZE = 7


class FiveInARow:
    # Action `7·rank + file` puts a stone on an empty square.
    actions = SIZE * SIZE

    def __init__(self) -> None:
        self.stones = np.zeros((2, SIZE, SIZE), int)  # those of each player
        self.player = 0
        self.won: int | None = None  # the player who won, -1 for a draw, None while the game runs

    def to_move(self) -> int:
        return self.player

    def legal_actions(self) -> np.ndarray:
        return np.flatnonzero(self.stones.sum(0) == 0)

    def play(self, action: int) -> None:
        rank, file = divmod(action, SIZE)
        self.stones[self.player, rank, file] = 1
        if self.has_five(rank, file):
            self.won = self.player
        elif self.stones.sum() == SIZE * SIZE:
            self.won = -1
        self.player = 1 - self.player

    def winner(self) -> int | None:
        return self.won

    def has_five(self, rank: int, file: int) -> bool:
        return any(1 + self.run(rank, file, up, right) + self.run(rank, file, -up, -right) >= 5 for up, right in [(0, 1), (1, 0), (1, 1), (1, -1)])

    def run(self, rank: int, file: int, up: int, right: int) -> int:
        """Number of own stones next to a square in one direction."""
        count = 0
        while 0 <= (rank := rank + up) < SIZE and 0 <= (file := file + right) < SIZE and self.stones[self.player, rank, file]:
            count += 1
        return count

    # What a network sees: the stones of the player to move, then those of the other player.
    def planes(self) -> np.ndarray:
        return self.stones if self.player == 0 else self.stones[::-1]

    # A position and its mirror image are worth the same: images of the squares, and of the actions.
    symmetries = [(np.arange(SIZE * SIZE).reshape(SIZE, SIZE)[:, ::-1].ravel(),) * 2]
