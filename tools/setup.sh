#!/usr/bin/env bash
# Installs what this project needs and this machine lacks. `./dev setup` and every other command of ./dev call it.
#   setup.sh [--quiet] [--torch | --no-torch] [--tests]
# --torch (the default) also sees to libtorch, --tests to the Python packages that only tests and checks use. When nothing is
# missing it only asks dpkg and the file system, which takes a tenth of a second; --quiet then prints nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH_REQUIREMENT='torch==2.13.0'

quiet=no torch=yes tests=no
for argument in "$@"; do
  case $argument in
    --quiet) quiet=yes ;;
    --torch) torch=yes ;;
    --no-torch) torch=no ;;
    --tests) tests=yes ;;
    *) echo "setup: unknown flag '$argument'; accepted: --quiet, --torch, --no-torch, --tests" >&2 && exit 2 ;;
  esac
done

say() { echo "setup: $*" >&2; }
say_ok() { [ $quiet = yes ] || say "$@"; }

missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//' tools/packages.txt | tr -s ' \t' '\n' | grep . | sort -u)
  # dpkg-query exits 1 when it doesn't know one of the names; those are what is looked for.
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii *//p' | sort -u) || true
  comm -23 <(echo "$wanted") <(echo "$installed") | tr '\n' ' ' | sed 's/ $//'
}

# Reads apt-get's output: one line a package that is ready, or one line in place on a terminal.
show_progress() {
  local plain=yes
  [ -t 2 ] && [ "${CI:-}" != true ] && plain=no
  awk -v plain=$plain '
    / newly installed/ { for (i = 1; i < NF; i++) if ($(i + 1) == "newly") total = $i }
    /^(Get:|Err:|E:|W:)/ && plain == "yes" && !/^Get:/ { print "  " $0 }
    /^Need to get/ { print "  " $0 }
    /^Setting up/ {
      done++
      if (plain == "yes") { if (done % 20 == 0 || done == total) printf "  %d of %d packages are ready\n", done, total }
      else printf "\r  %d of %d packages are ready%s", done, total, (done == total ? "\n" : "")
      fflush()
    }' >&2
}

install_packages() {
  local missing=$1 log=build/setup-apt.log
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      local command="apt-get update && apt-get install -y --no-install-recommends $missing"
      say "Debian packages are missing and only root can install them. Run this, then repeat your command:"
      if command -v sudo >/dev/null; then
        echo "  sudo sh -c '$command'" >&2
      else
        echo "  su -c '$command'" >&2
      fi
      exit 1
    fi
  fi
  mkdir -p build
  # shellcheck disable=SC2086
  set -- $missing
  say "[1/3] installing $# Debian packages: $missing"
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || { tail -5 "$log" >&2; say "apt-get update failed; trying with the lists there are"; }
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" 2>&1 </dev/null |
    tee -a "$log" | show_progress; then
    tail -20 "$log" >&2
    say "apt-get could not install the packages (all it said: $log)"
    exit 1
  fi
}

see_to_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is not a Debian system: the equivalents of the packages in tools/packages.txt are yours to install"
    return
  fi
  local missing
  missing=$(missing_packages)
  if [ -n "$missing" ]; then install_packages "$missing"; else say_ok "[1/3] Debian packages: nothing is missing"; fi
}

make_environment() {
  [ -x .venv/bin/pip ] && return
  say "making the Python environment .venv"
  rm -rf .venv
  python3 -m venv .venv
}

pip_install() {
  # The bar only where someone watches; a file gets pip's own lines.
  local bar=on
  { [ -t 2 ] && [ "${CI:-}" != true ]; } || bar=off
  .venv/bin/pip install --disable-pip-version-check --no-input --progress-bar $bar "$@" >&2
}

see_to_torch() {
  local found
  if found=$(tools/find_torch.py 2>/dev/null); then
    say_ok "[2/3] libtorch: $found"
    return
  fi
  say "[2/3] installing libtorch ($TORCH_REQUIREMENT, about 200 MB to download) into .venv"
  make_environment
  # Without its dependencies: they serve the Python half, which nothing here runs.
  if ! pip_install --no-deps "$TORCH_REQUIREMENT"; then
    say "pip could not install $TORCH_REQUIREMENT. If you have a libtorch, name it: LIBTORCH=/folder ./dev setup;" \
      "another package index is named by PIP_INDEX_URL or PIP_EXTRA_INDEX_URL"
    exit 1
  fi
  found=$(tools/find_torch.py)
  if [ -e "$found/../../../lib/libtorch_cuda.so" ]; then
    say "pip chose a CUDA build of torch, which needs the CUDA toolkit to build against. For the CPU build: rm -rf .venv," \
      "set PIP_INDEX_URL to PyTorch's index of CPU wheels, and repeat"
    exit 1
  fi
}

see_to_test_requirements() {
  if [ -x .venv/bin/python ] && .venv/bin/python tools/check_requirements.py tools/requirements.txt; then
    say_ok "[3/3] Python packages for tests: nothing is missing"
    return
  fi
  say "[3/3] installing the Python packages that only tests and checks use (tools/requirements.txt) into .venv"
  make_environment
  pip_install -r tools/requirements.txt
}

see_to_packages
if [ $torch = yes ]; then see_to_torch; else say_ok "[2/3] libtorch: not asked for"; fi
if [ $tests = yes ]; then see_to_test_requirements; else say_ok "[3/3] Python packages for tests: ./dev test and ./dev check see to them"; fi
