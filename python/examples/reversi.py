"""Reversi on 6×6 squares, where a player without a move passes. Try: python -m minuet check reversi.py"""

import numpy as np

SIZE = 6
PASS = SIZE * SIZE
SQUARES = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
DIRECTIONS = [(up, right) for up in (-1, 0, 1) for right in (-1, 0, 1) if (up, right) != (0, 0)]


class Reversi:
    # Action `n` puts a disc on square `n`; the last one is the pass.
    actions = SIZE * SIZE + 1

    def __init__(self) -> None:
        self.discs = np.zeros((2, SIZE, SIZE), int)  # those of each player
        low, high = SIZE // 2 - 1, SIZE // 2
        self.discs[0, low, high] = self.discs[0, high, low] = 1
        self.discs[1, low, low] = self.discs[1, high, high] = 1
        self.player = 0

    def to_move(self) -> int:
        return self.player

    def legal_actions(self) -> list[int]:
        return self.moves(self.player) or [PASS]

    def play(self, action: int) -> None:
        if action != PASS:
            for at in [divmod(action, SIZE), *self.turned(action, self.player)]:
                self.discs[self.player][at], self.discs[1 - self.player][at] = 1, 0
        self.player = 1 - self.player

    def winner(self) -> int | None:
        if self.moves(0) or self.moves(1):
            return None
        first, second = self.discs.sum((1, 2))
        return -1 if first == second else int(second > first)

    def planes(self) -> np.ndarray:
        return self.discs if self.player == 0 else self.discs[::-1]

    def moves(self, player: int) -> list[int]:
        return [int(square) for square in SQUARES[self.discs.sum(0) == 0] if self.turned(int(square), player)]

    # The discs of the other player that a disc on a square turns.
    def turned(self, square: int, player: int) -> list[tuple[int, int]]:
        found = []
        for up, right in DIRECTIONS:
            line, (rank, file) = [], divmod(square, SIZE)
            while 0 <= (rank := rank + up) < SIZE and 0 <= (file := file + right) < SIZE and self.discs[1 - player, rank, file]:
                line.append((rank, file))
            if 0 <= rank < SIZE and 0 <= file < SIZE and self.discs[player, rank, file]:
                found += line
        return found

    # Half a turn and both diagonals leave the start and the pass alone. (Quarters of a turn change the colours of the start.)
    images = [SQUARES[::-1, ::-1], SQUARES.T, SQUARES[::-1, ::-1].T]
    symmetries = [(image.ravel(), [*image.ravel(), PASS]) for image in images]
