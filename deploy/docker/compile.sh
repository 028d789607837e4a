#!/bin/sh
# The compile stage of the images: builds every role and gathers it in /dist.
#
# An image that has a /dist already (made by dist.sh from binaries built elsewhere) may be given as BUILD_IMAGE;
# then there is nothing to do here.
set -eu
cd "$(dirname "$0")/../.."

if [ -d /dist/bin ]; then
    echo 'compile: /dist is there already'
    exit 0
fi
apt-get update
apt-get install --no-install-recommends -y g++ python3 python3-pip
python3 scripts/fetch_libraries.py
cargo build --release --locked --workspace --exclude bench --bins
sh deploy/docker/dist.sh /dist
