"""Games of OpenSpiel as games of one's own: all that fit, against OpenSpiel; a run of one."""

import json
import random
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyspiel
from test_own_run import Run, minuet

from minuet.own import Adapter, observe
from minuet.source import Source, SourceError

#: Actions of a game that is compared.
COMPARED = 60


def planes_of(row, adapter):
    """Return the planes of which a row was made."""
    rows, entries = adapter.rows, adapter.layout["entries"]
    planes = np.zeros((rows.shape[0], rows.squares))
    starts = np.concatenate([rows.first, [rows.planes - 2]])
    for index in row[:entries]:
        at, square = divmod(index, rows.squares)
        if at < rows.planes - 2:
            which = int(np.searchsorted(starts, at, side="right")) - 1
            planes[rows.sparse[which], square] = (at - rows.first[which] + 1) / rows.factors[which]
    for plane, factor, value in zip(rows.constant, rows.constant_factors, row[entries:], strict=True):
        planes[plane] = value / factor
    return planes.reshape(rows.shape)


class FromOpenSpiel(unittest.TestCase):
    def test_every_game_that_fits_is_that_of_openspiel(self):
        fitting = []
        for kind in pyspiel.registered_games():
            name = kind.short_name
            try:
                # `efg_game` ends the process without a file; Minuet's own games are in OpenSpiel after other tests.
                source = None if name == "efg_game" or name.startswith("minuet_") else Source.load(f"openspiel:{name}")
            except SourceError:
                continue
            if source is not None:
                fitting.append(name)
                with self.subTest(name):
                    self.compare(pyspiel.load_game(name), Adapter(source.rules, source))
        some = {"amazons", "breakthrough", "chess", "clobber", "cliff_walking", "connect_four", "hex", "mancala", "nim", "oware", "shogi", "y"}
        self.assertLessEqual(some, set(fitting))
        self.assertGreaterEqual(len(fitting), 30)

    def compare(self, game, adapter):
        draws, twin = random.Random(5), game.new_initial_state()
        adapter.describe(observe(adapter, 1, games=5))
        answer = adapter.start()
        for _ in range(COMPARED):
            state, to_move, value, legal, row = answer
            if game.num_players() == 2:
                self.assertEqual(value, twin.returns()[0] if twin.is_terminal() else None)
            if twin.is_terminal():
                break
            self.assertEqual((to_move, legal), (twin.current_player(), sorted(twin.legal_actions())))
            seen = np.asarray(twin.observation_tensor(twin.current_player()))
            planes = adapter.planes(state, [])
            mover = planes[-1].size * to_move if game.num_players() == 2 else 0
            self.assertAlmostEqual(planes.sum(), seen.sum() + mover, places=3)
            np.testing.assert_allclose(planes_of(row, adapter), planes, atol=1e-3)
            self.assertEqual(adapter.action_text(state, legal[0]), twin.action_to_string(legal[0]))
            action = draws.choice(legal)
            answer = adapter.play(state, action)
            twin.apply_action(action)

    def test_what_does_not_fit_is_refused_with_the_reason(self):
        for name, reason in (
            ("kuhn_poker", "chance plays a part"),
            ("phantom_ttt", "does not see everything"),
            ("oshi_zumo", "act at the same time"),
            ("morpion_solitaire", "does not show its states as numbers"),
            ("no_such_game", "no_such_game"),
        ):
            with self.subTest(name), self.assertRaisesRegex(SourceError, reason):
                Source.load(f"openspiel:{name}")

    def test_parameters_are_part_of_the_name(self):
        for text, name in (
            ("openspiel:hex(board_size=5)", "openspiel-hex-board-size-5"),
            ("openspiel:breakthrough(rows=6,columns=6)", "openspiel-breakthrough-columns-6-rows-6"),
        ):
            self.assertEqual(Adapter(Source.load(text).rules).name, name)
        long = Adapter(Source.load("openspiel:go(board_size=9,komi=6.5,max_game_length=50)").rules).name
        self.assertRegex(long, "^openspiel-go-board-size-9[a-z0-9-]*-[0-9a-f]{8}$")
        self.assertLessEqual(len(long), 40)

    def test_a_game_of_openspiel_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run("openspiel:breakthrough(rows=5,columns=4)", cwd=folder)
            self.addCleanup(run.kill)
            started = run.wait_for("started")
            self.assertEqual(started["game"], "openspiel-breakthrough-columns-4-rows-5")
            run.wait_for("checkpoint", lambda event: event["step"] > 0)
            run.stop()
            listed = minuet("games", "list", "--json", "--limit", "1", "--run", started["run"])
            [game] = [json.loads(line) for line in listed.stdout.splitlines()]
            shown = minuet("games", "show", game["id"], "openspiel:breakthrough(rows=5,columns=4)", cwd=folder)
            # The last line has all actions but the last one.
            actions = json.loads(re.findall(r"\[[\d,]*\]$", shown.stdout, re.MULTILINE)[-1])
            state = pyspiel.load_game("breakthrough(rows=5,columns=4)").new_initial_state()
            for action in actions:
                self.assertIn(action, state.legal_actions())
                state.apply_action(action)
            self.assertEqual(len(actions), game["positions"] - 1)
            self.assertTrue((Path(folder) / "runs" / started["game"]).is_dir())


if __name__ == "__main__":
    unittest.main()
