#!/usr/bin/env bash
# Seeds defects into the delivery and the baseline, one at a time, and checks that the simulation finds each.
#
#   scripts/mutants.sh            all of them
#   scripts/mutants.sh NAME…      these (scripts/mutants/NAME.patch)
#   scripts/mutants.sh --check    only whether each still applies
#
# Works on a copy of what is committed, in target/mutants; the tree itself is left alone. A mutant may stay unfound for
# NEXUS_MUTANT_SECONDS (150), of which a fifth is enough on an idle machine.
# Exit codes: 0 all found; 1 one survives or does not apply; 2 usage, or something needed is missing.
set -euo pipefail
exec </dev/null

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || { echo "mutants.sh: cargo is not to be found; install Rust" >&2; exit 2; }

copy=$root/target/mutants/tree
# Seconds that a mutant may stay unfound.
patience=${NEXUS_MUTANT_SECONDS:-150}
only_check=0
names=()
for arg in "$@"; do
  case $arg in
    --check) only_check=1 ;;
    -*) echo "usage: scripts/mutants.sh [--check] [NAME…]" >&2; exit 2 ;;
    *) names+=("$arg") ;;
  esac
done
if [ ${#names[@]} -eq 0 ]; then
  for patch in scripts/mutants/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

# A fresh copy in which only what differs is written, so that little is built again.
refresh() {
  local fresh=$root/target/mutants/fresh file
  rm -rf "$fresh"
  mkdir -p "$fresh" "$copy"
  git archive HEAD | tar -x -C "$fresh"
  (cd "$copy" && find . -type f) | while IFS= read -r file; do [ -e "$fresh/$file" ] || rm -f "$copy/$file"; done
  (cd "$fresh" && find . -type f) | while IFS= read -r file; do
    cmp -s "$fresh/$file" "$copy/$file" || { mkdir -p "$(dirname "$copy/$file")"; cp -p "$fresh/$file" "$copy/$file"; touch "$copy/$file"; }
  done
  rm -rf "$fresh"
}

build() {
  (cd "$copy" && CARGO_TARGET_DIR=$root/target cargo test --quiet --test simulation --no-run) 2>"$root/target/mutants/build.log"
}

# Runs seed after seed; the status is 0 if all hold.
simulate() {
  (cd "$copy" && NEXUS_SIM_SHRINK=0 NEXUS_SIM_FOR=$patience NEXUS_SIM_SEED=1 RUST_BACKTRACE=0 \
    CARGO_TARGET_DIR=$root/target timeout $((patience * 3)) \
    cargo test --quiet --test simulation -- --ignored --exact many_seeds) >"$root/target/mutants/run.log" 2>&1
}

failed=0
row() { printf '%-28s %-14s %5s s  %s\n' "$1" "$2" "$3" "$4"; }
mkdir -p "$root/target/mutants"
for name in "${names[@]}"; do
  patch=$root/scripts/mutants/$name.patch
  [ -f "$patch" ] || { echo "mutants.sh: there is no $patch" >&2; exit 2; }
  what=$(head -1 "$patch")
  if ! git apply --check -C1 "$patch" 2>/dev/null; then
    row "$name" "DOES NOT APPLY" 0 "$what"
    failed=1
    continue
  fi
  if [ $only_check -eq 1 ]; then
    row "$name" applies 0 "$what"
    continue
  fi
  refresh
  (cd "$copy" && GIT_CEILING_DIRECTORIES=$root/target git apply -C1 "$patch")
  began=$SECONDS
  if ! build; then
    row "$name" "DOES NOT BUILD" $((SECONDS - began)) "$what (target/mutants/build.log)"
    failed=1
    continue
  fi
  began=$SECONDS
  if simulate; then
    row "$name" SURVIVES $((SECONDS - began)) "$what"
    failed=1
  elif grep -q "the run fails" "$root/target/mutants/run.log"; then
    row "$name" found $((SECONDS - began)) "$(grep -m1 -o 'the run fails.*' "$root/target/mutants/run.log" | cut -c1-120)"
  else
    row "$name" "NO VERDICT" $((SECONDS - began)) "(target/mutants/run.log)"
    failed=1
  fi
done
exit $failed
