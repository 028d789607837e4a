"""The wheel's description and its packing, without a build."""

import csv
import io
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import fetch_libraries  # noqa: E402
import wheel  # noqa: E402


class Wheel(unittest.TestCase):
    def test_it_needs_the_onnx_runtime_that_is_pinned(self):
        self.assertIn(fetch_libraries.LIBRARIES["ort"].wheels[0].requirement, wheel.project()["dependencies"])

    def test_every_file_is_recorded_and_programs_can_be_executed(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "a.whl"
            wheel.pack({"a/b.py": b"x = 1\n", "a/bin/c": b"#!/bin/sh\n"}, {"a/bin/c"}, "a.dist-info/RECORD", out)
            with zipfile.ZipFile(out) as archive:
                modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
                recorded = [row[0] for row in csv.reader(io.StringIO(archive.read("a.dist-info/RECORD").decode()))]
        self.assertEqual(modes, {"a/b.py": 0o644, "a/bin/c": 0o755, "a.dist-info/RECORD": 0o644})
        self.assertEqual(recorded, list(modes))

    def test_the_newest_symbol_names_the_glibc(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            program.write_bytes(b"\0GLIBC_2.2.5\0GLIBC_2.30\0GLIBC_2.14\0")
            self.assertEqual(wheel.oldest_glibc([program]), "2.30")
            program.write_bytes(b"nothing")
            self.assertRaises(SystemExit, wheel.oldest_glibc, [program])


if __name__ == "__main__":
    unittest.main()
