"""Dots and boxes, where a turn has several actions: who closes a box draws again. Try: python -m minuet check dots_and_boxes.py"""

import numpy as np

BOXES = 3
SIZE = 2 * BOXES + 1
# Dots are at squares of even rank and file, boxes at odd ones, lines between them. Action `n` draws line `n`.
LINES = [(rank, file) for rank in range(SIZE) for file in range(SIZE) if (rank + file) % 2 == 1]
SQUARES = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)


def image(board: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Where each square is on a turned board, and which line each line becomes."""
    squares = np.argsort(board.ravel())
    return squares, [LINES.index(divmod(int(squares[SIZE * rank + file]), SIZE)) for rank, file in LINES]


class DotsAndBoxes:
    actions = len(LINES)

    def __init__(self) -> None:
        self.lines = np.zeros((SIZE, SIZE), int)
        self.boxes = np.zeros((2, SIZE, SIZE), int)  # those of each player
        self.player = 0

    def to_move(self) -> int:
        return self.player

    def legal_actions(self) -> list[int]:
        return [action for action, line in enumerate(LINES) if not self.lines[line]]

    def play(self, action: int) -> None:
        rank, file = LINES[action]
        self.lines[rank, file] = 1
        # A line of an even rank has boxes below and above, the others have them left and right.
        up, right = (1, 0) if rank % 2 == 0 else (0, 1)
        closed = [box for box in [(rank - up, file - right), (rank + up, file + right)] if self.is_closed(*box)]
        for box in closed:
            self.boxes[self.player][box] = 1
        if not closed:
            self.player = 1 - self.player

    def winner(self) -> int | None:
        if not self.lines.sum() == len(LINES):
            return None
        # The number of boxes is odd.
        return 0 if self.boxes[0].sum() > self.boxes[1].sum() else 1

    def planes(self) -> np.ndarray:
        return np.stack([self.lines, self.boxes[self.player], self.boxes[1 - self.player]])

    def is_closed(self, rank: int, file: int) -> bool:
        sides = [(rank + 1, file), (rank - 1, file), (rank, file + 1), (rank, file - 1)]
        return 0 < rank < SIZE and 0 < file < SIZE and all(self.lines[side] for side in sides)

    symmetries = [image(np.rot90(board, turns)) for board in (SQUARES, SQUARES.T) for turns in range(4)][1:]
