#!/usr/bin/env bash
# All-reduce: three workers and no ps. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/all_reduce" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 0 --workers 3 -- "$bin/all_reduce" "$@"
