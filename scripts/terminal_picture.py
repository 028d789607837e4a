#!/usr/bin/env python3
"""Draw what a command shows on a terminal, as an SVG file.

    make pictures         # docs/pictures/make-up.svg: a minute of `minuet up`

    $(python3 scripts/python_env.py picture) scripts/terminal_picture.py --seconds 60 --output up.svg -- \\
        target/release/minuet up --game connect-four --run /tmp/picture

The command runs in a pseudo-terminal. After SECONDS the screen is drawn as it is then, and the command is interrupted
(SIGINT) and awaited.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from html import escape
from pathlib import Path

import pyte
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

# One theme that is readable on light and on dark pages.
THEME = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [(60, 64, 72), (224, 108, 117), (152, 195, 121), (229, 192, 123), (97, 175, 239), (198, 120, 221), (86, 182, 194), (220, 223, 228)],
)
# As rich's own format, without the fonts that it loads from elsewhere.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#181a1f"/>
<g transform="translate(9, 9)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run(command: list[str], seconds: float, columns: int, rows: int) -> pyte.Screen:
    """Run `command` in a pseudo-terminal and return its screen after `seconds`."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                stream.feed(os.read(terminal, 65536))
            except OSError:  # the command has ended
                break
    drawn = Screen.copy(screen)
    os.kill(child, signal.SIGINT)
    while True:  # a full pseudo-terminal would keep the command from ending
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:
            break
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGINT):
        sys.exit(f"{command[0]} failed: {os.waitstatus_to_exitcode(status)}")
    return drawn


class Screen:
    """The characters of a screen with their styles."""

    def __init__(self, lines: list[Text]) -> None:
        self.lines = lines

    @staticmethod
    def copy(screen: pyte.Screen) -> "Screen":
        lines = []
        for row in range(screen.lines):
            text = Text()
            for column in range(screen.columns):
                cell = screen.buffer[row][column]
                style = [name for name in ("bold", "italics") if getattr(cell, name)]
                if cell.fg != "default":
                    style.append(f"#{cell.fg}" if len(cell.fg) == 6 and cell.fg.isalnum() and any(c.isdigit() for c in cell.fg) else cell.fg.replace("brown", "yellow").replace("bright", "bright_"))
                text.append(cell.data, " ".join(style).replace("italics", "italic"))
            text.rstrip()
            lines.append(text)
        while lines and not lines[-1].plain.strip():
            lines.pop()
        return Screen(lines)


def draw(screen: Screen, title: str, columns: int) -> str:
    """The screen as an SVG document."""
    console = Console(record=True, width=columns, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    for line in screen.lines:
        console.print(line, no_wrap=True, overflow="crop", highlight=False)
    return console.export_svg(title=title, theme=THEME, code_format=FORMAT.replace("TITLE", escape(title)), unique_id="terminal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="when the picture is taken, in seconds")
    parser.add_argument("--columns", type=int, default=110)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--title", default="minuet up")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    screen = run(arguments.command, arguments.seconds, arguments.columns, arguments.rows)
    if not screen.lines:
        sys.exit("the screen is empty")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(draw(screen, arguments.title, arguments.columns))


if __name__ == "__main__":
    main()
