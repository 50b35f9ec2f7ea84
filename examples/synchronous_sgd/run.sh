#!/usr/bin/env bash
# Synchronous SGD: the mean of the gradients of three workers makes an update. Flags go to the program: --help lists
# them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/synchronous_sgd" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 3 -- "$bin/synchronous_sgd" "$@"
