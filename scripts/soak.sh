#!/usr/bin/env bash
# Runs the restless-orchestrator test for many rounds and seeds; it stops at the first failure and names the seed.
#
#   scripts/soak.sh [ROUNDS] [SEEDS]        default: 100 rounds with each of 5 seeds
#   scripts/soak.sh 6 1                     a short run
#
# Exit codes: 0 all passed; 1 a run failed; 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-100} seeds=${2:-5}
case $rounds$seeds in *[!0-9]*) echo "usage: scripts/soak.sh [ROUNDS] [SEEDS]" >&2; exit 2 ;; esac
# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || { echo "soak.sh: Rust is not installed" >&2; exit 2; }
for seed in $(seq "$seeds"); do
  echo "seed $seed, $rounds rounds"
  NEXUS_SOAK_SEED=$seed NEXUS_SOAK_ROUNDS=$rounds cargo test --locked --quiet --test soak || exit 1
done
