"""The script that makes Python environments, if one cannot be made."""

import contextlib
import ctypes
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import python_env  # noqa: E402


class PythonEnv(unittest.TestCase):
    def setUp(self):
        self.cache = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"MINUET_CACHE": str(self.cache)}))
        self.enterContext(mock.patch.object(sys, "argv", ["python_env.py", "chess"]))

    def run_main(self) -> tuple[int, str]:
        """Return the exit code and the text on stderr."""
        with contextlib.redirect_stderr(io.StringIO()) as stderr, contextlib.redirect_stdout(io.StringIO()):
            code = python_env.main()
        return code, stderr.getvalue()

    def leftovers(self) -> list[Path]:
        return [path for path in (self.cache / "python").iterdir() if not path.name.startswith(".")]

    def test_a_python_without_ensurepip_is_named_and_leaves_nothing(self):
        def create(folder, with_pip):
            # venv.create leaves a folder behind when ensurepip fails.
            (folder / "bin").mkdir(parents=True)
            raise subprocess.CalledProcessError(1, ["python3", "-m", "ensurepip"])

        self.enterContext(mock.patch.object(python_env.venv, "create", create))
        code, stderr = self.run_main()
        self.assertEqual(code, python_env.UNREACHABLE)
        self.assertIn("install python3-venv", stderr)
        self.assertEqual(self.leftovers(), [])

    def test_an_index_that_cannot_be_reached_is_named_and_leaves_nothing(self):
        def run(_command, stdout, stderr):
            stderr.write("WARNING: retrying\nERROR: no matching distribution\n")
            return subprocess.CompletedProcess([], 1)

        self.enterContext(mock.patch.object(python_env.venv, "create", lambda folder, with_pip: folder.mkdir()))
        self.enterContext(mock.patch.object(python_env.subprocess, "run", run))
        code, stderr = self.run_main()
        self.assertEqual(code, python_env.UNREACHABLE)
        self.assertIn("cannot be fetched: ERROR: no matching distribution", stderr)
        self.assertEqual(self.leftovers(), [])

    def test_absent_gpu_libraries_are_replaced_and_present_ones_stay(self):
        libraries = self.cache / "site-packages" / "torch" / "lib"
        real = self.cache / "site-packages" / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
        for folder in (libraries, real.parent):
            folder.mkdir(parents=True)
        real.touch()
        names = b"\0libcublas.so.13\0libcudart.so.13\0libnccl.so.2\0libcuda.so.1\0libm.so.6\0"
        (libraries / "libtorch_cuda.so").write_bytes(b"head" + names + b"tail")
        python_env.replace_gpu_libraries(libraries)
        made = {path.name for path in libraries.iterdir()}
        self.assertEqual(made, {"libtorch_cuda.so", "libcublas.so.13", "libnccl.so.2"})
        ctypes.CDLL(str(libraries / "libnccl.so.2"))


if __name__ == "__main__":
    unittest.main()
