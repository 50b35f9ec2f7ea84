#!/usr/bin/env bash
# DOWNPOUR: three workers with Adagrad, two ps with Adagrad, a commit every five minibatches. Flags go to the program:
# --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/downpour" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 2 --workers 3 -- "$bin/downpour" "$@"
