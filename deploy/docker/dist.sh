#!/bin/sh
# Gathers the contents of the role images: stripped binaries, the two native libraries, CA certificates.
#
#   deploy/docker/dist.sh FOLDER [PROGRAMS]   after the build in compile.sh; an existing FOLDER is emptied
#
# PROGRAMS            folder of what cargo has built (default: target/release)
#
# FOLDER/bin          one binary for each role, and minuet
# FOLDER/python       the Python package; its native module has the features of the binaries, e.g. a collector of spans
# FOLDER/ort/lib      ONNX Runtime
# FOLDER/torch/lib    libtorch (the learner's image only)
# FOLDER/ssl          CA certificates, for object stores and peers behind public names
# FOLDER/sbom         bills of materials of the CPU and the GPU images (CycloneDX)
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo 'usage: deploy/docker/dist.sh FOLDER [PROGRAMS]' >&2
    exit 2
fi
mkdir -p "$1"
dist=$(cd "$1" && pwd)
programs=${2:-target/release}
cd "$(dirname "$0")/../.."

rm -rf "${dist:?}"/*
mkdir -p "$dist/bin" "$dist/python" "$dist/ort" "$dist/torch" "$dist/ssl" "$dist/sbom"
stripped() {
    if [ ! -f "$programs/$1" ]; then
        echo "dist: there is no $programs/$1; run the \`cargo build\` of deploy/docker/compile.sh first" >&2
        exit 1
    fi
    strip -o "$2" "$programs/$1"
}
for binary in minuet minuet-actor minuet-inference-server minuet-replay-store minuet-learner; do
    stripped "$binary" "$dist/bin/$binary"
done
cp -RL python/minuet "$dist/python/"
find "$dist/python" -name __pycache__ -prune -exec rm -r {} +
stripped lib_minuet.so "$dist/python/minuet/_minuet.abi3.so"
# The links in third_party/ point into the user's cache and are followed; links between names of a library are kept.
cp -a third_party/ort/lib "$dist/ort/"
cp -a third_party/libtorch/lib "$dist/torch/"
cp -L /etc/ssl/certs/ca-certificates.crt "$dist/ssl/"
python3 scripts/sbom.py > "$dist/sbom/cpu.cdx.json"
python3 scripts/sbom.py --gpu > "$dist/sbom/gpu.cdx.json"
