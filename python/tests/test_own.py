"""A game of one's own: the example against Gomoku, and the bugs that `check` must find."""

import contextlib
import io
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import minuet
import minuet.own
from minuet.check import check
from minuet.new_game import SIZE, FiveInARow
from minuet.own import Adapter, observe

EXAMPLE = Path(minuet.__file__).parent / "new_game.py"


class Failing(FiveInARow):
    """The example, with an exception if the first three stones are on a1, b1 and c1."""

    name = "failing-five"

    def play(self, action):
        super().play(action)
        if self.stones.sum() == 3 and self.stones[:, 0, :3].sum() == 3:
            raise ZeroDivisionError("a1 to c1")


def command(*arguments):
    return subprocess.run([sys.executable, "-P", "-m", "minuet", *arguments], capture_output=True, text=True)


class Own(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.game = minuet.own.add(Failing)

    def test_the_example_is_gomoku_in_random_games_and_in_every_symmetry(self):
        draws, gomoku = random.Random(3), minuet.Game("gomoku", size=SIZE)
        self.assertEqual((self.game.name, self.game.actions, self.game.symmetries), ("failing-five", 49, 2))
        for _ in range(30):
            state, twin, actions = self.game.start(), gomoku.start(), []
            while twin.outcome is None:
                legal = twin.legal_actions().tolist()
                self.assertEqual((state.legal_actions().tolist(), state.to_move), (legal, twin.to_move))
                planes, others = state.planes(), twin.planes()
                self.assertTrue((planes[:2] == others[:2]).all() and (planes[3] == 1).all())
                self.assertTrue((state.planes(1)[:2] == planes[:2, :, ::-1]).all())
                self.assertEqual(state.policy_entry(legal[0], 1), legal[0] // SIZE * SIZE + SIZE - 1 - legal[0] % SIZE)
                action = draws.choice([action for action in legal if action > 2])
                if len(legal) <= 6:
                    break
                actions.append(action)
                state.play(action)
                twin.play(action)
            else:
                self.assertEqual((state.outcome, state.value), (twin.outcome, twin.value))
            self.assertEqual(self.game.start(str(actions)).planes().tolist(), state.planes().tolist())

    def test_a_search_completes_a_row(self):
        state = self.game.start()
        for action in (10, 40, 11, 41, 12, 42, 13, 48):
            state.play(action)

        def uniform(batch):
            counts = batch.legal()[1]
            return np.repeat(1 / counts, counts).astype(np.float32), np.zeros(len(counts), np.float32)

        search = minuet.Search(state, uniform, visits=400)
        search.run()
        self.assertIn(search.choose(), (9, 14))

    def test_an_exception_is_told_with_its_actions_and_ends_the_game(self):
        state, told = self.game.start(), io.StringIO()
        with contextlib.redirect_stderr(told):
            for action in range(3):
                state.play(action)
        self.assertIn("ZeroDivisionError: a1 to c1", told.getvalue())
        self.assertIn("line", told.getvalue())
        self.assertIn("Actions that lead there: [0, 1, 2]", told.getvalue())
        self.assertEqual(state.legal_actions().tolist(), [])

    def test_a_second_game_is_refused(self):
        with self.assertRaisesRegex(minuet.PositionError, "failing-five"):
            minuet.own.add(FiveInARow)

    def test_a_new_file_is_checked_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "my_game.py")
            self.assertEqual(command("new", file).returncode, 0)
            checked = command("check", file, "--games", "40")
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))
            self.assertIn("49 actions, 2 planes of 7×7 squares", checked.stdout)
            again = command("new", file)
            self.assertEqual((again.returncode, "exists" in again.stderr), (2, True))
        self.assertEqual(command("check", "missing.py").returncode, 2)
        lines = [line.strip() for line in EXAMPLE.read_text().splitlines()]
        code = [line for line in lines if line and not line.startswith(("#", '"""'))]
        self.assertLessEqual(len(code), 45)

    def test_check_names_each_bug(self):
        class Shared(FiveInARow):
            def copy(self):
                new = Shared.__new__(Shared)
                new.__dict__.update(self.__dict__)
                return new

        class Endless(FiveInARow):
            def winner(self):
                return None

            def legal_actions(self):
                return range(49)

        class Stuck(FiveInARow):
            def legal_actions(self):
                return super().legal_actions() if self.stones.sum() < 6 else []

        class Shape(FiveInARow):
            def planes(self):
                return super().planes() if self.stones.sum() < 9 else super().planes()[0]

        class Winner(FiveInARow):
            def winner(self):
                return None if self.won is None else self.won + 2

        class Mirror(FiveInARow):
            symmetries = [(np.roll(np.arange(49), 7),) * 2]

        class Map(FiveInARow):
            symmetries = [(np.zeros(49, int), np.arange(49))]

        class Action(FiveInARow):
            def legal_actions(self):
                return np.append(super().legal_actions(), 49)

        class Largest(FiveInARow):
            largest = 1

            def planes(self):
                return super().planes() * (1 if self.stones.sum() < 9 else 2)

        class NoNumber(FiveInARow):
            largest = 1.5

        class Random(FiveInARow):
            def play(self, action):
                super().play(action)
                if random.random() < 0.02:
                    self.won = 0

        for bug, promise in (
            (Shared, "they share something"),
            (Endless, "has not ended after"),
            (Stuck, "`legal_actions` is empty"),
            (Shape, "not (2, 7, 7) as at the start"),
            (Winner, "`winner` returned"),
            (Mirror, "symmetry 1: the"),
            (Map, "symmetry 1: the map of squares is not a permutation"),
            (Action, "but `actions` is 49"),
            (Largest, "`planes` holds 2, but `largest` is 1"),
            (NoNumber, "`largest` is 1.5; a whole number from 1 on is possible"),
            (Random, "are the rules random?"),
        ):
            with self.subTest(bug.__name__), self.assertRaises(minuet.own.RulesError) as raised:
                check(bug, games=40)
            self.assertIn(promise, str(raised.exception))

    def test_the_layout_follows_from_the_class(self):
        class Larger(FiveInARow):
            largest = 3

        class Numbered(FiveInARow):
            """Action n is another square than square n."""

            symmetries = [(FiveInARow.symmetries[0][0], np.arange(49))]

        def layout(rules, known=None):
            adapter = Adapter(rules)
            description = adapter.continued(known) if known else adapter.describe(observe(adapter, 1, games=1))
            return description["layout"]

        usual = layout(FiveInARow)
        self.assertEqual((usual["planes"], usual["policy_head"]), (2 * 1 + 2, "planes"))
        self.assertEqual(layout(Larger)["planes"], 2 * 3 + 2)
        self.assertEqual(layout(Numbered)["policy_head"], "dense")
        # A run continues with the head that its network has.
        self.assertEqual(layout(FiveInARow, {"layout": {**usual, "policy_head": "dense"}})["policy_head"], "dense")

    def test_numbers_of_all_kinds_are_in_the_rows(self):
        class Numbered(FiveInARow):
            """With planes of the number of stones on all squares, in parts of 49, and of halves on the squares of a player."""

            def planes(self):
                stones = super().planes()
                return np.concatenate([stones, np.full((1, 7, 7), self.stones.sum() / 49), stones[:1] / 2 * (1 + np.eye(7))])

        class Uneven(Numbered):
            def planes(self):
                return super().planes() * (1 if self.stones.sum() < 3 else np.linspace(1, 1.1, 7))

        class Negative(FiveInARow):
            def planes(self):
                return super().planes() - 1

        adapter = Adapter(Numbered)
        description = adapter.describe(observe(adapter, 1, games=2))
        self.assertEqual(description["planes"], [[1, 1], [1, 1], [0, 49], [2, 2]])
        layout = description["layout"]
        self.assertEqual((layout["planes"], layout["constants"][0]["plane"], layout["sparse"]), (1 + 1 + 1 + 2 + 2, 2, [0, 1, 3, 4, 5]))
        state = Numbered()
        for action in (0, 1, 8):
            state.play(action)
        # The player to act has the stone on square 1; the other one has those on the diagonal.
        row = adapter.row(state)
        self.assertEqual(row[-1], 3)
        self.assertEqual(row[-5:-1], [1, 49, 49 + 8, 3 * 49 + 1])
        # The run continues with the same rows.
        again = Adapter(Numbered)
        self.assertEqual(again.continued(description)["layout"], layout)
        self.assertEqual(again.row(state), row)
        changed = Adapter(FiveInARow)
        with self.assertRaisesRegex(minuet.own.RulesError, "2 planes, and 4 when the run began"):
            changed.continued(description)
        for bug, promise in ((Uneven, "plane . holds fractions such as"), (Negative, "not a number from 0 to")):
            with self.subTest(bug.__name__), self.assertRaisesRegex(minuet.own.RulesError, promise):
                check(bug, games=5)

    def test_a_rare_exception_is_found_with_the_game_that_leads_there(self):
        class Rare(FiveInARow):
            def play(self, action):
                super().play(action)
                if self.stones[0].sum() == 20 and self.stones[0, 3, 3]:
                    raise KeyError("rare")

        with self.assertRaises(KeyError) as raised:
            check(Rare)
        [note] = raised.exception.__notes__
        actions = eval(note.partition(": ")[2])
        state = FiveInARow()
        for action in actions:
            state.play(action)
        self.assertTrue(state.stones[0].sum() == 20 and state.stones[0, 3, 3])


if __name__ == "__main__":
    unittest.main()
