"""The games of python/examples: short, without broken promises, and the same as the games of others."""

import random
import unittest

import pyspiel
from running import ROOT

import minuet
from minuet.check import check
from minuet.source import Source

EXAMPLES = ROOT / "python" / "examples"
GAMES = ["peg_solitaire", "dots_and_boxes", "yavalath", "reversi"]


def load(name, **changes):
    """The names of an example, in which numbers at its beginning are others."""
    text = (EXAMPLES / f"{name}.py").read_text()
    for constant, number in changes.items():
        line = next(line for line in text.splitlines() if line.startswith(f"{constant} = "))
        text = text.replace(line, f"{constant} = {number}")
    names = {}
    exec(text, names)
    return names


class Examples(unittest.TestCase):
    def test_each_is_short_and_keeps_its_promises(self):
        guide = (ROOT / "docs" / "guide" / "your-own-game.md").read_text()
        for name in GAMES:
            with self.subTest(name):
                file = EXAMPLES / f"{name}.py"
                self.assertLessEqual(len(file.read_text().splitlines()), 60)
                self.assertTrue(f"python/examples/{name}.py" in guide, "the guide does not name it")
                self.assertIn("symmetries besides the identity", check(Source.load(str(file)).rules, games=30))

    def test_reversi_on_8_squares_is_othello(self):
        draws, rules = random.Random(1), load("reversi", SIZE=8)["Reversi"]
        for _ in range(10):
            state, twin = rules(), minuet.Game("othello").start()
            while twin.outcome is None:
                legal = state.legal_actions()
                self.assertEqual((sorted(legal), state.to_move(), state.winner()), (twin.legal_actions().tolist(), twin.to_move, None))
                action = draws.choice(legal)
                state.play(action)
                twin.play(action)
            self.assertEqual(state.winner(), {1: 0, 0: -1, -1: 1}[twin.value])

    def test_dots_and_boxes_is_that_of_openspiel(self):
        draws, names = random.Random(1), load("dots_and_boxes")
        boxes = names["BOXES"]
        across = [rank // 2 * boxes + file // 2 if rank % 2 == 0 else (boxes + 1) * boxes + rank // 2 * (boxes + 1) + file // 2 for rank, file in names["LINES"]]
        game = pyspiel.load_game(f"dots_and_boxes(num_rows={boxes},num_cols={boxes})")
        for _ in range(30):
            state, twin = names["DotsAndBoxes"](), game.new_initial_state()
            while not twin.is_terminal():
                legal = state.legal_actions()
                self.assertEqual((sorted(across[action] for action in legal), state.to_move(), state.winner()), (sorted(twin.legal_actions()), twin.current_player(), None))
                action = draws.choice(legal)
                state.play(action)
                twin.apply_action(across[action])
            self.assertEqual(state.winner(), twin.returns().index(1))

    def test_peg_solitaire_has_the_known_numbers_of_positions(self):
        """Positions after each number of jumps, those that are turned or mirrored counted once: A112737 of the OEIS."""
        names = load("peg_solitaire")
        rules, size = names["PegSolitaire"], names["SIZE"]
        turns = [squares.tolist() for squares, _ in rules.symmetries]
        mirror = [size * (square // size) + size - 1 - square % size for square in range(size * size)]

        def least(pegs):
            images = [pegs, *({turn[peg] for peg in pegs} for turn in turns)]
            return min(tuple(sorted(image)) for own in images for image in (own, {mirror[peg] for peg in own}))

        found, counts = {least(rules().pegs)}, []
        for _ in range(6):
            after = set()
            for pegs in found:
                state = rules()
                state.pegs = set(pegs)
                for action in state.legal_actions():
                    new = rules()
                    new.pegs = set(pegs)
                    new.play(action)
                    after.add(least(new.pegs))
            found = after
            counts.append(len(found))
        self.assertEqual(counts, [1, 2, 8, 39, 171, 719])

    def test_four_in_a_row_win_and_three_lose_in_yavalath(self):
        names = load("yavalath")
        for squares, winner in (([24, 0, 25, 0, 27, 0], None), ([24, 0, 25, 0, 27, 0, 26], 0), ([24, 0, 25, 0, 26], 1), ([16, 0, 22, 0, 28], 1)):
            state, other = names["Yavalath"](), iter([3, 12, 36, 45])
            for square in squares:
                state.play(square or next(other))
            self.assertEqual(state.winner(), winner, squares)


if __name__ == "__main__":
    unittest.main()
