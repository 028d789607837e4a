"""The games for OpenSpiel against its own test of games, and the rules against OpenSpiel's implementations."""

import pickle
import unittest

import numpy as np
import pyspiel

import minuet
import minuet.openspiel  # noqa: F401


class OpenSpiel(unittest.TestCase):
    def test_every_game_passes_the_simulation_test_of_openspiel(self):
        for name in minuet.games():
            with self.subTest(name):
                game = pyspiel.load_game(f"minuet_{name.replace('-', '_')}")
                pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)

    def test_states_are_copied_and_saved_as_openspiel_does(self):
        game = pyspiel.load_game("minuet_paco_sako")
        state = game.new_initial_state()
        for _ in range(9):
            state.apply_action(state.legal_actions()[-1])
        for other in (state.clone(), pickle.loads(pickle.dumps(state))):
            self.assertEqual(other.legal_actions(), state.legal_actions())
            other.apply_action(other.legal_actions()[0])
            self.assertNotEqual(other.state.position, state.state.position)
        self.assertEqual(len(state.observation_tensor()), state.state.planes().size)
        self.assertEqual(state.observation_tensor(), state.state.planes().ravel().tolist())

    def test_rules_equal_those_of_openspiel_in_random_games(self):
        random = np.random.default_rng(8)
        for ours, theirs in (("connect-four", "connect_four"), ("othello", "othello"), ("gomoku", "gomoku(size=8)")):
            other = pyspiel.load_game(theirs)
            for _ in range(25):
                state, twin = minuet.Game(ours).start(), other.new_initial_state()
                while not twin.is_terminal():
                    self.assertIsNone(state.outcome, ours)
                    self.assertEqual(state.to_move, twin.current_player(), ours)
                    legal = state.legal_actions().tolist()
                    self.assertEqual(legal, twin.legal_actions(), ours)
                    action = int(random.choice(legal))
                    state.play(action)
                    twin.apply_action(action)
                self.assertEqual(state.value, twin.returns()[0], ours)

    def test_moves_of_chess_equal_those_of_openspiel_in_random_games(self):
        random = np.random.default_rng(9)
        game, other = minuet.Game("chess", underpromotions=True), pyspiel.load_game("chess")
        plies = 0
        for _ in range(6):
            state, twin = game.start(), other.new_initial_state()
            while state.outcome is None and not twin.is_terminal() and plies < 400:
                # OpenSpiel writes mates as checks.
                theirs = {twin.action_to_string(action).rstrip("+#"): action for action in twin.legal_actions()}
                ours = {state.notation([action]).rstrip("+#"): action for action in state.legal_actions().tolist()}
                self.assertEqual(set(ours), set(theirs))
                move = str(random.choice(sorted(theirs)))
                twin.apply_action(theirs[move])
                state.play(ours[move])
                plies += 1
        self.assertGreater(plies, 200)


if __name__ == "__main__":
    unittest.main()
