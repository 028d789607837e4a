"""The set-up script against a real HTTP server that drops connections and serves damaged files."""

import hashlib
import io
import sys
import tempfile
import threading
import unittest
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import fetch_libraries as fetch  # noqa: E402


def wheel_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("pkg/lib/libone.so.1.2", b"one" * 100_000)
        archive.writestr("pkg/lib/libtwo.so", b"two")
        archive.writestr("pkg/lib/libtwo_other.so", b"unwanted")
        archive.writestr("pkg/include/a/b.h", b"header")
    return buffer.getvalue()


class Server:
    """Serves `body` with ranges; the first `drops` answers break off after a third of what was asked."""

    def __init__(self, body: bytes, drops: int):
        self.ranges: list[str | None] = []
        outer = self
        outer.drops = drops

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.headers.get("Range")
                outer.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                if start >= len(body):
                    self.send_error(416)
                    return
                part = body[start:]
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                if outer.drops > 0:
                    outer.drops -= 1
                    self.wfile.write(part[: len(part) // 3])
                    return
                self.wfile.write(part)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/pkg.whl"

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class FetchLibraries(unittest.TestCase):
    def setUp(self):
        self.body = wheel_bytes()
        self.wheel = fetch.Wheel(
            "pkg==1", hashlib.sha256(self.body).hexdigest(), "any",
            (("pkg/lib/libone.so", "lib"), ("pkg/lib/libtwo.so", "lib"), ("pkg/include/", "include")),
        )  # fmt: skip
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(fetch.time, "sleep"))
        self.enterContext(mock.patch.object(fetch, "show_progress"))

    def serve(self, body: bytes, drops: int = 0) -> Server:
        server = Server(body, drops)
        self.addCleanup(server.close)
        self.enterContext(mock.patch.object(fetch, "locate", return_value=server.url))
        return server

    def test_goes_on_where_it_stopped(self):
        server = self.serve(self.body, drops=2)
        archive = fetch.download(self.wheel, self.folder)
        self.assertEqual(archive.read_bytes(), self.body)
        self.assertIsNone(server.ranges[0])
        self.assertTrue(all(server.ranges[1:]))
        self.assertEqual(len(server.ranges), 3)

    def test_a_finished_part_is_not_fetched_again(self):
        self.serve(self.body)
        (self.folder / f"{self.wheel.sha256}.part").write_bytes(self.body)
        self.assertEqual(fetch.download(self.wheel, self.folder).read_bytes(), self.body)

    def test_a_damaged_file_is_refused_and_removed(self):
        self.serve(self.body[:-1] + b"x")
        with self.assertRaisesRegex(fetch.SetupError, "pinned is"):
            fetch.download(self.wheel, self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_keeps_only_what_is_named(self):
        self.serve(self.body)
        out = self.folder / "out"
        fetch.unpack(self.wheel, fetch.download(self.wheel, self.folder), out)
        files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        self.assertEqual(files, ["include/a/b.h", "lib/libone.so.1.2", "lib/libtwo.so"])

    def test_a_library_is_there_whole_or_not_at_all(self):
        library = fetch.Library("small", "1", "a test", (self.wheel,), links=(("lib/libone.so", "libone.so.1.2"),))
        self.enterContext(mock.patch.dict(fetch.os.environ, {"MINUET_CACHE": str(self.folder / "cache")}))
        self.enterContext(mock.patch.object(fetch, "THIRD_PARTY", self.folder / "third_party"))
        broken = fetch.Wheel("pkg==1", self.wheel.sha256, "any", (("pkg/missing/", "lib"),))
        self.serve(self.body)
        with self.assertRaisesRegex(fetch.SetupError, "holds no"):
            fetch.install(fetch.Library("small", "1", "a test", (broken,)), check_only=False)
        self.assertFalse((self.folder / "third_party" / "small").exists())
        self.assertTrue(fetch.install(library, check_only=False))
        self.assertEqual((self.folder / "third_party/small/lib/libone.so").read_bytes(), b"one" * 100_000)
        with mock.patch.object(fetch, "download", side_effect=AssertionError("fetched again")):
            self.assertTrue(fetch.install(library, check_only=False))


if __name__ == "__main__":
    unittest.main()
