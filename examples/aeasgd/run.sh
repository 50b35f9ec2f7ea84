#!/usr/bin/env bash
# Elastic averaging: four workers with their own models, tied to a centre on the ps. Flags go to the program: --help
# lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/aeasgd" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 4 -- "$bin/aeasgd" "$@"
