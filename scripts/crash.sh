#!/usr/bin/env bash
# Ends the watcher by a tracer at every system call that changes anything while it tells news, starts another, and checks
# that each signal was told, once. Takes about half an hour; a failure names its step.
#
#   scripts/crash.sh                      every step
#   scripts/crash.sh 7                    every seventh
#   scripts/crash.sh 1 214 214            step 214 of each kind of call alone (STRIDE FIRST LAST)
#
# Exit codes: 0 all passed; 1 a signal was lost or told twice; 2 usage, or strace or Rust is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
by=${1:-1} first=${2:-1} last=${3:-4294967295}
case $by$first$last in *[!0-9]*) echo "usage: scripts/crash.sh [STRIDE [FIRST [LAST]]]" >&2; exit 2 ;; esac
command -v strace >/dev/null || { echo "crash.sh: strace is missing; install it (Debian: apt-get install strace)" >&2; exit 2; }
# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || { echo "crash.sh: Rust is not installed" >&2; exit 2; }
NEXUS_CRASH_BY=$by NEXUS_CRASH_FROM=$first NEXUS_CRASH_TO=$last \
  cargo test --locked --quiet --features strace --test crash_steps -- --nocapture || exit 1
