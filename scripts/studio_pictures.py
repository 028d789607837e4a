#!/usr/bin/env python3
"""Take the pictures of the studio from real runs, in a real browser.

    make pictures         # docs/pictures/learning.png and docs/pictures/studio/*.png, next to the picture of the terminal

    $(python3 scripts/python_env.py picture) scripts/studio_pictures.py --output docs/pictures

Two runs of Connect Four are made in a temporary folder: a short one with other settings, for Compare, and one whose first minute is filmed
and whose pages are pictured some minutes later. Chromium and its driver must be installed (Debian: chromium, chromium-driver).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from PIL import Image

#: Time for which the script waits for something on a page, in seconds.
PATIENCE = 120.0
#: Width of the pages in pixels of the page: cards are in three columns from here on.
WIDTH = 1104
#: Pixels of a picture of the book for one pixel of the page.
SHARPNESS = 1.5
#: Colours of a picture, and the index that is transparent in a film.
COLOURS = 255
CLEAR = 255
#: The film: height of the page, seconds between frames, and how long a frame and the first one are shown.
FILM_HEIGHT = 980
STEP = 1.5
FRAME_MS = 250
PAUSE_MS = 4000
#: Duration of the other run, in seconds.
OTHER_SECONDS = 60.0
#: Time for an analysis on the page, in seconds.
SETTLE = 8.0
#: Name of the field with an element's id.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

Pixels = NDArray[numpy.uint8]
Colours = NDArray[numpy.int32]


class Browser:
    """Chromium without a window, asked in the W3C WebDriver protocol."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        if shutil.which("chromedriver") is None:
            sys.exit("studio_pictures: there is no chromedriver; install chromium and chromium-driver")
        driver = stack.enter_context(subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True))
        stack.callback(driver.terminate)
        assert driver.stdout is not None
        found = (re.search(r"on port (\d+)\.$", line.rstrip()) for line in driver.stdout)
        port = next((match.group(1) for match in found if match), None)
        if port is None:
            sys.exit("studio_pictures: chromedriver has ended before it named its port")
        threading.Thread(target=driver.stdout.read, daemon=True).start()
        self.root = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]}
        wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
        self.root += "/" + self.ask("", {"capabilities": wanted})["sessionId"]
        stack.callback(self.ask, "", None, "DELETE")
        self.size = (WIDTH, 800, SHARPNESS)

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method or None)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"studio_pictures: the browser refuses {path}: {json.load(error)['value']['message'].splitlines()[0]}")

    def command(self, name: str, **parameters: Any) -> Any:
        """Ask in the protocol of Chromium's developer tools."""
        return self.ask("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def open(self, address: str) -> None:
        self.ask("/url", {"url": address})

    def script(self, text: str) -> Any:
        return self.ask("/execute/sync", {"script": text, "args": []})

    def wait(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + PATIENCE
        while not self.script(f"return Boolean({expression})"):
            if time.monotonic() > end:
                address, text = self.script("return [location.href, document.body.innerText]")
                sys.exit(f"studio_pictures: on {address}, {expression} never came true; the page says: {text[:300]}")
            time.sleep(0.2)

    def find(self, css: str) -> str:
        """Wait for an element and return its id."""
        self.wait(f"document.querySelector({json.dumps(css)})")
        return self.ask("/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css: str) -> None:
        self.ask(f"/element/{self.find(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        element = self.find(css)
        self.ask(f"/element/{element}/clear", {})
        self.ask(f"/element/{element}/value", {"text": text})

    def resize(self, width: int, height: int, sharpness: float) -> None:
        self.size = (width, height, sharpness)
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=sharpness, mobile=False)

    def prefer(self, theme: str, motion: str) -> None:
        features = {"prefers-color-scheme": theme, "prefers-reduced-motion": motion}
        self.command("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()])

    def picture(self) -> Image.Image:
        """The part of the page that is in sight."""
        return Image.open(io.BytesIO(base64.b64decode(self.ask("/screenshot")))).convert("RGB")

    def page(self, most: int) -> Image.Image:
        """The page from its top to its end, or as much of it as `most` pixels of the page."""
        width, height, sharpness = self.size
        self.script("scrollTo(0, 0)")
        self.resize(width, 300, sharpness)
        self.resize(width, min(most, self.script("return document.documentElement.scrollHeight")), sharpness)
        picture = self.picture()
        self.resize(width, height, sharpness)
        return picture


class Run:
    """`minuet up` at work on Connect Four."""

    def __init__(self, program: str, folder: Path, *arguments: str) -> None:
        command = [program, "up", "--game", "connect-four", "--run", str(folder), "--json", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in self.process.stdout)
        site = next((match.group() for match in found if match), None)
        if site is None:
            sys.exit("studio_pictures: minuet up has ended before it named the address of the studio")
        self.site = site
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def palette_of(picture: Image.Image) -> Colours:
    """The most frequent colours of a picture. A page has few colours, and all of its surfaces stay as they are."""
    counts = picture.getcolors(picture.width * picture.height)
    assert counts is not None
    return numpy.array([colour for _, colour in sorted(counts, reverse=True)[:COLOURS]], numpy.int32)


def indices(picture: Image.Image, palette: Colours) -> Pixels:
    """The index of the nearest colour of the palette for each pixel."""
    pixels = numpy.asarray(picture.convert("RGB"), numpy.int32)
    numbers, places = numpy.unique(pixels @ [65536, 256, 1], return_inverse=True)
    found = numpy.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], 1)
    distances = ((found[:, None] - palette[None]) ** 2).sum(2)
    return distances.argmin(1).astype(numpy.uint8)[places].reshape(pixels.shape[:2])


def changes(before: Pixels, after: Pixels) -> Pixels:
    """What `after` changes in `before`; the rest has the index CLEAR."""
    return numpy.where(before == after, numpy.uint8(CLEAR), after)


def image(pixels: Pixels, palette: Colours) -> Image.Image:
    made = Image.fromarray(pixels)
    made.putpalette(palette.astype(numpy.uint8).tobytes().ljust(768, b"\0"))
    return made


def save_film(frames: list[Image.Image], file: Path) -> None:
    """Save frames as an animated PNG. It begins with the last frame, which is all that a viewer without animation shows, and pauses there."""
    palette = palette_of(frames[-1])
    drawn = [indices(frame, palette) for frame in [frames[-1], *frames]]
    parts = [image(part, palette) for part in [drawn[0], *map(changes, drawn, drawn[1:])]]
    durations = [PAUSE_MS] + [FRAME_MS] * (len(parts) - 1)
    parts[0].save(file, save_all=True, append_images=parts[1:], duration=durations, blend=1, transparency=CLEAR, optimize=True)


def save(picture: Image.Image, file: Path) -> None:
    palette = palette_of(picture)
    image(indices(picture, palette), palette).save(file, optimize=True)


def film(browser: Browser, site: str, seconds: float) -> list[Image.Image]:
    """The overview, from its first moment on."""
    browser.prefer("light", "no-preference")
    browser.resize(WIDTH, FILM_HEIGHT, 1)
    browser.open(site)
    frames = []
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        frames.append(browser.picture())
        time.sleep(max(0.0, len(frames) * STEP - (time.monotonic() - begin)))
    return frames


def on_path(path: str, ready: str) -> Callable[[Browser, str], None]:
    """Open a page of the studio and wait until an expression is true."""

    def show(browser: Browser, site: str) -> None:
        browser.open(site + path)
        browser.wait(ready)

    return show


def replay(browser: Browser, site: str) -> None:
    """A game with surprises, eight moves before its end."""
    browser.open(site + "/games?sort=surprising")
    browser.open(browser.script("return document.querySelector('.games tbody a').href.split('?')[0]"))
    last = browser.script("return Number(document.querySelector('[data-replay]').dataset.plies)")
    browser.open(browser.script("return location.href") + f"?ply={max(0, last - 8)}")


def play_connect_four(browser: Browser, site: str) -> None:
    """A position whose moves the network and the solver judge."""
    actions = "[6,1,2,3,2,4,6,1,0,5,0,2,2,4,3,6,2,6,3,0,4,4]"
    browser.open(f"{site}/play?game=connect-four&side=both&actions={actions}")
    browser.wait("document.querySelector('[data-play]')?.dataset.at === '22'")
    browser.click("[name=analyse]")
    browser.wait("[...document.querySelectorAll('.rows tbody tr')].filter(row => /wins|draws|loses/.test(row.textContent)).length > 5")


def play_paco_sako(browser: Browser, site: str) -> None:
    """An opening with a united pair, under analysis."""
    browser.open(f"{site}/play?game=paco-sako&side=both")
    for number, turn in enumerate(["e2 e4", "d7 d5", "e4 d5"], 1):
        browser.wait(f"document.querySelector('[data-play]')?.dataset.at === '{2 * (number - 1)}'")
        browser.type("[name=text]", turn + "\ue007")
    browser.click("[name=analyse]")
    browser.wait("document.querySelector('.rows tbody tr')")
    time.sleep(SETTLE)


def play_generator(browser: Browser, site: str) -> None:
    """A problem with the first part drawn."""
    browser.open(f"{site}/play?game=generator&level=3")
    browser.wait("document.querySelector('[data-play] .parts > *')")
    browser.type("[name=text]", "0 append_dot\ue007")
    browser.wait("document.querySelector('[data-play]').dataset.at === '1'")


def learn(browser: Browser, site: str) -> None:
    """The last milestone: the newest checkpoint would change while the page is shown."""
    browser.open(site + "/learn")
    browser.wait("document.querySelectorAll('.milestones a[data-version]').length > 2")
    browser.open(browser.script("return [...document.querySelectorAll('.milestones a[data-version]')].at(-2).href"))
    browser.wait("document.querySelector('.answer meter:not([value=\"0\"])') && document.querySelector('.probe .curve')")


def search(browser: Browser, site: str) -> None:
    """The tree of a position, with one move opened."""
    play_connect_four(browser, site)
    browser.click(".open-tree button")
    browser.click("#visit-1000")
    browser.wait("document.querySelector('.visits b')?.textContent === '1,050'")
    browser.click(".nodes tbody tr:nth-child(2) a")
    browser.wait("document.querySelector('.formula .sum')")


#: Pictures of the book: name, how the page is opened, maximum height in pixels of the page.
PAGES: list[tuple[str, Callable[[Browser, str], None], int]] = [
    ("overview", on_path("/", "document.querySelector('.newest .piece')"), 1500),
    ("games", on_path("/games", "document.querySelector('.games tbody tr')"), 600),
    ("replay", replay, 900),
    ("play", play_connect_four, 900),
    ("paco-sako", play_paco_sako, 900),
    ("generator", play_generator, 900),
    ("learn", learn, 1100),
    ("matches", on_path("/matches", "document.querySelector('.ladder')"), 900),
    ("search", search, 900),
    ("compare", on_path("/compare", "document.querySelector('.curve')"), 1000),
    ("config", on_path("/config", "document.querySelector('h1')"), 800),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/minuet")
    parser.add_argument("--minutes", type=float, default=5, help="age of the run whose pages are pictured")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--film", type=float, default=66, help="duration of the film in seconds")
    parser.add_argument("--film-only", action="store_true")
    arguments = parser.parse_args()
    book = arguments.output / "studio"
    book.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        browser = Browser(stack)
        runs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not arguments.film_only:
            with Run(arguments.program, runs / "small-network", "--set", "model.filters=16"):
                time.sleep(OTHER_SECONDS)
        run = stack.enter_context(Run(arguments.program, runs / "connect-four", "--rating"))
        begin = time.monotonic()
        save_film(film(browser, run.site, arguments.film), arguments.output / "learning.png")
        if arguments.film_only:
            return
        # Learn asks a checkpoint after the other, only while its page is open.
        browser.open(run.site + "/learn")
        time.sleep(max(0.0, 60 * arguments.minutes - (time.monotonic() - begin)))
        for theme, pages in (("light", PAGES), ("dark", PAGES[:1])):
            browser.prefer(theme, "reduce")
            browser.resize(WIDTH, 800, SHARPNESS)
            for name, show, most in pages:
                show(browser, run.site)
                save(browser.page(most), book / (f"{name}.png" if theme == "light" else f"{name}-dark.png"))
        browser.prefer("light", "reduce")
        report = runs / "report.html"
        subprocess.run([arguments.program, "studio", "--run", str(runs / "connect-four"), "--report", str(report)], check=True)
        browser.open(report.as_uri())
        save(browser.page(1000), book / "report.png")


if __name__ == "__main__":
    main()
