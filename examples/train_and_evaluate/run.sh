#!/usr/bin/env bash
# A chief, a worker, a ps and an evaluator running one program. Flags go to the program: --help lists them. Without
# --model_dir the checkpoints are deleted afterwards.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/train_and_evaluate" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
model_dir=$(mktemp -d)
trap 'rm -rf "$model_dir"' EXIT
"$bin/muster" run --chief 1 --ps 1 --workers 1 --evaluator --model_dir "$model_dir" -- "$bin/train_and_evaluate" "$@"
