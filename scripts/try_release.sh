#!/bin/sh
# Installs a release in a fresh tree of Debian and uses it as an ordinary user: neither root, nor a compiler, nor Rust. Needs root and
# debootstrap to make the tree.
#
#   scripts/try_release.sh FOLDER SUITE       FOLDER has what `make release` wrote; SUITE is bullseye, bookworm, trixie
#
# A suite whose Python is older than 3.11 gets the archive, every other one the wheel. MINUET_CACHE may name a cache with libtorch.
set -eu
folder=$(cd "$1" && pwd)
suite=$2
tree=$(mktemp -d "${TMPDIR:-/tmp}/minuet-$suite-XXXXXX")
# The user of the tree must be able to enter it.
chmod 755 "$tree"
packages=ca-certificates
[ "$suite" = bullseye ] || packages=$packages,python3,python3-venv
debootstrap --variant=minbase --include="$packages" "$suite" "$tree" >/dev/null
cp /etc/resolv.conf "$tree/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/"
mkdir -p "$tree/release"
cp "$folder"/*.whl "$folder"/*.tar.zst "$tree/release/"
# Debian 11's tar has no zstd without the package of that name.
if [ "$suite" = bullseye ]; then
    zstd -dqf --rm "$tree"/release/*.tar.zst
fi
cat >"$tree/release/use.sh" <<'END'
set -eux
cd "$HOME"
if [ -x /usr/bin/python3 ]; then
    python3 -m venv minuet
    minuet/bin/pip install --quiet /release/*.whl
    PATH=$HOME/minuet/bin:$PATH
    python -c 'import minuet; print(minuet.__version__, minuet.Game("connect-four").start())'
    minuet new my_game.py
    minuet check my_game.py --games 5
else
    tar -xf /release/minuet-*.tar
    PATH=$(echo "$HOME"/minuet-*/bin):$PATH
fi
minuet --version
minuet up --game connect-four --for 60s
minuet doctor --run runs/connect-four
printf '4\nquit\n' | minuet play --game connect-four
END
mount_cache=${MINUET_CACHE:-}
tree=$tree mount_cache=$mount_cache unshare --mount --pid --fork sh -euc '
    mount -t proc proc "$tree/proc"
    mount --bind /dev "$tree/dev"
    chroot "$tree" useradd --create-home ann
    if [ -n "$mount_cache" ]; then
        mkdir -p "$tree/cache"
        mount --bind -o ro "$mount_cache" "$tree/cache"
    fi
    time chroot "$tree" env -i HOME=/home/ann PATH=/usr/bin:/bin ${mount_cache:+MINUET_CACHE=/cache} \
        setpriv --reuid=ann --regid=ann --clear-groups sh /release/use.sh
'
rm -rf "$tree"
echo "try_release: $suite works"
