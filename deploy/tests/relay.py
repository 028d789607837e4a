"""A slow link: a relay in the test's own process, which delivers the bytes of TCP connections late and can cut them.

It imitates the delay of a distant network and for connections that break. It loses no packets: TCP sends them again, so that a
program sees a loss as delay.
"""

from __future__ import annotations

import asyncio
import threading

# Bytes that are read at once.
PIECE = 1 << 16


class Relay:
    """Accepts connections at `host`, and connects each to `target` (host and port). Runs within a `with` statement."""

    def __init__(self, host: str, target: tuple[str, int], delay_s: float):
        self.host = host
        self.target = target
        self.delay_s = delay_s
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.open: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Relay:
        self.thread.start()
        serving = asyncio.start_server(self.connect, self.host, 0)
        self.server = asyncio.run_coroutine_threadsafe(serving, self.loop).result()
        self.address = f"{self.host}:{self.server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_error) -> None:
        self.loop.call_soon_threadsafe(self.server.close)
        self.cut()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def cut(self) -> int:
        """End all connections at once, with what is on its way in them. Return their number."""

        async def abort() -> int:
            writers = list(self.open)
            for writer in writers:
                writer.transport.abort()
            return len(writers) // 2

        return asyncio.run_coroutine_threadsafe(abort(), self.loop).result()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self.open |= both
        ways = {asyncio.create_task(self.carry(reader, far_writer)), asyncio.create_task(self.carry(far_reader, writer))}
        # The end of one direction is the end of the connection.
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for end in both:
            end.transport.abort()
        await asyncio.wait(ways)
        self.open -= both

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction of a connection until its end."""
        pieces: asyncio.Queue = asyncio.Queue()
        delivery = asyncio.create_task(self.deliver(pieces, writer))
        try:
            while (piece := await reader.read(PIECE)) and not delivery.done():
                pieces.put_nowait((self.loop.time() + self.delay_s, piece))
        except OSError:
            pass  # cut
        pieces.put_nowait(None)
        await delivery

    async def deliver(self, pieces: asyncio.Queue, writer: asyncio.StreamWriter) -> None:
        try:
            while entry := await pieces.get():
                due, piece = entry
                await asyncio.sleep(due - self.loop.time())
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # cut
