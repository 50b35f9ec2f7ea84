#!/usr/bin/env bash
# Synchronous SGD: three workers with the learning rates 0.1, 0.2 and 0.3. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/synchronous_sgd_different_learning_rates" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 3 -- "$bin/synchronous_sgd_different_learning_rates" "$@"
