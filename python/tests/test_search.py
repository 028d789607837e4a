"""Searches with Python callables as evaluators."""

import threading
import unittest

import numpy as np

import minuet


def uniform(batch):
    """Every legal action has the same prior; the value is 0."""
    _, counts = batch.legal()
    return np.repeat(1.0 / counts, counts), np.zeros(len(batch))


class Searching(unittest.TestCase):
    def test_a_search_finds_the_win_in_one(self):
        state = minuet.Game("connect-four").start()
        for column in (3, 0, 3, 0, 3, 1):
            state.play(column)
        search = minuet.Search(state, uniform, visits=200)
        search.run()
        self.assertEqual(search.choose(), 3)
        self.assertEqual(search.visits.sum(), 200)
        self.assertGreater(search.value, 0.8)
        self.assertEqual(search.principal_variation()[0], 3)
        search.advance(3)
        self.assertEqual(search.state.outcome, "first")
        self.assertIsNone(search.choose())

    def test_serial_search_equals_uct_written_in_python(self):
        for columns in ((), (3, 3), (3, 2, 3, 2, 3)):
            state = minuet.Game("connect-four").start()
            for column in columns:
                state.play(column)
            search = minuet.Search(
                state, uneven, visits=120, leaves=1, random_symmetry=False, first_play="zero", exploration=1.5
            )
            search.run()
            self.assertEqual(search.visits.tolist(), reference(state, 120, 1.5))

    def test_many_searches_together_equal_each_alone(self):
        game = minuet.Game("othello")
        sizes = []

        def counted(batch):
            sizes.append(len(batch))
            return uniform(batch)

        together = [minuet.Search(game.start(), counted, visits=60, seed=5, game=number) for number in range(8)]
        minuet.run_searches(together)
        self.assertGreater(max(sizes), 8)
        for number, search in enumerate(together):
            alone = minuet.Search(game.start(), uniform, visits=60, seed=5, game=number)
            alone.run()
            self.assertEqual(alone.visits.tolist(), search.visits.tolist())

    def test_every_game_is_searched(self):
        for name in minuet.games():
            search = minuet.Search(minuet.Game(name).start(), uniform, visits=20)
            search.run()
            self.assertEqual(search.visits_done, 20, name)

    def test_other_threads_run_while_a_search_descends(self):
        search = minuet.Search(minuet.Game("connect-four").start(), uniform, visits=20_000, leaves=512)
        worker = threading.Thread(target=search.run)
        worker.start()
        with_evaluator = minuet.Search(minuet.Game("chess").start(), uniform, visits=50)
        with_evaluator.run()
        worker.join()
        self.assertEqual(search.visits_done, 20_000)

    def test_answers_that_do_not_fit_are_refused(self):
        state = minuet.Game("connect-four").start()
        for answer, words in [
            (lambda batch: 3, "priors, values"),
            (lambda batch: (np.ones(3), np.zeros(1)), "7 legal actions"),
            (lambda batch: (np.ones(7) / 7, np.zeros(2)), "2 values for 1 states"),
            (lambda batch: (np.ones(7), np.zeros(1)), "sum"),
            (lambda batch: (np.ones(7) / 7, np.array([4.0])), "outside"),
        ]:
            search = minuet.Search(state, answer, visits=5)
            with self.assertRaisesRegex(minuet.EvaluationError, words):
                search.run()
        with self.assertRaisesRegex(minuet.SettingsError, "visits"):
            minuet.Search(state, uniform, visits=0)
        with self.assertRaisesRegex(minuet.SettingsError, "no_such_key"):
            minuet.Search(state, uniform, no_such_key=1)

    def test_an_exception_of_the_evaluator_reaches_the_caller(self):
        def broken(batch):
            raise KeyError("mine")

        search = minuet.Search(minuet.Game("gomoku").start(), broken)
        with self.assertRaises(KeyError):
            search.run()
        with self.assertRaises(KeyError):
            search.run()


def opinion(state):
    """Priors and a value that differ from state to state, so that a search has no ties."""
    actions = state.legal_actions()
    random = np.random.default_rng(state.row().tolist())
    priors = random.uniform(0.1, 1.0, len(actions))
    return (priors / priors.sum()).astype(np.float32), np.float32(random.uniform(-0.9, 0.9))


def uneven(batch):
    opinions = [opinion(batch[number]) for number in range(len(batch))]
    return np.concatenate([priors for priors, _ in opinions]), np.array([value for _, value in opinions])


class Node:
    def __init__(self, state):
        self.sign = -1.0 if state.to_move else 1.0
        self.outcome = state.value
        if self.outcome is None:
            self.actions = state.legal_actions().tolist()
            self.priors, value = opinion(state)
            self.first = float(value) * self.sign
            self.totals = np.zeros(len(self.actions))
            self.visits = np.zeros(len(self.actions), np.int64)
            self.children = {}
        else:
            self.first = self.outcome


def reference(state, visits, exploration):
    """Visits of the root's actions after UCT with V = W / (1 + N) + c * P * sqrt(sum N) / (1 + N). Values are the first player's."""
    root = Node(state)
    for _ in range(visits):
        node, played, path = root, state.copy(), []
        while node is not None and node.outcome is None:
            width = np.sqrt(node.visits.sum())
            score = (node.sign * node.totals + exploration * node.priors * width) / (1 + node.visits)
            # Without visits only the priors count.
            best = int(np.argmax(score if width else node.priors))
            path.append((node, best))
            played.play(node.actions[best])
            last, node = node, node.children.get(best)
        if node is None:
            node = last.children[best] = Node(played)
        for visited, edge in path:
            visited.totals[edge] += node.first
            visited.visits[edge] += 1
    return root.visits.tolist()


if __name__ == "__main__":
    unittest.main()
