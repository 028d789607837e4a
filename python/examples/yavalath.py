"""Yavalath, on hexagons: four in a row win, three in a row lose. Try: python -m minuet check yavalath.py"""

import numpy as np

SIDE = 4
SIZE = 2 * SIDE - 1
# Cells have two coordinates from the middle, whose sum, the third one, is within the side too. Other squares stay empty.
CELLS = {square: (square // SIZE + 1 - SIDE, square % SIZE + 1 - SIDE) for square in range(SIZE * SIZE)}
CELLS = {square: cell for square, cell in CELLS.items() if abs(sum(cell)) < SIDE}
NUMBERS = {cell: square for square, cell in CELLS.items()}
DIRECTIONS = [(0, 1), (1, 0), (1, -1)]
SQUARES = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)


def turned(turns: int, mirror: bool) -> np.ndarray:
    images = SQUARES.ravel().copy()
    for square, (rank, file) in CELLS.items():
        image = (file, rank) if mirror else (rank, file)
        for _ in range(turns):  # by 60° each
            image = (image[0] + image[1], -image[0])
        images[square] = NUMBERS[image]
    return images


class Yavalath:
    actions = SIZE * SIZE  # action `n` puts a stone on square `n`

    def __init__(self) -> None:
        self.stones: list[set[tuple[int, int]]] = [set(), set()]  # those of each player
        self.player = 0
        self.won: int | None = None

    def to_move(self) -> int:
        return self.player

    def legal_actions(self) -> list[int]:
        return [square for square, cell in CELLS.items() if cell not in self.stones[0] | self.stones[1]]

    def play(self, action: int) -> None:
        cell = CELLS[action]
        self.stones[self.player].add(cell)
        row = max(1 + self.run(cell, up, right) + self.run(cell, -up, -right) for up, right in DIRECTIONS)
        self.player = 1 - self.player
        if row >= 3:
            self.won = self.player if row == 3 else 1 - self.player
        elif not self.legal_actions():
            self.won = -1

    def winner(self) -> int | None:
        return self.won

    def run(self, cell: tuple[int, int], up: int, right: int) -> int:
        after = (cell[0] + up, cell[1] + right)  # counts own stones in one direction
        return 1 + self.run(after, up, right) if after in self.stones[self.player] else 0

    def planes(self) -> np.ndarray:
        own, other = ([NUMBERS[cell] for cell in self.stones[player]] for player in (self.player, 1 - self.player))
        return np.stack([np.isin(SQUARES, own), np.isin(SQUARES, other)])

    symmetries = [(turned(turns, mirror),) * 2 for mirror in (False, True) for turns in range(6)][1:]
