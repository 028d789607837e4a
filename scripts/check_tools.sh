#!/bin/sh
# Reports tools that are missing on this machine, and how to install them, before anything is fetched or built.
set -u

missing=0

lacks() {
    printf 'setup: %s\n' "$1" >&2
    missing=1
}

command -v cargo >/dev/null 2>&1 || lacks 'cargo is missing: install Rust (rustup), 1.95 or newer'
command -v python3 >/dev/null 2>&1 || lacks 'python3 is missing (Debian, Ubuntu: apt install python3)'
command -v c++ >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 ||
    lacks 'a C++ compiler is missing (Debian, Ubuntu: apt install g++)'
command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 ||
    lacks 'a C compiler is missing (Debian, Ubuntu: apt install gcc)'
if command -v python3 >/dev/null 2>&1 && ! python3 -m pip --version >/dev/null 2>&1; then
    lacks 'python3 has no pip (Debian, Ubuntu: apt install python3-pip)'
fi
# Only some tests need it; they print that they are skipped.
if command -v python3 >/dev/null 2>&1 && ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo 'setup: without python3-venv some tests are skipped (Debian, Ubuntu: apt install python3-venv)' >&2
fi
# The scripts of the tests and lints read TOML.
if command -v python3 >/dev/null 2>&1 && ! python3 -c 'import tomllib' >/dev/null 2>&1; then
    echo 'setup: make test and make lint need Python 3.11 or newer; make up does not' >&2
fi

if command -v cargo >/dev/null 2>&1; then
    have=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    need=$(sed -n 's/^rust-version = "1\.\([0-9]*\)"/\1/p' Cargo.toml)
    if [ -n "$have" ] && [ -n "$need" ] && [ "$have" -lt "$need" ]; then
        lacks "cargo 1.$have is too old, 1.$need is needed: rustup update"
    fi
fi

# The variable RUSTFLAGS replaces the flags in .cargo/config.toml, and the learner would not find libtorch.
if [ -n "${RUSTFLAGS:-}" ]; then
    lacks 'RUSTFLAGS is set and would replace the linker flags of this project: unset RUSTFLAGS'
fi

exit $missing
