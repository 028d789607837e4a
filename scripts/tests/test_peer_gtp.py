"""The Go Text Protocol of scripts/peer_gtp.py, without a network."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from peer_trainer.gtp import Refused, Session, action_of, vertex_of  # noqa: E402


class FirstPoint:
    """A player that puts its stone on the first empty point."""

    size = 9

    def __init__(self):
        self.clear()

    def clear(self):
        self.moves = []

    def set_komi(self, komi):
        if komi != 7.5:
            raise Refused("another komi")

    def play(self, colour, action):
        if action in [taken for _, taken in self.moves]:
            raise Refused("illegal move")
        self.moves.append((colour, action))

    def choose(self, colour):
        taken = [action for _, action in self.moves]
        self.moves.append((colour, next(action for action in range(82) if action not in taken)))
        return self.moves[-1][1]

    def undo(self):
        self.moves.pop()

    def score(self):
        return len(self.moves) - 7.5


class Protocol(unittest.TestCase):
    def test_points_are_those_of_the_protocol(self):
        # Go skips the letter I, so that J is the ninth file.
        points = {"A1": 0, "H1": 7, "J1": 8, "A2": 9, "J9": 80, "pass": 81}
        for vertex, action in points.items():
            self.assertEqual((action_of(vertex, 9), vertex_of(action, 9)), (action, vertex))
        self.assertEqual(action_of("j9", 9), 80)
        self.assertEqual(action_of("PASS", 9), 81)
        for vertex in ("I1", "K1", "A10", "A0", "A", "4D", "D-1", ""):
            with self.assertRaises(Refused, msg=vertex):
                action_of(vertex, 9)

    def test_commands_are_answered_by_the_protocol(self):
        player = FirstPoint()
        talk = {
            "protocol_version": "= 2",
            "7 name": "=7 first",
            "boardsize 9": "=",
            "boardsize 13": "? unacceptable size",
            "8 komi 6.5": "?8 another komi",
            "komi 7.5 # as in training": "=",
            "play black a1": "=",
            "play W A1": "? illegal move",
            "genmove w": "= B1",
            "play b pass": "=",
            "final_score": "= W+4.5",
            "undo": "=",
            "play brown a3": "? syntax error",
            "play b i3": "? syntax error",
            "play b": "? syntax error",
            "komi many": "? syntax error",
            "9 time_left b 3 0": "?9 unknown command",
            "known_command genmove": "= true",
            "known_command time_left": "= false",
            "quit": "=",
        }
        lines = ["", "# a comment", *talk, "name"]
        answers = list(Session(player, "first").answers(lines))
        self.assertEqual([answer.strip() for answer in answers], list(talk.values()))
        self.assertTrue(all(answer.endswith("\n\n") for answer in answers))
        self.assertEqual(player.moves, [(0, 0), (1, 1)])


if __name__ == "__main__":
    unittest.main()
