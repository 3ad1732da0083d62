#!/usr/bin/env bash
# Simulates fleets: thirty days with fifty workers, then random seeds for a time. docs/simulation.md explains.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || { echo "simulate.sh: cargo is not to be found; install Rust" >&2; exit 2; }

usage() {
    cat <<'EOF'
usage: scripts/simulate.sh [month | seeds [SECONDS [FIRST-SEED]]]

  month            30 days with 50 workers (NEXUS_SIM_* change that; see docs/simulation.md)
  seeds [S] [N]    seed after seed for S seconds (60), from seed N (the time of day)
  (nothing)        both

A failure prints the line that repeats it.
EOF
}

run() {
    cargo test --quiet --profile sim --test simulation -- --ignored --nocapture --exact "$1"
}

case "${1:-all}" in
    month) run a_month_of_fifty_workers ;;
    seeds) NEXUS_SIM_FOR="${2:-60}" NEXUS_SIM_SEED="${3:-$(date +%s)}" run many_seeds ;;
    all)
        run a_month_of_fifty_workers
        NEXUS_SIM_FOR=60 NEXUS_SIM_SEED="$(date +%s)" run many_seeds
        ;;
    -h | --help) usage ;;
    *)
        usage >&2
        exit 2
        ;;
esac
