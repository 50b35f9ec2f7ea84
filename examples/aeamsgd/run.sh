#!/usr/bin/env bash
# Elastic averaging with Nesterov's momentum: four workers, tied to a centre on the ps. Flags go to the program:
# --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/aeamsgd" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 4 -- "$bin/aeamsgd" "$@"
