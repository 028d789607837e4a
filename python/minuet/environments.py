"""PettingZoo and Gymnasium environments of every game.

Actions are policy entries, and observations are from the view of the player to act, so that one network plays both sides. An
observation is a dictionary: `observation` has the planes, float32 [planes, height, width], or the row padded with zeros, int64
[max_row_length], in games whose rows are not planes; `action_mask` is int8 [actions], 1 for legal entries.
"""

from __future__ import annotations

from typing import Any, Callable

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.agent_selector import AgentSelector

from ._minuet import Game, IllegalActionError, State

Observation = dict[str, np.ndarray]


def _observation_space(game: Game) -> spaces.Dict:
    mask = spaces.Box(0, 1, (game.actions,), np.int8)
    if game.planes is None:
        row = spaces.Box(0, np.iinfo(np.uint32).max, (game.max_row_length,), np.int64)
        return spaces.Dict({"observation": row, "action_mask": mask})
    planes = spaces.Box(0.0, 1.0, (game.planes, game.height or 0, game.width or 0), np.float32)
    return spaces.Dict({"observation": planes, "action_mask": mask})


def _observe(state: State, sees: bool = True) -> Observation:
    game = state.game
    if game.planes is None:
        observation: np.ndarray[Any, Any] = np.zeros(game.max_row_length, np.int64)
        if state.outcome is None:
            row = state.row()
            observation[: len(row)] = row
    else:
        observation = state.planes()
    mask = state.legal_mask().astype(np.int8) if sees and state.outcome is None else np.zeros(game.actions, np.int8)
    return {"observation": observation, "action_mask": mask}


class AlternatingEnv(AECEnv[str, Observation, int]):
    """A game as a PettingZoo environment, for any game: `AlternatingEnv("chess")`.

    The agents are `player_0`, who begins, and in games for two `player_1`. An agent may act several times in a row. The rewards at
    the end are the outcome's value for each agent.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "name": "minuet", "is_parallelizable": False}

    def __init__(self, game: str | Game, render_mode: str | None = None) -> None:
        super().__init__()
        self.game = game if isinstance(game, Game) else Game(game)
        self.render_mode = render_mode
        self.possible_agents = [f"player_{number}" for number in range(self.game.players)]
        self.observation_spaces = {agent: _observation_space(self.game) for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(self.game.actions) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begins a game. `options={"start": {"position": …}}` has the arguments of `Game.start`. Nothing is random, so the seed has
        no effect."""
        self.state_of_game = self.game.start(**(options or {}).get("start", {}))
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, self.state_of_game.outcome is not None)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._agent_selector = AgentSelector(self.agents)
        self.agent_selection = self._mover()

    def _mover(self) -> str:
        return self.possible_agents[min(self.state_of_game.to_move, self.game.players - 1)]

    def observe(self, agent: str) -> Observation:
        """Observation of the state. The mask is empty for the agent who is not to act."""
        return _observe(self.state_of_game, agent == self._mover())

    def step(self, action: int | None) -> None:
        """Plays a policy entry. Raises IllegalActionError if it is not legal."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise IllegalActionError(f"{agent} is to act and gave no action")
        state = self.state_of_game
        state.play(state.action_at(int(action)))
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        value = state.value
        if value is None:
            self.agent_selection = self._mover()
        else:
            for number, each in enumerate(self.possible_agents):
                self.rewards[each] = -value if number else value
            self.terminations = dict.fromkeys(self.agents, True)
            others = [each for each in self.agents if each != agent]
            self.agent_selection = others[0] if others else agent
        self._accumulate_rewards()
        if self.render_mode == "ansi":
            self.render()

    def render(self) -> str:
        """The board as text."""
        return str(self.state_of_game)

    def close(self) -> None:
        """Nothing is open."""


#: Chooses a policy entry in a state, for the opponent of an `AgainstEnv`.
Opponent = Callable[[State, np.random.Generator], int]


def random_opponent(state: State, random: np.random.Generator) -> int:
    """Chooses a legal action at random."""
    return int(random.choice(state.legal_entries()))


class AgainstEnv(gymnasium.Env[Observation, int]):
    """A game as a Gymnasium environment, for any game: the agent plays against an opponent, or alone in games for one.

    The agent begins in half of the games. An action that is not legal ends the game with reward -1 and `info["illegal"]`, since
    `action_space.sample()` knows no legal actions; `action_space.sample(mask=observation["action_mask"])` gives legal ones.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(
        self, game: str | Game, opponent: Opponent = random_opponent, render_mode: str | None = None
    ) -> None:
        self.game = game if isinstance(game, Game) else Game(game)
        self.opponent = opponent
        self.render_mode = render_mode
        self.observation_space: spaces.Space[Any] = _observation_space(self.game)
        self.action_space: spaces.Space[Any] = spaces.Discrete(self.game.actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a game. `options={"start": {"position": …}}` has the arguments of `Game.start`, and `options={"side": 0}` makes the
        agent the first player."""
        super().reset(seed=seed)
        options = options or {}
        side = options.get("side")
        if side is None:
            side = int(self.np_random.integers(self.game.players))
        self.side: int = side
        self.state = self.game.start(**options.get("start", {}))
        self._answer()
        return _observe(self.state), {"side": self.side}

    def _answer(self) -> None:
        """Lets the opponent play until the agent is to act."""
        while self.game.players == 2 and self.state.outcome is None and self.state.to_move != self.side:
            self.state.play(self.state.action_at(self.opponent(self.state, self.np_random)))

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Plays a policy entry, and the opponent's answer."""
        info: dict[str, Any] = {"side": self.side}
        try:
            played = self.state.action_at(int(action))
        except IllegalActionError as error:
            return _observe(self.state), -1.0, True, False, {**info, "illegal": str(error)}
        self.state.play(played)
        self._answer()
        value = self.state.value
        reward = 0.0 if value is None else (value if self.side == 0 else -value)
        return _observe(self.state), reward, value is not None, False, info

    def render(self) -> str | None:
        """The board as text."""
        return str(self.state) if self.render_mode == "ansi" else None
