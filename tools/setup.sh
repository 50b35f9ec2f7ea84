#!/usr/bin/env bash
# Installs what this project needs and this machine lacks. `./dev setup` and every other command of ./dev call it.
#   setup.sh [--quiet] [--no-torch] [--for user|build|check|test|wheel|spark|kubernetes]
# What each needs: `build` what compiles and runs the programs; `user` (the default) TensorBoard besides, for `muster
# tensorboard` and `muster run --tensorboard`; `check` clang and the Python packages of tools/requirements.txt; `test` a
# browser, Ray and the models of Kubernetes, too; `wheel` what builds the Python package; `spark` Spark and a JRE besides, `kubernetes` what
# builds and runs a real API server. libtorch is installed where there is none, except with --no-torch. When nothing is missing this only asks
# dpkg and the file system, which takes a tenth of a second; --quiet then prints nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH_REQUIREMENT='torch==2.13.0'

quiet=no torch=yes for=user
while [ $# -gt 0 ]; do
  case $1 in
    --quiet) quiet=yes ;;
    --no-torch) torch=no ;;
    --for) for=${2:-} && shift ;;
    *) echo "setup: unknown flag '$1'; accepted: --quiet, --no-torch, --for" >&2 && exit 2 ;;
  esac
  shift || break
done
case $for in
  build | user) groups="build" ;;
  check) groups="build clang" ;;
  test) groups="build clang test venv python" ;;
  wheel) groups="build python venv" ;;
  spark) groups="build clang test venv python spark" ;;
  kubernetes) groups="build clang test venv python kubernetes" ;;
  *) echo "setup: --for '$for': accepted: user, build, check, test, wheel, spark, kubernetes" >&2 && exit 2 ;;
esac

say() { echo "setup: $*" >&2; }
say_ok() { [ $quiet = yes ] || say "$@"; }

# The packages of the groups that are named.
packages_of() {
  awk -v groups=" $* " '/^# group: / { wanted = index(groups, " " $3 " ") } wanted { sub(/#.*/, ""); print }' \
    tools/packages.txt | tr -s ' \t' '\n' | grep . | sort -u
}

# Another package may have put kubectl where Debian's would go, which dpkg then refuses; any kubectl will do.
has_other_kubectl() {
  local owner
  [ -e /usr/bin/kubectl ] || return
  owner=$(dpkg-query -S /usr/bin/kubectl 2>/dev/null) || return
  [ "${owner%%:*}" != kubernetes-client ]
}

missing_packages() {
  local wanted installed
  # shellcheck disable=SC2086
  wanted=$(packages_of $groups)
  if has_other_kubectl; then wanted=$(grep -vx kubernetes-client <<<"$wanted"); fi
  # dpkg-query exits 1 when it doesn't know one of the names; those are what is looked for.
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii *//p' | sort -u) || true
  comm -23 <(echo "$wanted") <(echo "$installed") | tr '\n' ' ' | sed 's/ $//'
}

# Reads apt-get's output: how many packages are downloaded and ready, a line for every twentieth, or one line in place on
# a terminal.
show_progress() {
  local plain=yes
  [ -t 2 ] && [ "${CI:-}" != true ] && plain=no
  awk -v plain=$plain '
    function show(count, what) {
      if (plain == "no") printf "\r  %d of %d packages are %s%s", count, total, what, (count == total ? "\n" : "")
      else if (count % 20 == 0 || count == total) printf "  %d of %d packages are %s\n", count, total, what
      fflush()
    }
    / newly installed/ { for (i = 1; i < NF; i++) if ($(i + 1) == "newly") total = $i }
    /^(Err:|E:|W:)/ && plain == "yes" { print "  " $0 }
    /^(Need to get|After this operation)/ { print "  " $0; fflush() }
    /^Get:/ {
      size = $(NF - 1); sub(/\[/, "", size)
      megabytes += size * ($NF ~ /^MB/ ? 1 : $NF ~ /^kB/ ? 1e-3 : 1e-6)
      show(++got, sprintf("downloaded (%.0f MB)", megabytes))
    }
    /^Setting up/ { show(++done, "ready") }' >&2
}

# Tests start sshd on simulated hosts. Where its package is new, this machine itself shall accept no logins: the file is
# what Debian's service of sshd looks for. Uses as_root of its caller.
keep_sshd_off() {
  case " $1 " in *" openssh-server "*) ;; *) return 0 ;; esac
  say "openssh-server is for tests: its service stays off here until you remove /etc/ssh/sshd_not_to_be_run"
  "${as_root[@]}" mkdir -p /etc/ssh
  "${as_root[@]}" touch /etc/ssh/sshd_not_to_be_run
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
  keep_sshd_off "$missing"
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
  if [ -t 2 ] && [ "${CI:-}" != true ]; then
    .venv/bin/pip install --disable-pip-version-check --no-input "$@" >&2
    return
  fi
  # Its bar is for terminals; elsewhere a line now and then says how much it has written, downloads and files together.
  .venv/bin/pip install --disable-pip-version-check --no-input --progress-bar off "$@" >&2 &
  local pip=$! seconds=0 written
  # shellcheck disable=SC2064
  trap "kill $pip 2>/dev/null" EXIT  # Ctrl-C doesn't reach what runs in the background
  while sleep 1 && [ -e /proc/$pip/io ]; do
    seconds=$((seconds + 1))
    written=$(awk '/^wchar/ { print int($2 / 1e6) }' /proc/$pip/io 2>/dev/null) || continue
    [ $((seconds % 5)) != 0 ] || echo "  pip: $written MB downloaded and unpacked after $seconds s" >&2
  done
  trap - EXIT
  wait $pip
}

see_to_torch() {
  local found
  if found=$(tools/find_torch.py 2>/dev/null); then
    say_ok "[2/3] libtorch: $found"
    return
  fi
  say "[2/3] installing libtorch ($TORCH_REQUIREMENT, about 200 MB to download, 700 MB unpacked) into .venv"
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

# The files that list the Python packages which are asked for.
test_requirements() {
  if [ $for = wheel ]; then echo tools/requirements-wheel.txt && return; fi
  echo tools/requirements.txt
  case $for in test | spark | kubernetes)
    echo tools/requirements-ray.txt tools/requirements-kubernetes.txt tools/requirements-wheel.txt tools/requirements-python.txt ;;
  esac
  [ $for != spark ] || echo tools/requirements-spark.txt
}

have_requirements() {
  [ -x .venv/bin/python ] && .venv/bin/python tools/check_requirements.py "$1"
}

have_test_requirements() {
  local file
  for file in $(test_requirements); do have_requirements "$file" || return; done
}

see_to_test_requirements() {
  local file
  if have_test_requirements; then
    say_ok "[3/3] Python packages for tests: nothing is missing"
    return
  fi
  for file in $(test_requirements); do
    ! have_requirements "$file" || continue
    say "[3/3] installing the Python packages that only tests and checks use ($file) into .venv"
    make_environment
    pip_install -r "$file"
  done
}

# `muster tensorboard` and `muster run --tensorboard` look for the program on PATH.
see_to_tensorboard() {
  if command -v tensorboard >/dev/null; then
    say_ok "[3/3] TensorBoard: $(command -v tensorboard)"
    return
  fi
  if [ ! -x .venv/bin/tensorboard ]; then
    say "[3/3] installing TensorBoard into .venv"
    make_environment
    pip_install "$(grep '^tensorboard==' tools/requirements.txt)"
  fi
  local folder
  for folder in "$HOME/.local/bin" /usr/local/bin; do
    if [[ :$PATH: == *:$folder:* ]] && [ -w "$folder" ]; then
      ln -sf "$PWD/.venv/bin/tensorboard" "$folder/tensorboard"
      say "[3/3] TensorBoard: $folder/tensorboard, a link to .venv/bin/tensorboard"
      return
    fi
  done
  say "[3/3] TensorBoard is in .venv/bin; for 'muster tensorboard' and 'muster run --tensorboard':" \
    "export PATH=\$PATH:$PWD/.venv/bin"
}

# True if pip has something to install.
needs_pip() {
  { [ $torch = yes ] && ! tools/find_torch.py >/dev/null 2>&1; } && return
  case $for in
    user) ! command -v tensorboard >/dev/null && [ ! -x .venv/bin/tensorboard ] ;;
    check | test | wheel | spark | kubernetes) ! have_test_requirements ;;
    *) return 1 ;;
  esac
}

if ! [ -x .venv/bin/pip ] && needs_pip && ! python3 -c 'import ensurepip' 2>/dev/null; then groups="$groups venv"; fi
see_to_packages
if [ $torch = yes ]; then see_to_torch; else say_ok "[2/3] libtorch: not asked for"; fi
case $for in
  user) see_to_tensorboard ;;
  check | test | wheel | spark | kubernetes) see_to_test_requirements ;;
esac
