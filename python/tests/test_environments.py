"""The environments against the API tests of PettingZoo and Gymnasium, and against the rules."""

import io
import unittest
import warnings
from contextlib import redirect_stdout

import numpy as np
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test

import minuet
from minuet.environments import AgainstEnv, AlternatingEnv


def quietly(check, *arguments, **options):
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(*arguments, **options)


class Environments(unittest.TestCase):
    def test_every_game_passes_the_api_test_of_pettingzoo(self):
        for name in minuet.games():
            with self.subTest(name):
                quietly(api_test, AlternatingEnv(name), num_cycles=150)

    def test_games_pass_the_seed_test_of_pettingzoo(self):
        quietly(seed_test, lambda: AlternatingEnv("paco-sako"), num_cycles=100)

    def test_every_game_passes_the_checker_of_gymnasium(self):
        for name in minuet.games():
            with self.subTest(name):
                quietly(check_env, AgainstEnv(name), skip_render_check=True)

    def test_rewards_are_the_outcome_for_each_agent(self):
        env = AlternatingEnv("connect-four")
        env.reset()
        for entry in (0, 1, 0, 1, 0, 1, 0):
            env.step(entry)
        self.assertEqual(env.rewards, {"player_0": 1.0, "player_1": -1.0})
        self.assertEqual(env.terminations, {"player_0": True, "player_1": True})

    def test_an_agent_of_paco_sako_acts_twice_in_a_row(self):
        env = AlternatingEnv("paco-sako")
        env.reset()
        movers = []
        for _ in range(4):
            movers.append(env.agent_selection)
            mask = env.observe(env.agent_selection)["action_mask"]
            env.step(int(np.flatnonzero(mask)[0]))
        self.assertEqual(movers, ["player_0", "player_0", "player_1", "player_1"])

    def test_an_illegal_action_is_refused(self):
        env = AlternatingEnv("othello")
        env.reset()
        with self.assertRaises(minuet.IllegalActionError):
            env.step(0)
        against = AgainstEnv("othello")
        against.reset(options={"side": 0})
        _, reward, terminated, _, info = against.step(0)
        self.assertEqual((reward, terminated), (-1.0, True))
        self.assertIn("illegal", info)

    def test_games_against_an_opponent_end_and_depend_on_the_seed_alone(self):
        def play(seed):
            env = AgainstEnv("connect-four")
            observation, _ = env.reset(seed=seed)
            env.action_space.seed(seed)
            rewards = []
            terminated = False
            while not terminated:
                action = env.action_space.sample(mask=observation["action_mask"])
                observation, reward, terminated, _, _ = env.step(action)
                rewards.append(reward)
            return rewards, env.state.position

        self.assertEqual(play(1), play(1))
        self.assertNotEqual(play(1)[1], play(2)[1])


if __name__ == "__main__":
    unittest.main()
