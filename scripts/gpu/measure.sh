#!/usr/bin/env bash
# Measure Minuet on a machine with an NVIDIA GPU, a driver (580 or newer), bash, tar and python3, without a network.
#
#   scripts/gpu/measure.sh --pack DIR   on a machine with a network, after `make build` and
#                                       `cargo build --release --locked -p bench`: fetch the CUDA libraries of the GPU
#                                       images, and write everything to DIR in pieces of at most 60 MiB
#   cat DIR/minuet.tar.* | tar -x && scripts/gpu/measure.sh
#                                       in an empty folder on the machine with the GPU: measure for half an hour
#   scripts/gpu/measure.sh --dry-run    pack, unpack and measure on the CPU, with tiny networks, in two minutes
#
# Results are in the folder results/: the output of each command, tables.md made of it, and figures.jsonl, which
# `minuet plan --measured results/figures.jsonl` reads. A command that fails is named in the tables and does not stop
# the others; the exit status is then 1. MINUET_BINARIES names the folder of the programs (default: target/release),
# MINUET_RESULTS the one that a dry run copies its results to (default: target/gpu-dry-run).
set -euo pipefail
cd "$(dirname "$0")/../.."
binaries=${MINUET_BINARIES:-target/release}
minuet=$binaries/minuet
results=${MINUET_RESULTS:-target/gpu-dry-run}

# Installs the libraries of a file of requirements into one flat folder.
install_wheels() { # requirements, folder
    python3 -m pip install --quiet --no-compile --no-deps --require-hashes --only-binary :all: \
        --target "$2/wheels" --requirement "$1"
    find "$2/wheels" -name '*.so*' -type f ! -name '*pybind*' -exec mv -t "$2" {} +
    for library in "$2"/libonnxruntime.so.*; do [ ! -e "$library" ] || mv "$library" "$2/libonnxruntime.so"; done
    rm -r "$2/wheels"
    touch "$2/complete"
}

# Writes programs and libraries to a folder, in pieces.
pack() { # folder, device
    local parts=(scripts/gpu/measure.sh) name
    for name in '' -actor -bench -inference-server -learner -replay-store; do parts+=("$minuet$name"); done
    if [ "$2" = cuda ]; then
        for name in inference learner; do
            mkdir -p "third_party/gpu/$name"
            [ -e "third_party/gpu/$name/complete" ] ||
                install_wheels "deploy/docker/cuda-$name.txt" "third_party/gpu/$name"
        done
        parts+=(third_party/gpu)
    else
        parts+=(third_party/ort third_party/libtorch/lib)
    fi
    mkdir -p "$1"
    # third_party holds links into the user's cache: --dereference packs the files.
    tar --create --dereference "${parts[@]}" |
        split --bytes=60M --numeric-suffixes --suffix-length=3 - "$1/minuet.tar."
    echo "wrote $(find "$1" -name 'minuet.tar.*' | wc -l) pieces to $1; copy them, then:" \
        "cat minuet.tar.* | tar -x && scripts/gpu/measure.sh" >&2
}

case "${1:-}" in
    "") device=cuda ;;
    --cpu) device=cpu ;;
    --pack) pack "${2:?name a folder for the pieces}" cuda; exit ;;
    --dry-run)
        place=$(mktemp -d)
        trap 'rm -rf "$place"' EXIT
        pack "$place/pieces" cpu
        mkdir "$place/machine"
        cat "$place"/pieces/minuet.tar.* | tar -x -C "$place/machine"
        rm -r "$place/pieces"
        status=0
        "$place/machine/scripts/gpu/measure.sh" --cpu || status=$?
        rm -rf "$results"
        cp -r "$place/machine/results" "$results"
        exit "$status" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' scripts/gpu/measure.sh >&2; exit 2 ;;
esac

rm -rf results
mkdir results
export ORT_DYLIB_PATH=$PWD/third_party/ort/lib/libonnxruntime.so
if [ "$device" = cuda ]; then
    game=paco-sako networks=4x64,6x64,10x128,20x256 batches='64 256 1024' loads=16x256,64x16
    time=(--rounds 3 --seconds 3)
    samples=512 steps=(--rounds 3 --seconds 5) window=500000 up=10m providers=cuda play=(--seconds 60)
    gpu=$PWD/third_party/gpu
    export ORT_DYLIB_PATH=$gpu/inference/libonnxruntime.so LD_LIBRARY_PATH=$gpu/inference
    # The learner needs libraries of other versions than ONNX Runtime.
    [ -e "$minuet-learner.program" ] || mv "$minuet-learner" "$minuet-learner.program"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$gpu/learner" "$PWD/$minuet-learner.program" \
        > "$minuet-learner"
    chmod +x "$minuet-learner"
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader > results/machine.txt ||
        { echo 'nvidia-smi does not run: install the NVIDIA driver, or use --dry-run' >&2; exit 1; }
else
    game=connect-four networks=1x16,2x16 batches='8 16' loads=2x8 time=(--rounds 1 --seconds 0.2)
    samples=32 steps=(--rounds 1 --seconds 0.2) window=20000 up=20s providers=cpu play=(--warm-up 1 --seconds 2)
    echo 'no GPU: a dry run on the CPU with tiny networks, whose figures say nothing' > results/machine.txt
fi
{ grep -m 1 'model name' /proc/cpuinfo; echo "cores: $(nproc)"; } >> results/machine.txt

# Runs a command; keeps its output in results/NAME.json and its messages in results/NAME.log.
measure() { # name, command
    local name=$1
    shift
    echo "$(date +%T) $name: $*" >&2
    "$@" > "results/$name.json" 2> "results/$name.log" ||
        echo "$name (exit status $?): $(tail -n 1 "results/$name.log")" >> results/failed.txt
}

measure doctor "$minuet" doctor --json
for batch in $batches; do
    measure "inference-$batch" "$minuet" bench inference --game "$game" --providers "$providers" --batch "$batch" \
        --networks "$networks" --loads "$loads" --overload 2 --queue 16384 "${time[@]}" --json
done
printf '[inference]\nfp16 = true\n' > results/fp16.toml
MINUET_CONFIG=results/fp16.toml measure inference-fp16 "$minuet" bench inference --game "$game" \
    --providers "$providers" --batch "$batch" --networks "$networks" --loads "$loads" --overload 0 "${time[@]}" --json
for network in ${networks//,/ }; do
    measure "training-$network" "$minuet" bench training --game "$game" --device "$device" --blocks "${network%x*}" \
        --filters "${network#*x}" --batch "$samples" "${steps[@]}" --json
    measure "selfplay-$network" "$minuet" bench selfplay --game "$game" --blocks "${network%x*}" \
        --filters "${network#*x}" --set "inference.provider=$providers" "${play[@]}" --json
done
measure replay "$minuet" bench replay --game "$game" "${steps[@]}" --window "$window" --json
# A GPU that is hidden must be an error, not a fall-back to the CPU.
if CUDA_VISIBLE_DEVICES='' "$minuet" bench inference --game "$game" --providers cuda --networks 1x8 --loads 1x8 \
    --overload 0 --rounds 1 --seconds 0.1 --json > results/hidden.json 2> results/hidden.log; then
    echo 'hidden: the server started without a GPU' >> results/failed.txt
fi
measure up "$minuet" up --game "$game" --run results/run --for "$up" --no-studio --json \
    --set "inference.provider=$providers" --set "learner.device=$device"
rm -rf results/run
cat "results/inference-$batch.json" results/{training-*,selfplay-*,replay}.json > results/figures.jsonl

python3 - <<'PYTHON' > results/tables.md
import json, pathlib

def lines(pattern):
    for path in sorted(pathlib.Path("results").glob(pattern)):
        for line in path.read_text().splitlines():
            yield path.stem, json.loads(line)

def table(title, columns, rows):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print("|", " | ".join("–" if cell is None else f"{cell:,.2f}" if isinstance(cell, float) and cell < 100
                              else f"{cell:,.0f}" if isinstance(cell, float) else str(cell) for cell in row), "|")

print("# Measured by scripts/gpu/measure.sh\n\n```\n" + pathlib.Path("results/machine.txt").read_text() + "```")
inference = [(report, found) for _, report in lines("inference-*.json") for found in report["figures"]]
inference.sort(key=lambda pair: (pair[0]["batch"], pair[1]["provider"]))
table("Evaluations a second", ["network", "provider", "batch", "load", "served", "direct", "served ÷ direct", "busy"],
      [[f["network"], f["provider"], r["batch"], f["load"], f["served"], f["direct"]["per_second"],
        f["direct"]["ratio"], f["device_busy_share"]] for r, f in inference])
table("Latency in ms, at the greatest rate and across a swap of the model at half of it",
      ["network", "provider", "batch", "load", "rate", "p50", "p99", "swap p50", "swap p99", "refused"],
      [[f["network"], f["provider"], r["batch"], f["load"], o["peak"], o["latency"]["p50_ms"], o["latency"]["p99_ms"],
        o["swap"]["latency"]["p50_ms"], o["swap"]["latency"]["p99_ms"], o["swap"]["refused"]]
       for r, f in inference if (o := f["open"])])
table("Training samples a second", ["network", "device", "batch", "f32", "bf16", "bf16 ÷ f32"],
      [[r["network"], r["device"], r["batch"], *(f["samples"] for f in r["figures"]),
        r["figures"][1]["samples"] / r["figures"][0]["samples"]] for _, r in lines("training-*.json")])
table("Self-play", ["network", "visits/s", "evaluations/s", "positions/s", "device busy", "cores busy"],
      [[r["network"], *(r[key] for key in ("visits_per_second", "fresh_evaluations_per_second", "positions_per_second",
                                           "device_busy", "cores_busy"))] for _, r in lines("selfplay-*.json")])
table("make up: its last figures, and what limits", ["limit"],
      [[found["limit"]] for _, found in list(lines("up.json")) if found["event"] == "summary"][-1:])
failed = pathlib.Path("results/failed.txt")
print("\n## Failed\n")
print("\n".join(f"- {line}" for line in failed.read_text().splitlines()) if failed.exists() else "Nothing.")
PYTHON
cat results/tables.md
[ ! -e results/failed.txt ]
