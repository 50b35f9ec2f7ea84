#!/usr/bin/env bash
# Builds a real kube-apiserver from the source package `kubernetes` of this system (Debian has 1.20), about ten minutes on
# two processors, into build/kubernetes/, and prints its path. What is there already is only named. Needs the packages of
# `tools/setup.sh --for kubernetes`.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/build/kubernetes
server=$folder/kube-apiserver
if [ -x "$server" ]; then echo "$server" && exit; fi

mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
# The sources lie where the system gets its packages, which need not be told to its own apt.
apt-get indextargets 'Created-By: Packages' 'Component: main' --format 'deb-src $(REPO_URI) $(RELEASE) main' |
  sort -u >"$folder/apt/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o APT::Sandbox::User=root)
{
  "${apt[@]}" update
  cd "$folder"
  rm -rf source ./*.dsc ./*.tar.*
  "${apt[@]}" --download-only source kubernetes
  dpkg-source --no-check -x ./*.dsc source
  mkdir -p source/.go/src/k8s.io
  ln -sfn ../../.. source/.go/src/k8s.io/kubernetes
  env HOME="$folder/home" GOPATH="$folder/source/.go" GOCACHE="$folder/cache" CGO_ENABLED=0 make -C source WHAT=cmd/kube-apiserver
  cp source/_output/bin/kube-apiserver "$server.part"
  mv "$server.part" "$server"
  for made in source cache; do [ ! -e "$made" ] || chmod -R u+w "$made"; done # the build may keep its cache elsewhere
  rm -rf source cache home apt ./*.dsc ./*.tar.*
} >&2
echo "$server"
