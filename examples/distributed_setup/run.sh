#!/usr/bin/env bash
# The smallest cluster: one ps, one worker, a MonitoredTrainingSession. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/distributed_setup" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 1 -- "$bin/distributed_setup" "$@"
