#!/usr/bin/env bash
# One process, no cluster. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/non_distributed" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/non_distributed" "$@"
