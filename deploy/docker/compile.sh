#!/bin/sh
# The compile stage of the images: builds every role and the Python package's native module, and gathers them in /dist.
#
# BUILD_IMAGE may be an image with a complete /dist (made by dist.sh from binaries built elsewhere). This script then does
# nothing.
set -eu
cd "$(dirname "$0")/../.."

if [ -d /dist/bin ]; then
    echo 'compile: /dist exists already'
    exit 0
fi
apt-get update
apt-get install --no-install-recommends -y g++ python3 python3-pip
python3 scripts/fetch_libraries.py
cargo build --release --locked --workspace --exclude bench --lib --bins --features otlp,s3
sh deploy/docker/dist.sh /dist
