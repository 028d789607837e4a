#!/bin/sh
# Runs rules, search, store and command line of a build on an emulated processor of 2008, which has x86-64-v2 and nothing newer. Needs
# Debian's qemu-user. Networks are not run: the libraries that run them choose their instructions by themselves.
#
#   scripts/try_old_processor.sh [PROGRAMS]     PROGRAMS: folder of the programs (default: target/release)
set -eu
programs=${1:-$(dirname "$0")/../target/release}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
old() { qemu-x86_64 -cpu Nehalem "$programs/$@"; }

old minuet --version
for game in paco-sako chess othello go:9 hex:5 connect-four; do
    old minuet perft --game "$game" --depth 3 --json >/dev/null
done
echo '{"id":1,"game":"chess","start":null,"actions":["e2e4"]}' | old minuet rules | grep -q '"error":null'
# A match searches; an import stores games and an export reads them.
old minuet arena --game connect-four uct,visits=50 random --games 4 >/dev/null
old minuet config --game connect-four >"$folder/run.toml"
echo '{"actions": [0, 1, 0, 1, 0, 1, 0], "result": "first"}' >"$folder/games.jsonl"
old minuet games import "$folder/games.jsonl" --run "$folder" >/dev/null
old minuet games export "$folder/games.minuet" --run "$folder" >/dev/null
old minuet games list --run "$folder"
echo "try_old_processor: $(qemu-x86_64 --version | head -n 1): all commands succeed"
