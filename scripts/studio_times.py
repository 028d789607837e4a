#!/usr/bin/env python3
"""Measure how fast the studio answers a person, in a real browser.

    $(python3 scripts/python_env.py picture) scripts/studio_times.py --program target/release/minuet

The studio shows no run and plays with the shipped networks, on one core. Printed are median and maximum in milliseconds: of the first contentful
paint of each page, of the time from a move to the answer of an opponent with 400 visits, and of the time until the analysis has its first
line. The first of the rounds loads the network; later ones find some evaluations in its cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
from collections.abc import Callable

from studio_pictures import Browser

#: Pages that need no run.
PAGES = ("/", "/play?game=connect-four", "/play?game=paco-sako", "/play?game=chess")
ROUNDS = 9
#: Games with a shipped network, and a first move.
GAMES = {"connect-four": "4", "othello": "d3", "paco-sako": "e2 e4"}
VISITS = 400

#: Waits in the page until `holds` is true; gives the milliseconds since `act` was called.
TIMED = """
const act = () => {{ {act} }}, holds = () => {holds};
return new Promise(done => {{
  const begin = performance.now();
  const look = () => holds() ? done(performance.now() - begin) : requestAnimationFrame(look);
  act();
  look();
}});
"""


def paint(browser: Browser, address: str) -> float:
    browser.open("about:blank")
    browser.open(address)
    browser.wait("performance.getEntriesByName('first-contentful-paint').length")
    return browser.script("return performance.getEntriesByName('first-contentful-paint')[0].startTime")


def answer(browser: Browser, site: str, game: str, move: str) -> float:
    """Time from a move to the opponent's answer."""
    browser.open(f"{site}/play?game={game}&side=first&opponent=shipped&visits={VISITS}")
    browser.wait("document.querySelector('[data-play]')?.dataset.at === '0'")
    act = f"const field = document.querySelector('[name=text]'); field.value = {json.dumps(move)}; field.form.requestSubmit();"
    holds = f"Number(document.querySelector('[data-play]').dataset.at) > {len(move.split())}"
    return browser.script(TIMED.format(act=act, holds=holds))


def first_line(browser: Browser, site: str, game: str) -> float:
    """Time from the switch of the analysis to its first line."""
    browser.open(f"{site}/play?game={game}&side=both")
    browser.wait("document.querySelector('[data-play]')?.dataset.at === '0'")
    holds = "document.querySelector('.rows tbody tr') !== null"
    return browser.script(TIMED.format(act="document.querySelector('[name=analyse]').click();", holds=holds))


def timed(measure: Callable[[], float]) -> dict[str, float]:
    rounds = [measure() for _ in range(ROUNDS)]
    return {"median": round(statistics.median(rounds), 1), "maximum": round(max(rounds), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/minuet")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        browser = Browser(stack)
        one_core = lambda: os.sched_setaffinity(0, {0})  # noqa: E731
        studio = stack.enter_context(subprocess.Popen([arguments.program, "studio"], stdout=subprocess.PIPE, text=True, preexec_fn=one_core))
        stack.callback(studio.send_signal, signal.SIGINT)
        assert studio.stdout is not None
        site = studio.stdout.readline().strip().rstrip("/")
        for page in PAGES:
            print(json.dumps({"page": page, "first_paint_ms": timed(lambda page=page: paint(browser, site + page))}), flush=True)
        for game, move in GAMES.items():
            figures = {
                "game": game,
                "first_line_ms": timed(lambda game=game: first_line(browser, site, game)),
                "answer_ms": timed(lambda game=game, move=move: answer(browser, site, game, move)),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
