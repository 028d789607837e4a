#!/bin/sh
# Writes the stack file of a Docker swarm to standard output: docker-compose.yml without what a swarm does not know, with stack.yml
# over it, and with every variable replaced. Needs docker.
#
#   deploy/swarm/render.sh my-secrets > stack.yml         with the folder that deploy/kubernetes/secrets.sh has made
#   docker stack deploy --resolve-image never -c stack.yml minuet
#
# Left out of docker-compose.yml: services of profiles, ports that it opens on the loopback interface (a swarm would open them to
# everyone), the bind of run.toml (a config takes its place on every node), and keys that a swarm ignores.
# MINUET_RUN names another run.toml, MINUET_TAG the tag of the images.
set -eu

if [ $# -ne 1 ]; then
    echo 'usage: deploy/swarm/render.sh FOLDER_OF_SECRETS' >&2
    exit 2
fi
MINUET_SECRETS=$(cd "$1" && pwd)
export MINUET_SECRETS
here=$(cd "$(dirname "$0")" && pwd)
export MINUET_RUN="${MINUET_RUN:-$here/../compose/run.toml}"

# A service begins with two spaces and a name. It is printed when the next one begins, unless it has profiles.
awk '
    function flush() { if (!dropped) printf "%s", block; block = ""; dropped = 0 }
    /^[^ #]/ { flush(); services = /^services:/ }
    services && /^  [a-z-]+:$/ { flush() }
    services && /^    profiles:/ { dropped = 1 }
    /^    (build|ports|restart|security_opt|tmpfs|healthcheck|depends_on):/ { next }
    /^  (restart|security_opt|tmpfs):/ { next }
    /\/run\.toml:\/etc\/minuet\/run\.toml:ro$/ { next }
    { block = block $0 "\n" }
    END { flush() }
' "$here/../docker-compose.yml" | docker stack config -c - -c "$here/stack.yml"
