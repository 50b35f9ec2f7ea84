#!/usr/bin/env bash
# DiLoCo: three workers, a synchronous round every fifty minibatches. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/diloco" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 3 -- "$bin/diloco" "$@"
