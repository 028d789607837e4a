"""Drives `minuet uci` with python-chess, as a GUI would.

    python drive.py check MINUET MODEL                     # every command of the protocol, one game with little time
    python drive.py games MINUET MODEL COUNT SECONDS INCREMENT [JOBS] [OPTION=VALUE ...]
                                                           # games at short clocks; fails on any loss on time or illegal move

python-chess refuses illegal moves and lines that it does not understand, so whatever it takes is right.
"""

from __future__ import annotations

import concurrent.futures
import os
import random
import subprocess
import sys
import time

import chess
import chess.engine

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
# python-chess waits this long for an answer: far more than any machine needs.
TIMEOUT = 120.0


def start(minuet: str, model: str, **options: object) -> chess.engine.SimpleEngine:
    engine = chess.engine.SimpleEngine.popen_uci([minuet, "uci", "--model", model], timeout=TIMEOUT)
    engine.configure({"Provider": "cpu", **options})
    # As every GUI does before a clock runs: the network is loaded now.
    engine.ping()
    return engine


def check_options(engine: chess.engine.SimpleEngine) -> None:
    assert engine.id["name"].startswith("Minuet"), engine.id
    for name in ("Model", "Hash", "Threads", "MultiPV", "Move Overhead", "UnderPromotions", "UCI_ShowWDL", "CPuct"):
        assert name in engine.options, name


def check_analysis(engine: chess.engine.SimpleEngine) -> None:
    board = chess.Board(KIWIPETE)
    lines = engine.analyse(board, chess.engine.Limit(nodes=300), multipv=3, info=chess.engine.INFO_ALL)
    assert len(lines) == 3, lines
    assert len({line["pv"][0] for line in lines}) == 3, lines
    for line in lines:
        assert line["nodes"] == 300, line
        assert line["depth"] >= 1 and line["seldepth"] >= line["depth"], line
        assert 0 <= line["hashfull"] <= 1000 and line["nps"] > 0 and line["time"] >= 0, line
        assert abs(line["score"].relative.score(mate_score=100000)) <= 100000, line
        assert sum(line["wdl"].relative) == 1000, line
        follow = board.copy()
        for move in line["pv"]:
            assert move in follow.legal_moves, (follow.fen(), move)
            follow.push(move)

    only = [chess.Move.from_uci("a2a3"), chess.Move.from_uci("h1g1")]
    for _ in range(3):
        played = engine.play(board, chess.engine.Limit(nodes=50), root_moves=only)
        assert played.move in only, played
    # Without the limit the other moves are back.
    line = engine.analyse(board, chess.engine.Limit(nodes=200))
    assert line["nodes"] == 200, line


def check_endless(engine: chess.engine.SimpleEngine) -> None:
    with engine.analysis(chess.Board()) as analysis:
        for info in analysis:
            if info.get("nodes", 0) > 100:
                analysis.stop()
                break
        best = analysis.wait()
    assert best.move in chess.Board().legal_moves, best


def check_mates(engine: chess.engine.SimpleEngine) -> None:
    for fen, moves, mate in [
        ("6k1/5ppp/8/8/8/8/5PPP/4R1K1 w - - 0 1", ["e1e8"], 1),
        ("7k/8/8/8/8/8/R7/1R5K w - - 0 1", None, 2),
    ]:
        board = chess.Board(fen)
        found = engine.play(board, chess.engine.Limit(mate=3), info=chess.engine.INFO_ALL)
        assert found.info["score"].relative == chess.engine.Mate(mate), found.info
        assert moves is None or found.move.uci() in moves, found
    # By searching, without a request for a mate.
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/4R1K1 w - - 0 1")
    found = engine.play(board, chess.engine.Limit(nodes=50), info=chess.engine.INFO_ALL)
    assert found.move.uci() == "e1e8", found
    assert found.info["score"].relative == chess.engine.Mate(1), found.info


def check_draws_and_ends(engine: chess.engine.SimpleEngine) -> None:
    """A game may continue after a draw that nobody claimed: the engine must still move."""
    board = chess.Board()
    for uci in ["g1f3", "g8f6", "f3g1", "f6g8"] * 3:
        board.push_uci(uci)
    assert engine.play(board, chess.engine.Limit(nodes=20)).move in board.legal_moves
    for fen in ("8/8/4k3/8/8/4K3/4P3/8 w - - 120 90", "8/8/4k3/8/8/4K3/8/8 w - - 0 90"):
        board = chess.Board(fen)
        assert engine.play(board, chess.engine.Limit(nodes=20)).move in board.legal_moves
    mated = chess.Board("R5k1/8/6K1/8/8/8/8/8 b - - 0 1")
    assert engine.play(mated, chess.engine.Limit(nodes=20)).move is None


def check_under_promotions(minuet: str, model: str) -> None:
    board = chess.Board("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    for wanted, count in ((True, 5), (False, 2)):
        engine = start(minuet, model, UnderPromotions=wanted)
        lines = engine.analyse(board, chess.engine.Limit(nodes=400), multipv=10)
        promotions = {line["pv"][0].promotion for line in lines} - {None}
        assert (len(promotions) > 1) == wanted, (wanted, promotions)
        engine.quit()


def check_lines(minuet: str, model: str) -> None:
    """What no GUI sends, line by line: nothing of it may end the engine, and what follows is answered."""
    rubbish = [
        "", "  ", "hello", "go nodes many", "position", "position fen 8/8", "setoption", "setoption name Hash value lots",
        "setoption name Nothing value 1", "stop", "ponderhit", "go depth", "position startpos moves e2e5", "\x00\xff", "x" * 200_000,
        "debug on", "register later", "isready",
    ]  # fmt: skip
    asked = [
        "setoption name Provider value cpu", *rubbish,
        "position startpos moves e2e4", "go ponder wtime 60000 btime 60000", "ponderhit", "isready", "stop",
        "position startpos", "go nodes 30", "go nodes 30",
    ]  # fmt: skip
    done = subprocess.run(
        [minuet, "uci", "--model", model],
        input="\n".join(asked).encode("latin-1"), capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip
    said = done.stdout.decode()
    assert done.returncode == 0, (done.returncode, said, done.stderr)
    assert said.count("readyok") == 2, said
    # One for each `go`, also for those with numbers that cannot be read.
    assert said.count("bestmove ") == 5, said
    for part in ("error: nodes needs a whole number", "error: position: move 1: e2e5", "error: option Hash cannot be"):
        assert part in said, (part, said)


def check_without_model(minuet: str) -> None:
    for model in ("", "no/such/run"):
        done = subprocess.run(
            [minuet, "uci", "--model", model],
            input=b"uci\nisready\nposition startpos\ngo nodes 10\n", capture_output=True, timeout=TIMEOUT,
        )  # fmt: skip
        said = done.stdout.decode()
        assert "readyok" in said and "info string error:" in said and "bestmove (none)" in said, said


def check_pondering(engine: chess.engine.SimpleEngine) -> None:
    board = chess.Board()
    clock = chess.engine.Limit(white_clock=60, black_clock=60, white_inc=0.1, black_inc=0.1)
    for _ in range(6):
        played = engine.play(board, clock, ponder=True)
        board.push(played.move)
        reply = played.ponder if played.ponder in board.legal_moves else next(iter(board.legal_moves))
        board.push(reply)


class Fault(Exception):
    pass


def wall_seconds(engine: chess.engine.SimpleEngine) -> float:
    return time.monotonic()


def processor_seconds(engine: chess.engine.SimpleEngine) -> float:
    """Processor time of the engine since its start, in hundredths of a second."""
    with open(f"/proc/{engine.transport.get_pid()}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_pressed_clocks(minuet: str, model: str) -> None:
    """A game at 0.4 s and 0.03 s a move. Each move costs the engine's processor time, so other work on the machine cannot make the
    engine lose."""
    result, plies, least = play_game(minuet, model, 1, 0.4, 0.03, {}, clock=processor_seconds)
    # An untrained network may be mated early, and the game must be long enough to press the clock.
    assert plies > 8, (result, plies)
    assert least < 0.4, "no move took time"


def play_game(
    minuet: str, model: str, number: int, seconds: float, increment: float, options: dict[str, object], clock=wall_seconds
) -> tuple[str, int, float]:  # fmt: skip
    """One game of the engine against itself, after a random opening of an even number of moves. A clock runs from the moment the
    position is sent until the move is there; `clock` reads the time of an engine."""
    draw = random.Random(number)
    board = chess.Board()
    while len(board.move_stack) < 6:
        board.push(draw.choice(list(board.legal_moves)))
        if board.is_game_over():
            board = chess.Board()
    engines = [start(minuet, model, **options) for _ in range(2)]
    clocks = [seconds, seconds]
    least = seconds
    try:
        while not board.is_game_over(claim_draw=False) and len(board.move_stack) < 400:
            side = 0 if board.turn else 1
            limit = chess.engine.Limit(
                white_clock=clocks[0], black_clock=clocks[1], white_inc=increment, black_inc=increment
            )
            began = clock(engines[side])
            played = engines[side].play(board, limit, game=number)
            clocks[side] -= clock(engines[side]) - began
            least = min(least, clocks[side])
            if clocks[side] < 0:
                raise Fault(f"game {number}: {'WB'[side]} lost on time by {-clocks[side]:.3f} s at ply {len(board.move_stack)}")
            clocks[side] += increment
            if played.move not in board.legal_moves:
                raise Fault(f"game {number}: illegal {played.move} in {board.fen()}")
            board.push(played.move)
    finally:
        for engine in engines:
            engine.quit()
    return board.result(claim_draw=False), len(board.move_stack), least


def games(minuet: str, model: str, count: int, seconds: float, increment: float, jobs: int, options: dict[str, object]) -> int:
    faults, results, plies, least = [], {}, 0, seconds
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = [pool.submit(play_game, minuet, model, n, seconds, increment, options) for n in range(count)]
        for done in concurrent.futures.as_completed(asked):
            try:
                result, length, spare = done.result()
                results[result] = results.get(result, 0) + 1
                plies += length
                least = min(least, spare)
            except (Fault, chess.engine.EngineError) as fault:
                faults.append(str(fault))
    print(f"{count} games at {seconds} s + {increment} s, {jobs} at once: {plies} plies, {results}, least time left {least:.3f} s")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def check(minuet: str, model: str) -> int:
    engine = start(minuet, model, UCI_ShowWDL=True, Hash=16)
    check_options(engine)
    check_analysis(engine)
    check_endless(engine)
    check_mates(engine)
    check_draws_and_ends(engine)
    check_pondering(engine)
    engine.quit()
    check_under_promotions(minuet, model)
    check_lines(minuet, model)
    check_without_model(minuet)
    check_pressed_clocks(minuet, model)
    return 0


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "check":
        sys.exit(check(*rest))
    minuet, model, count, seconds, increment, *more = rest
    jobs = int(more[0]) if more and "=" not in more[0] else 1
    options = dict(word.split("=", 1) for word in more if "=" in word)
    sys.exit(games(minuet, model, int(count), float(seconds), float(increment), jobs, options))
