#!/usr/bin/env bash
# Runs the tests that talk to a real tmux against several versions of it: the installed one, and those that the machine's own
# Debian package sources offer under other suites. Each is unpacked into a folder of its own, with the libraries it
# needs; nothing is installed. Prints which versions ran, and what could not be had.
#
#   scripts/tmux-matrix.sh                       every version that can be had
#   scripts/tmux-matrix.sh --suites "trixie sid" these suites
#   scripts/tmux-matrix.sh --list                only say what could be had
#
# NEXUS_MATRIX_DIR   where they are unpacked (target/tmux-matrix); kept for the next run
# NEXUS_MATRIX_TESTS which test binaries run, as a filter of nextest
#
# Exit codes: 0 all passed; 1 a version failed its tests; 2 usage, or something needed is missing.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
dir=${NEXUS_MATRIX_DIR:-$root/target/tmux-matrix}
tests=${NEXUS_MATRIX_TESTS:-'binary(tmux_real) | binary(conformance) | binary(delivery_real) | binary(send) | binary(pains_delivery) | binary(pains_reading) | binary(pains_panes)'}
suites='bullseye bookworm trixie forky sid' only_list=0

need() { printf 'tmux-matrix.sh: %s\n' "$*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --suites) [ $# -ge 2 ] || need "--suites needs a list"; suites=$2; shift 2 ;;
    --list) only_list=1; shift ;;
    -h|--help) sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
    *) need "unknown argument '$1'" ;;
  esac
done
command -v apt-get >/dev/null || need "apt-get is missing; this works with Debian's package sources only"
command -v dpkg-deb >/dev/null || need "dpkg-deb is missing"
# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || need "Rust is not installed"
cargo nextest --version >/dev/null 2>&1 || need "cargo-nextest is missing: cargo install --locked cargo-nextest"

# The address of the distribution's main archive, from the machine's own configuration, in either of its two forms.
archive() {
  {
    cat /etc/apt/sources.list 2>/dev/null | awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^[a-z]+:/) { print $i, $(i + 1); break } }'
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '
      /^URIs:/ { uri = $2 } /^Suites:/ { suite = $2 } /^$/ { if (uri) print uri, suite; uri = ""; suite = "" } END { if (uri) print uri, suite }'
  } | awk -v here="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" '$2 == here { print $1; exit }'
}

# apt with only one suite, its lists in a folder of its own.
apt_of() {
  local suite=$1; shift
  apt-get -q -o "Dir::Etc::SourceList=$dir/$suite/sources.list" -o Dir::Etc::SourceParts=- \
    -o "Dir::State::Lists=$dir/$suite/lists" -o "Dir::Cache=$dir/$suite/cache" -o Dir::State::status=/dev/null \
    -o APT::Get::List-Cleanup=0 -o APT::Install-Recommends=0 -o Debug::NoLocking=1 "$@"
}

# Unpacks a suite's tmux with all its libraries under $dir/SUITE/root, and a `tmux` to put in front of PATH.
fetch() {
  local suite=$1 uri=$2 here=$dir/$1 loader
  [ -x "$here/bin/tmux" ] && return 0
  mkdir -p "$here/lists/partial" "$here/cache/archives/partial" "$here/root" "$here/bin"
  printf 'deb %s %s main\n' "$uri" "$suite" >"$here/sources.list"
  apt_of "$suite" update >"$here/update.log" 2>&1 || return 1
  apt_of "$suite" install -y --download-only tmux >"$here/install.log" 2>&1 || return 1
  local deb
  for deb in "$here"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$here/root" || return 1; done
  loader=$(find "$here/root" -name 'ld-linux*.so*' | head -n 1)
  [ -n "$loader" ] && [ -e "$here/root/usr/bin/tmux" ] || return 1
  # By its own loader and libraries: those of another suite may be newer than the machine's.
  local libs
  libs=$(find "$here/root" -type d \( -path '*/lib/*-linux-gnu' -o -path '*/lib64' -o -path '*/lib' \) | paste -sd:)
  cat >"$here/bin/tmux" <<WRAP
#!/bin/sh
exec "$loader" --library-path "$libs" --argv0 tmux "$here/root/usr/bin/tmux" "\$@"
WRAP
  chmod +x "$here/bin/tmux"
  "$here/bin/tmux" -V >/dev/null 2>&1 || { rm -f "$here/bin/tmux"; return 1; }
}

uri=$(archive)
[ -n "$uri" ] || need "the package sources name no archive of this release"
declare -A place=()
order=() not_had=()
take() {
  local version; version=$("$1" -V)
  if [ -z "${place[$version]:-}" ]; then place[$version]=$1; order+=("$version"); echo "$version: $2"; fi
}
if command -v tmux >/dev/null; then take "$(command -v tmux)" "installed"; fi
for suite in $suites; do
  echo "asking for the tmux of $suite ..."
  if fetch "$suite" "$uri"; then take "$dir/$suite/bin/tmux" "$suite"; else not_had+=("$suite"); fi
done
if [ ${#not_had[@]} -gt 0 ]; then echo "not to be had here: ${not_had[*]} (see $dir/SUITE/*.log)"; fi
[ $only_list = 0 ] || exit 0

failed=() ran=()
for version in "${order[@]}"; do
  printf '\n=== %s\n' "$version"
  tmux=${place[$version]}
  if PATH=$(dirname "$tmux"):$PATH cargo nextest run --locked --no-fail-fast --status-level fail -E "$tests"; then
    ran+=("$version: passed")
  else
    ran+=("$version: FAILED"); failed+=("$version")
  fi
done
printf '\n--- versions\n'
printf '%s\n' "${ran[@]}"
if [ ${#not_had[@]} -gt 0 ]; then echo "not to be had here: ${not_had[*]}"; fi
[ ${#failed[@]} = 0 ]
