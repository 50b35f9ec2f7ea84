#!/usr/bin/env bash
# DOWNPOUR with plain SGD: three workers, a commit every five minibatches. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/downpour_easy" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 3 -- "$bin/downpour_easy" "$@"
