"""Planes of numbers as rows: which planes of a network's input the planes of a class become, and the row of a position.

A plane of 0 and 1 stays as it is. One of larger whole numbers becomes a plane for each number. Fractions are made whole first, by the
smallest factor that does so. A plane that held the same number on all squares in all positions becomes one number of the row, which
may be a fraction. If there is a single square, a plane of numbers becomes both: one number, and planes for the smallest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Most numbers other than 0 in the planes of a position.
MOST_ENTRIES = 4096
#: Most planes of a network's input, the plane of ones included.
MOST_PLANES = 512
#: Most numbers of a network's input, all squares of all planes.
MOST_NUMBERS = 65536
#: Largest factor that makes fractions whole. A plane of one number for all squares is rounded to this part instead.
LARGEST_FACTOR = 1000
#: Numbers of a single square that have planes of their own, if there is room.
ON_SINGLE_SQUARE = (16, 4, 0)
#: Largest value of a plane of one number, times its factor.
LARGEST_VALUE = 2**24


class RowsError(Exception):
    """Planes cannot become rows. The message says why."""


@dataclass
class Numbers:
    """What the planes of random games held."""

    #: Shape of the planes: planes, ranks, files.
    shape: tuple[int, int, int]
    #: Largest number of each plane.
    largest: NDArray[np.float64] = field(init=False)
    #: True for each plane that held the same number on all squares in all positions, and not always 0.
    is_whole_board: NDArray[np.bool_] = field(init=False)
    #: Fractions that planes held.
    fractions: dict[int, set[float]] = field(default_factory=dict)
    #: Numbers other than 0 of each plane, for each position.
    counts: list[NDArray[np.uint16]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.largest = np.zeros(self.shape[0])
        # On a single square every plane would do.
        self.is_whole_board = np.full(self.shape[0], self.shape[1] * self.shape[2] > 1)

    def add(self, planes: NDArray[np.float64]) -> None:
        """Add the planes of a position, [planes, ranks, files]."""
        flat = planes.reshape(len(planes), -1)
        self.largest = np.maximum(self.largest, flat.max(axis=1))
        self.is_whole_board &= (flat == flat[:, :1]).all(axis=1)
        self.counts.append(np.count_nonzero(flat, axis=1).astype(np.uint16))
        for plane in (flat != flat.round()).any(axis=1).nonzero()[0].tolist():
            self.fractions.setdefault(plane, set()).update(flat[plane].tolist())

    def kinds(self, largest: int | None) -> list[list[int]]:
        """Return for each plane the largest number, 0 for one number on all squares, and the factor that makes its numbers whole.

        `largest` is the largest number in any position, if the class says it. Raises RowsError.
        """
        kinds, squares = [], self.shape[1] * self.shape[2]
        # Numbers without a board are often parts of one whole, of which a plane may have shown few in random games.
        common = factor_of(set().union(*self.fractions.values())) if squares == 1 else None
        for plane, most in enumerate(self.largest.tolist()):
            factor = common or factor_of(self.fractions.get(plane, set()))
            if most > 0 and (self.is_whole_board[plane] or squares == 1 and factor is None):
                kinds.append([0, factor or LARGEST_FACTOR])
            elif factor is None:
                some = ", ".join(f"{number:g}" for number in sorted(self.fractions[plane])[1:5])
                raise RowsError(f"plane {plane} holds fractions such as {some}; whole numbers, and fractions of one denominator up to {LARGEST_FACTOR} are possible")
            else:
                number = max(1, round(most * factor))
                # Later positions may hold more than those of random games did.
                number += number // 4
                kinds.append([largest * factor if largest else number, factor])
        if squares == 1:
            for number in ON_SINGLE_SQUARE:
                kinds = limited(kinds, number)
                if planes_of(kinds, squares) <= MOST_PLANES:
                    break
        count = planes_of(kinds, squares)
        if count > MOST_PLANES or count * squares > MOST_NUMBERS:
            raise RowsError(
                f"{len(kinds)} planes of numbers up to {max(number for number, _ in kinds)} on {self.shape[1]}×{self.shape[2]} squares are too many: "
                f"they become {count} planes of 0 and 1, and {min(MOST_PLANES, MOST_NUMBERS // squares)} are possible"
            )
        return kinds

    def entries(self, kinds: list[list[int]]) -> int:
        """Return the number of indices of a row: positions may hold more than those of random games did."""
        is_sparse = np.array([number > 0 for number, _ in kinds])
        seen = max((int(counts[is_sparse].sum()) for counts in self.counts), default=1)
        return 1 + min(max(2 * seen, seen + 16), int(is_sparse.sum()) * self.shape[1] * self.shape[2], MOST_ENTRIES - 1)


def factor_of(fractions: set[float]) -> int | None:
    """Return the smallest factor that makes all numbers whole. None if there is none up to LARGEST_FACTOR."""
    numbers = np.array(sorted(fractions))
    for factor in range(1, LARGEST_FACTOR + 1):
        if (np.abs(numbers * factor - (numbers * factor).round()) < 1e-4).all():
            return factor
    return None


def limited(kinds: list[list[int]], most: int) -> list[list[int]]:
    """Return the kinds of planes with at most this many planes for the numbers of one that holds more than 0 and 1."""
    return [[min(number, most) if number > 1 else number, factor] for number, factor in kinds]


def is_constant(number: int, squares: int) -> bool:
    """True if a plane of this kind becomes one number of the row, perhaps besides planes of 0 and 1."""
    return number == 0 or squares == 1 and number > 1


def planes_of(kinds: list[list[int]], squares: int) -> int:
    """Return the number of planes of a network's input. The last two are one that absent entries of a row point into, and ones."""
    return sum(number + is_constant(number, squares) for number, _ in kinds) + 2


class Rows:
    """The rows of positions.

    `kinds` has the largest number and the factor of each plane, as `Numbers.kinds` returns them.
    """

    def __init__(self, shape: tuple[int, int, int], kinds: list[list[int]], entries: int) -> None:
        self.shape, self.kinds, self.entries = shape, kinds, entries
        self.squares = shape[1] * shape[2]
        numbers = np.array([number for number, _ in kinds])
        factors = np.array([factor for _, factor in kinds], float)
        constant = np.array([is_constant(number, self.squares) for number, _ in kinds])
        planes = numbers + constant
        first = planes.cumsum() - planes
        #: Planes that are one number, and their factors.
        self.constant = constant.nonzero()[0]
        self.constant_factors = factors[self.constant]
        #: Planes of 0 and 1, with the largest number, the factor and the first plane of the input of each.
        self.sparse = (numbers > 0).nonzero()[0]
        self.largest, self.factors = numbers[self.sparse], factors[self.sparse]
        self.first = first[self.sparse]
        self.planes = planes_of(kinds, self.squares)
        #: True if the other planes hold 0 and 1, and become the first planes of the input.
        self.is_plain = bool((self.largest * self.factors == 1).all() and (self.first == np.arange(len(self.first))).all())
        # The number of a plane comes after its planes of 0 and 1.
        self.constant_planes = (first + numbers)[self.constant].tolist()
        self.sparse_planes = [plane for plane in range(self.planes - 1) if plane not in set(self.constant_planes)]

    def constants(self, largest: list[float]) -> list[dict[str, Any]]:
        """Return the planes of one number in the form of a layout. `largest` has the largest number of each plane: the network sees parts of it."""
        found = zip(self.constant.tolist(), self.constant_planes, self.constant_factors.tolist(), strict=True)
        return [
            {"name": f"plane {plane}", "plane": at, "divisor": max(1, round(largest[plane] * factor)), "max": LARGEST_VALUE}
            for plane, at, factor in found
        ]

    def row(self, planes: NDArray[Any]) -> list[int]:
        """Return the row of a position: the index of each number other than 0, in the plane of its value, and the numbers of whole boards.

        It begins with the index that absent ones repeat. Raises RowsError if the planes hold what the rows of the run cannot.
        """
        # Called for each position of a search, so with few calls of NumPy.
        values: list[int] = []
        if len(self.constant):
            boards = planes[self.constant].reshape(len(self.constant), -1)
            if (boards != boards[:, :1]).any():
                uneven = int(self.constant[(boards != boards[:, :1]).any(axis=1).argmax()])
                raise RowsError(f"plane {uneven} holds several numbers, and the same number on all squares in random games; begin a new run, with more in its first squares")
            values = (boards[:, 0] * self.constant_factors).round().astype(np.int64).tolist()
            if min(values) < 0 or max(values) > LARGEST_VALUE:
                raise RowsError(f"a plane holds a number below 0 or above {LARGEST_VALUE}")
            planes = planes[self.sparse]
        numbers = planes.ravel()
        indices = numbers.nonzero()[0]
        if not self.is_plain:
            numbers = numbers[indices]
            plane, square = np.divmod(indices, self.squares)
            scaled = numbers * self.factors[plane]
            numbers = scaled.round().astype(np.int64)
            if self.squares == 1:
                # The constants have the other numbers too.
                known = (numbers <= self.largest[plane]) & (np.abs(scaled - numbers) < 1e-3)
                scaled, numbers, plane, square = scaled[known], numbers[known], plane[known], square[known]
            self.check(scaled, numbers, plane)
            indices = self.squares * (self.first[plane] + numbers - 1) + square
        elif not (numbers[indices] == 1).all():
            self.check(numbers[indices], numbers[indices].round(), indices // self.squares)
        absent = self.entries - len(indices)
        if absent < 1:
            raise RowsError(f"`planes` holds {len(indices)} numbers other than 0; random games showed half as many at most: leave out planes that say little")
        return [self.squares * (self.planes - 2)] * absent + indices.tolist() + values

    def check(self, scaled: NDArray[Any], numbers: NDArray[Any], plane: NDArray[Any]) -> None:
        """Check that numbers are whole and not above the largest one of their planes. Raises RowsError."""
        wrong = (np.abs(scaled - numbers) > 1e-3) | (numbers < 0) | (numbers > self.largest[plane])
        if wrong.any():
            at = int(wrong.argmax())
            which, most = int(self.sparse[plane[at]]), self.largest[plane[at]] / self.factors[plane[at]]
            raise RowsError(
                f"plane {which} holds {scaled[at] / self.factors[plane[at]]:g}, but the rows of the run were made for numbers up to {most:g}, by random games; "
                "give the class the attribute `largest` and begin a new run"
            )
