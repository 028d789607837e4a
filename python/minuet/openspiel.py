"""Games for OpenSpiel. After `import minuet.openspiel`, `pyspiel.load_game("minuet_paco_sako")` loads Paco Ŝako, and so on for every
game of `minuet.games()`, with the rules of self-play.

Actions are action ids. The observation is that of the player to act, for both players: the planes, float32 [planes, height, width], or the row
padded with zeros, float32 [max_row_length], in games whose rows are not planes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.observation import IIGObserverForPublicInfoGame

from ._minuet import Game, State, games

#: Most actions of a game, as OpenSpiel is told. The longest possible game of chess has fewer.
LONGEST = 20_000


class MinuetGame(pyspiel.Game):
    """A game of Minuet as a game of OpenSpiel."""

    def __init__(self, game: Game, game_type: pyspiel.GameType, params: dict[str, Any] | None = None) -> None:
        info = pyspiel.GameInfo(
            num_distinct_actions=game.actions,
            max_chance_outcomes=0,
            num_players=game.players,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0 if game.players == 2 else None,
            max_game_length=LONGEST,
        )
        super().__init__(game_type, info, params or {})
        self.minuet_game = game

    def new_initial_state(self) -> MinuetState:
        return MinuetState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return Observer(self.minuet_game)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class Played:
    """A state of Minuet with the actions since the start, so that it can be saved."""

    def __init__(self, game: Game) -> None:
        self.state, self.actions = game.start(), list[int]()

    def play(self, action: int) -> None:
        self.state.play(action)
        self.actions.append(action)

    def __deepcopy__(self, _: Any) -> Played:
        other = Played.__new__(Played)
        other.state, other.actions = self.state.copy(), self.actions.copy()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return _replayed, (self.state.game, self.actions)


def _replayed(game: Game, actions: list[int]) -> Played:
    played = Played(game)
    for action in actions:
        played.play(action)
    return played


class MinuetState(pyspiel.State):
    """A state of Minuet as a state of OpenSpiel; `state` is that of Minuet."""

    def __init__(self, game: MinuetGame) -> None:
        super().__init__(game)
        self._played = Played(game.minuet_game)

    @property
    def state(self) -> State:
        return self._played.state

    def current_player(self) -> int:
        return int(pyspiel.PlayerId.TERMINAL) if self.is_terminal() else self.state.to_move

    def _legal_actions(self, player: int) -> list[int]:
        return self.state.legal_actions().tolist()

    def _apply_action(self, action: int) -> None:
        self._played.play(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return self.state.notation([action])

    def is_terminal(self) -> bool:
        return self.state.outcome is not None

    def returns(self) -> list[float]:
        value = self.state.value or 0.0
        return [value] if self.state.game.players == 1 else [value, -value]

    def __str__(self) -> str:
        return str(self.state)


class Observer:
    """Observations as OpenSpiel asks for them: `tensor` is flat, `dict` has it in its shape."""

    def __init__(self, game: Game) -> None:
        shape = (game.max_row_length,) if game.planes is None else (game.planes, game.height or 0, game.width or 0)
        self.tensor = np.zeros(int(np.prod(shape)), np.float32)
        self.dict = {"observation": self.tensor.reshape(shape)}

    def set_from(self, state: MinuetState, player: int) -> None:
        if state.state.game.planes is None:
            self.tensor.fill(0.0)
            if not state.is_terminal():
                row = state.state.row()
                self.tensor[: len(row)] = row
        else:
            self.dict["observation"][:] = state.state.planes()

    def string_from(self, state: MinuetState, player: int) -> str:
        return str(state)


def _register(name: str) -> None:
    game = Game(name)
    game_type = pyspiel.GameType(
        short_name=f"minuet_{name.replace('-', '_')}",
        long_name=f"{name} of Minuet",
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM if game.players == 2 else pyspiel.GameType.Utility.GENERAL_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=game.players,
        min_num_players=game.players,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={},
    )

    # OpenSpiel frees what it was given when Python has ended already. A class outlives that, other objects do not.
    class Registered(MinuetGame):
        def __init__(self, params: dict[str, Any] | None = None) -> None:
            super().__init__(game, game_type, params)

    pyspiel.register_game(game_type, Registered)


for _name in games():
    _register(_name)
