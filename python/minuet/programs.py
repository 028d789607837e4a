"""The programs of Minuet that an installed wheel has, and the two native libraries that they load.

ONNX Runtime and libtorch are those of the packages `onnxruntime-openvino` and `torch` in this environment if they have the versions that
Minuet is built for, else those in the cache. `up` and the learner fetch what is in neither.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path, PurePosixPath

from . import fetch_libraries as libraries

#: Folder of the programs; the package of a clone has none.
FOLDER = Path(__file__).parent / "bin"
#: Commands that train.
TRAINING = ("up", "minuet-learner")


class MissingError(Exception):
    """A program or a library is not there and cannot be fetched."""


def run(name: str, words: list[str]) -> int:
    """Replace this process by a program. Return 1 if it cannot be started. Raises MissingError if a library cannot be fetched."""
    program = FOLDER / name
    prepare([name, *words])
    try:
        os.execv(program, [name, *words])
    except OSError as error:
        print(f"minuet: cannot start {program}: {error.strerror}", file=sys.stderr)
        return 1


def prepare(words: list[str]) -> None:
    """Name the programs and the libraries in the environment of this process and of those that it starts."""
    if FOLDER.is_dir():
        os.environ.setdefault("MINUET_PROGRAMS", str(FOLDER))
    trains = any(word in TRAINING for word in words[:2]) and not {"-h", "--help", "-V", "--version", "--probe"} & set(words)
    if not os.environ.get("ORT_DYLIB_PATH"):
        runtime = folder_of("ort", fetches=trains)
        if runtime is not None:
            _, name = libraries.LIBRARIES["ort"].links[0]
            os.environ["ORT_DYLIB_PATH"] = str(runtime / name)
    torch = folder_of("libtorch", fetches=trains)
    if torch is not None:
        # The loader searches for the learner's library before any of the program runs.
        places = [str(torch), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(places)


def folder_of(name: str, fetches: bool) -> Path | None:
    """Return the folder of a library's files. None if it is not there, or raises MissingError if it cannot be fetched."""
    library = libraries.LIBRARIES[name]
    package = library.wheels[0]
    project, _, version = package.requirement.partition("==")
    try:
        installed = metadata.distribution(project)
        # PyTorch for CPUs alone is 2.11.0+cpu.
        if installed.version.partition("+")[0] == version:
            place = Path(str(installed.locate_file(PurePosixPath(package.keep[0][0]).parent)))
            if place.is_dir():
                return place.resolve()
    except metadata.PackageNotFoundError:
        pass
    try:
        if not fetches and not libraries.is_fetched(library):
            return None
        return libraries.fetch(library) / "lib"
    except (libraries.SetupError, OSError) as error:
        raise MissingError(f"{error}\n  or install {package.requirement} next to Minuet") from error
