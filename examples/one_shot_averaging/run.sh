#!/usr/bin/env bash
# One-shot averaging: two workers train alone; the mean of their models is the result. Flags go to the program: --help
# lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/one_shot_averaging" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 2 -- "$bin/one_shot_averaging" "$@"
