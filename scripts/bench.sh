#!/usr/bin/env bash
# Measures what the watcher costs against its budgets (docs/architecture.md, section 7), each figure beside its baseline
# of the same run, and prints one table in the form of docs/benchmarks.md.
#
#   scripts/bench.sh           everything, about fifteen minutes; nothing else should run meanwhile
#   scripts/bench.sh NAME...   some: classify, dialog, hook, idle_minute, memory, sweep
#   scripts/bench.sh --quick   one round of each: judges only what no load can change
#   scripts/bench.sh --doc     everything, and puts the table into docs/benchmarks.md
#
# Exit codes: 0 every budget is met; 1 one is missed; 2 usage, or something could not be measured.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=(classify dialog hook idle_minute memory sweep)
names=() doc=0
for arg in "$@"; do
  case $arg in
    --quick) export BENCH_SHORT=1 ;;
    --doc) doc=1 ;;
    -h|--help) sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
    *) [[ " ${all[*]} " == *" $arg "* ]] || { echo "bench.sh: no bench is named '$arg'; there are ${all[*]}" >&2; exit 2; }
       names+=("$arg") ;;
  esac
done
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")

# shellcheck source=scripts/find_rust.sh
. scripts/find_rust.sh
find_rust || { echo "bench.sh: Rust is not installed" >&2; exit 2; }
command -v tmux >/dev/null || { echo "bench.sh: tmux is not installed" >&2; exit 2; }
# Programs that the benches start are looked up here, not in what a caller's tmux or nexus says.
unset TMUX TMUX_PANE NEXUS_ROOT NEXUS_STATE_DIR NEXUS_WINDOW

cargo build --locked --release --quiet --example nothing
cargo bench --locked --no-run --quiet "${names[@]/#/--bench=}"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
{
  printf 'Measured on %s at %s: %s, %s CPUs, Linux %s, %s, %s, release build, load %s before.\n\n' \
    "$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" \
    "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -r)" "$(tmux -V)" \
    "$(rustc --version | cut -d' ' -f1,2)" "$(cut -d' ' -f1-3 /proc/loadavg)"
  printf '| what | measured | baseline | ratio | budget | |\n|---|---|---|---|---|---|\n'
} >"$out/table"
cat "$out/table"
failed=0
for name in "${names[@]}"; do
  if ! cargo bench --locked --quiet --bench "$name" >"$out/$name" 2>"$out/errors"; then
    echo "bench.sh: $name failed:" >&2
    tail -20 "$out/errors" >&2
    failed=1
  fi
  { printf '| **%s** | | | | | |\n' "$name"; grep '^| ' "$out/$name" | grep -v '^| what ' || true; } | tee -a "$out/table"
done

if [ $doc = 1 ]; then
  awk -v table="$out/table" '
    /^<!-- measured -->$/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /^<!-- end -->$/ { skip = 0 }
    !skip' docs/benchmarks.md >"$out/doc"
  cat "$out/doc" >docs/benchmarks.md
fi
[ $failed = 0 ] || exit 2
if missed=$(grep -c '| MISSED |$' "$out/table"); then
  printf '\n%s of %s judged budgets are missed\n' "$missed" "$(grep -cE '\| (met|MISSED) \|$' "$out/table")"
  exit 1
fi
