#!/bin/sh
# Builds a release from the commit of this clone: `make release`. Needs root, debootstrap, git, zstd and Python 3.11.
#
#   target/release-VERSION/minuet-VERSION-….whl        the wheel (scripts/wheel.py)
#   target/release-VERSION/minuet-VERSION-x86_64.tar.zst    the same for machines without Python, with both native libraries
#   target/release-VERSION/*.cdx.json                  bills of materials of the CPU and the GPU images; the first is also the wheel's
#   target/release-VERSION/SHA256SUMS                  digests of these files
#
# The programs are compiled in a tree of Debian 11, so that every Linux with glibc 2.31 or newer runs them. Rust is this machine's;
# everything else is that of the tree, which is kept for the next release.
#
# TREE   folder of the tree (default: target/debian-11)
set -eu
cd "$(dirname "$0")/.."
root=$PWD
tree=${TREE:-$root/target/debian-11}
commit=$(git rev-parse --short=9 HEAD)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
out=$root/target/release-$version
cache=${MINUET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/minuet}
cargo_home=${CARGO_HOME:-$HOME/.cargo}

fail() {
    echo "release: $1" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || fail 'making and entering a tree of Debian needs root: run it with sudo, or as root in a container'
command -v debootstrap >/dev/null || fail 'debootstrap is missing (Debian, Ubuntu: apt install debootstrap)'
command -v zstd >/dev/null || fail 'zstd is missing (Debian, Ubuntu: apt install zstd)'
[ -z "$(git status --porcelain)" ] || fail 'the clone has changes that are not committed: a release is made from a commit'

if [ ! -x "$tree/usr/bin/g++" ]; then
    debootstrap --variant=minbase --include=ca-certificates,g++,python3 bullseye "$tree"
fi
python3 scripts/fetch_libraries.py
cargo fetch --locked
if [ ! -d "$tree/src/.git" ]; then
    git clone --quiet --no-checkout "$root" "$tree/src"
fi
git -C "$tree/src" fetch --quiet "$root" HEAD
git -C "$tree/src" checkout --quiet --force --detach FETCH_HEAD

# Mounts end with the process that made them.
toolchain=$(rustc --print sysroot)
mkdir -p "$tree$toolchain" "$tree$cargo_home" "$tree$cache"
toolchain=$toolchain tree=$tree cache=$cache cargo_home=$cargo_home commit=$commit unshare --mount sh -euc '
    for folder in "$toolchain" "$cargo_home" "$cache"; do
        mount --bind "$folder" "$tree$folder"
    done
    mount -t proc proc "$tree/proc"
    mount --bind /dev "$tree/dev"
    chroot "$tree" env PATH="$toolchain/bin:/usr/bin:/bin" CARGO_HOME="$cargo_home" MINUET_CACHE="$cache" \
        LIBTORCH=/src/third_party/libtorch MINUET_COMMIT="$commit" sh -euc "
        cd /src
        python3 scripts/fetch_libraries.py
        cargo build --release --locked --offline --workspace --exclude bench --lib --bins \
            --features otlp,s3 --config deploy/release.toml
    "
'

rm -rf "$out"
mkdir -p "$out"
python3 scripts/wheel.py --programs "$tree/src/target/release" --out "$out"
name=minuet-$version-x86_64
sh deploy/docker/dist.sh "$out/$name" "$tree/src/target/release"
mv "$out/$name/sbom/cpu.cdx.json" "$out/minuet-$version-cpu.cdx.json"
mv "$out/$name/sbom/gpu.cdx.json" "$out/minuet-$version-gpu.cdx.json"
rm -r "$out/$name/sbom" "$out/$name/ssl"
cp -R networks LICENSE "$out/$name/"
ln -s bin/minuet "$out/$name/minuet"
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - "$name" |
    zstd -q -T0 -12 -o "$out/$name.tar.zst"
rm -r "${out:?}/$name"
cd "$out"
sha256sum -- *.whl *.tar.zst *.json >SHA256SUMS
du -h -- *
