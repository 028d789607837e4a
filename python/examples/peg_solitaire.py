"""Peg solitaire, a game of one player: jump over pegs until one is left. Try: python -m minuet check peg_solitaire.py"""

import numpy as np

SIZE = 7
SQUARES = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
STEPS = [(0, 1), (1, 0), (0, -1), (-1, 0)]
HOLES = {SIZE * rank + file for rank in range(SIZE) for file in range(SIZE) if 2 <= rank <= 4 or 2 <= file <= 4}
# Action `4·square + step`: the peg of the square jumps over the next square in this direction.
JUMPS = {}
for hole in HOLES:
    for step, (up, right) in enumerate(STEPS):
        rank, file = hole // SIZE + 2 * up, hole % SIZE + 2 * right
        if 0 <= rank < SIZE and 0 <= file < SIZE and SIZE * rank + file in HOLES:
            JUMPS[4 * hole + step] = (hole, hole + SIZE * up + right, SIZE * rank + file)


def turned(turns: int) -> tuple[np.ndarray, list[int]]:
    """Where each square is after quarters of a turn, and which action each action becomes: step 0, to the right, becomes step 3, down."""
    squares = np.argsort(np.rot90(SQUARES, turns).ravel())
    return squares, [4 * int(square) + (step - turns) % 4 for square in squares for step in range(4)]


class PegSolitaire:
    players = 1
    actions = 4 * SIZE * SIZE

    def __init__(self) -> None:
        self.pegs = HOLES - {SIZE * SIZE // 2}

    def to_move(self) -> int:
        return 0

    def legal_actions(self) -> list[int]:
        return [action for action, (start, over, to) in JUMPS.items() if start in self.pegs and over in self.pegs and to not in self.pegs]

    def play(self, action: int) -> None:
        start, over, to = JUMPS[action]
        self.pegs = self.pegs - {start, over} | {to}

    # In place of `winner`: 1 for one peg, less for each other one that is left, at least -1.
    def outcome(self) -> float | None:
        return None if self.legal_actions() else max(-1.0, (11 - len(self.pegs)) / 10)

    # The pegs, and the empty holes.
    def planes(self) -> np.ndarray:
        return np.stack([np.isin(SQUARES, list(self.pegs)), np.isin(SQUARES, list(HOLES - self.pegs))])

    symmetries = [turned(1), turned(2), turned(3)]
