#!/usr/bin/env bash
# An Experiment on one ps and two workers, the first of which evaluates. --model_dir, OUTPUT_DIR, EXPERIMENT_ID or
# JOB_NAME says where its results go. Flags go to the program: --help lists them.
set -euo pipefail
bin=${MUSTER_BIN_DIR:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")/build/release/bin}
[ -x "$bin/experiment_iris" ] || { echo "not built yet: ./dev build" >&2; exit 2; }
exec "$bin/muster" run --ps 1 --workers 2 -- "$bin/experiment_iris" "$@"
