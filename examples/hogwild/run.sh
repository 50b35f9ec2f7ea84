#!/usr/bin/env bash
# Hogwild: four workers update the values in the memory of one ps, without waiting for each other. Flags go to the
# program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/hogwild" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 4 -- "$bin/hogwild" "$@"
