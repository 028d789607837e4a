"""States, batches, rows and their symmetries; bad input."""

import copy
import json
import pickle
import unittest

import numpy as np

import minuet


def random_states(game, count, seed=0):
    random = np.random.default_rng(seed)
    state, found = game.start(), []
    while len(found) < count:
        legal = state.legal_actions()
        if state.outcome is not None or len(legal) == 0:
            state = game.start()
            continue
        found.append(state.copy())
        state.play(int(random.choice(legal)))
    return found


class Rules(unittest.TestCase):
    def test_batches_equal_their_states_in_every_game(self):
        for name in minuet.games():
            game = minuet.Game(name)
            states = random_states(game, 60)
            batch = minuet.Batch(states)
            entries, counts = batch.legal()
            self.assertEqual(entries.tolist(), np.concatenate([state.legal_entries() for state in states]).tolist())
            self.assertEqual(counts.tolist(), [len(state.legal_actions()) for state in states])
            self.assertEqual(batch.to_move().tolist(), [state.to_move for state in states])
            self.assertTrue((batch.legal_mask() == np.stack([state.legal_mask() for state in states])).all())
            rows = np.concatenate([state.row() for state in states])
            self.assertEqual(batch.rows().ravel().tolist(), rows.tolist())
            self.assertEqual(batch.row_lengths().sum(), len(rows))
            if game.planes is not None:
                self.assertEqual(batch.rows().shape, (60, game.row_length))
                planes = np.stack([state.planes() for state in states])
                self.assertTrue((batch.planes() == planes).all())
                self.assertTrue((game.expand(batch.rows()) == planes).all())

    def test_a_batch_plays_one_entry_in_each_running_game(self):
        game = minuet.Game("connect-four")
        batch = game.batch(2)
        won = game.start()
        for column in (0, 1, 0, 1, 0, 1, 0):
            won.play(column)
        batch[1] = won
        batch.play(np.array([3, 99], np.uint32))
        self.assertEqual(batch[0].position, self.played(game, 3).position)
        values = batch.values()
        self.assertTrue(np.isnan(values[0]) and values[1] == 1.0)
        with self.assertRaisesRegex(minuet.IllegalActionError, "state 0"):
            batch.play(np.array([9, 0], np.uint32))
        self.assertEqual(batch[0].position, self.played(game, 3).position)

    def test_random_games_of_a_batch_equal_those_of_single_states_in_every_game(self):
        for name in minuet.games():
            game, random = minuet.Game(name), np.random.default_rng(4)
            batch, states, restarted = game.batch(24), [game.start() for _ in range(24)], 0
            for _ in range(60):
                entries, counts = batch.legal()
                self.assertEqual(counts.tolist(), [len(state.legal_actions()) for state in states])
                chosen = entries[np.cumsum(counts) - counts + (random.random(24) * counts).astype(np.uint32)]
                batch.play(chosen)
                for state, entry in zip(states, chosen.tolist()):
                    state.play(state.action_at(entry))
                values = [np.nan if state.value is None else state.value for state in states]
                np.testing.assert_array_equal(batch.values(), np.array(values, np.float32))
                finished = batch.restart().tolist()
                self.assertEqual(finished, np.flatnonzero(~np.isnan(values)).tolist())
                for place in finished:
                    states[place] = game.start()
                restarted += len(finished)
                rows = [state.row() for state in states]
                self.assertEqual(batch.rows().ravel().tolist(), np.concatenate(rows).tolist(), name)
                self.assertEqual(batch.legal()[0].tolist(), np.concatenate([state.legal_entries() for state in states]).tolist())
            if name in ("connect-four", "othello"):
                self.assertGreater(restarted, 10, name)

    @staticmethod
    def played(game, *actions):
        state = game.start()
        for action in actions:
            state.play(action)
        return state

    def test_policy_entries_are_distinct_and_lead_back_to_their_actions(self):
        for name in minuet.games():
            for state in random_states(minuet.Game(name), 80, seed=3):
                for action in state.legal_actions():
                    self.assertEqual(state.action_at(state.policy_entry(int(action))), action)

    def test_symmetries_of_rows_equal_rows_of_symmetric_states(self):
        for name in ("connect-four", "othello", "gomoku"):
            game = minuet.Game(name)
            for state in random_states(game, 30, seed=1):
                for symmetry in state.symmetries():
                    turned = game.turn_rows(state.row()[None], symmetry)
                    self.assertTrue((game.expand(turned)[0] == state.planes(symmetry)).all())
                    entries = game.turn_entries(symmetry)[state.legal_entries()]
                    self.assertEqual(entries.tolist(), state.legal_entries(symmetry).tolist())

    def test_a_copy_and_a_position_are_the_same_state(self):
        state = minuet.Game("chess").start()
        for turn in ("e4", "e5", "Nf3"):
            state.play(turn)
        twin = copy.deepcopy(state)
        twin.play("Nc6")
        self.assertNotEqual(twin.position, state.position)
        again = state.game.start(state.position)
        self.assertEqual(again.legal_actions().tolist(), state.legal_actions().tolist())
        self.assertEqual(state.notation([state.action("b8c6")]), "Nc6")
        state.play("d5")
        self.assertIn("", str(state))
        self.assertEqual((state.outcome, state.value, state.ending), (None, None, None))

    def test_rules_are_switched_by_keyword(self):
        usual = minuet.Game("paco-sako")
        self.assertEqual(usual.rules["dead_end"], "loss")
        self.assertEqual(minuet.Game("paco-sako", dead_end="forbid").rules["dead_end"], "forbid")
        forbidding = minuet.Game("paco-sako", 5, dead_end="forbid")
        self.assertNotEqual(usual, forbidding)
        self.assertEqual(pickle.loads(pickle.dumps(forbidding)), forbidding)
        for name in minuet.games():
            self.assertEqual(pickle.loads(pickle.dumps(minuet.Game(name))), minuet.Game(name))


class Problems(unittest.TestCase):
    def test_a_problem_is_determined_by_its_seed_and_number_and_its_solution_solves_it(self):
        game = minuet.Game("generator")
        positions = set()
        for number in range(20):
            kind = ("draw", "pair")[number % 2]
            state, solution = game.problem(6, kind, seed=3, number=number)
            again, same = game.problem(6, kind, seed=3, number=number)
            self.assertEqual((state.position, solution), (again.position, same))
            self.assertEqual("second_target" in state.position, kind == "pair")
            positions.add(state.position)
            for action in solution:
                self.assertIsNone(state.outcome)
                state.play(action)
            self.assertEqual((state.ending, state.value), ("solved", 1.0))
        self.assertEqual(len(positions), 20)
        self.assertNotEqual(game.problem(6, seed=4)[0].position, game.problem(6, seed=3)[0].position)

    def test_problems_are_held_out_or_of_self_play(self):
        game = minuet.Game("generator")
        drawn = [{game.problem(8, number=number, held_out=held_out)[0].position for number in range(150)} for held_out in (False, True)]
        self.assertGreater(min(map(len, drawn)), 100)
        self.assertFalse(drawn[0] & drawn[1])

    def test_the_held_out_problems_are_those_of_the_benchmark(self):
        # The first one of draw 4: `minuet bench generator` must keep its problems, and these must be the same ones.
        state, solution = minuet.Game("generator").problem(4, seed=4_321_000, number=0, held_out=True)
        row = [5, 5, 5, 5, 5, 5, 5, 10]
        self.assertEqual(json.loads(state.position)["target"], [row, [1, *row[1:]], *[row] * 6])
        self.assertEqual(solution, [4, 144, 176, 58, 1])

    def test_tasks_have_examples_and_need_a_representation_that_holds_them(self):
        state, solution = minuet.Game("generator", 1).problem(4, "task", number=1)
        self.assertIn("examples", state.position)
        self.assertEqual(len(state.batch().row_lengths()), 1)
        for action in solution:
            state.play(action)
        self.assertEqual(state.ending, "solved")


class BadInput(unittest.TestCase):
    def refused(self, kind, words, call, *arguments, **options):
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        self.assertIsInstance(caught.exception, minuet.Error)
        self.assertIn(words, str(caught.exception))

    def test_unknown_games_rules_and_positions_are_named(self):
        self.refused(minuet.UnknownGameError, "did you mean chess", minuet.Game, "chss")
        self.refused(minuet.PositionError, "no_such_rule", minuet.Game, "paco-sako", no_such_rule=1)
        self.refused(minuet.PositionError, "options", minuet.Game, "othello", 3)
        chess = minuet.Game("chess")
        self.refused(minuet.PositionError, "", chess.start, "no fen")
        self.refused(minuet.PositionError, "no field", chess.start, colour="white")
        self.refused(minuet.PositionError, "connect-four", minuet.Batch, [chess.start(), minuet.Game("connect-four").start()])

    def test_problems_that_do_not_exist_are_named(self):
        game = minuet.Game("generator")
        self.refused(minuet.PositionError, "no problems", minuet.Game("chess").problem, 3)
        self.refused(minuet.PositionError, "draw, pair, task, not 'tasks'".replace("'", '"'), game.problem, 3, "tasks")
        self.refused(minuet.PositionError, "examples", game.problem, 3, "task")
        for level in (-1, 0, 49):
            self.refused(minuet.PositionError, f"levels 1 to 48, not {level}", game.problem, level)

    def test_illegal_actions_leave_the_state_as_it_was(self):
        state = minuet.Game("chess").start()
        before = state.position
        self.refused(minuet.IllegalActionError, "not legal", state.play, "Qxf7")
        self.refused(minuet.IllegalActionError, "not legal", state.play, 4671)
        self.refused(minuet.IllegalActionError, "action id", state.policy_entry, 5000)
        self.assertEqual(state.position, before)

    def test_wrong_rows_are_refused_with_the_place(self):
        game = minuet.Game("connect-four")
        rows = game.batch(2).rows()
        wrong = rows.copy()
        wrong[1, 0] = 9999
        self.refused(minuet.RowError, "row 1", game.expand, wrong)
        self.refused(minuet.RowError, "row 1", game.check_rows, wrong)
        self.refused(minuet.RowError, "instead of", game.expand, rows[:, :-1])
        self.refused(minuet.RowError, "symmetries", game.turn_rows, rows, 7)
        self.refused(minuet.RowError, "planes", minuet.Game("generator").batch(1).planes)
        lengths = np.array([43, 42], np.uint32)
        self.refused(minuet.RowError, "row 0", game.inputs, rows.ravel(), np.array([42, 44], np.uint32))
        self.refused(minuet.RowError, "row 1 ends beyond", game.inputs, rows.ravel()[:-1], np.array([43, 43], np.uint32))
        self.refused(minuet.RowError, "behind the last row", game.inputs, rows.ravel(), lengths[:1])
        self.refused(minuet.EvaluationError, "logits", game.batch(2).priors, np.zeros((2, 3), np.float32))


if __name__ == "__main__":
    unittest.main()
